/** Servers of the doors that are reached over TCP: plain, or with TLS where a certificate was given. */
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import { HeddleError } from "@heddle/protocol";

/** In PEM. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

export type DoorServer = Server | SecureServer;

export function createDoorServer(
  options: ServerOptions & { readonly headersTimeout: number },
  tls: TlsPair | undefined,
  listener: RequestListener,
): DoorServer {
  if (tls === undefined) return createServer(options, listener);
  try {
    const handshakeTimeout = options.headersTimeout;
    return createSecureServer({ ...options, ...tls, minVersion: "TLSv1.2", handshakeTimeout }, listener);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "it cannot be read";
    throw new HeddleError("usage.invalid", `the certificate and its key cannot be used: ${code}`, { cause });
  }
}
