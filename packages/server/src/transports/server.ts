/** Servers of the doors, plain or with TLS, where they listen, and how a request is read safely. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import { HeddleError, reasonOf } from "@heddle/protocol";
import type { Channel } from "../rpc/channel.ts";

export interface Listener extends AsyncDisposable {
  /** Where clients find it. */
  readonly address: string;
}

export type OnChannel = (channel: Channel) => void;

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
    throw new HeddleError("usage.invalid", `the certificate and its key cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

export interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

/** Answers the port, which the system chooses for port 0. */
export async function listenTcp(server: DoorServer, { host, port }: TcpAddress): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, resolve);
  }).catch((cause: unknown) => {
    const why = reasonOf(cause);
    throw new HeddleError("usage.invalid", `cannot listen on ${host}:${port}: ${why}`, { cause });
  });
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : port;
}

/**
 * A header that may be there once and came twice: Node keeps the first, another program on the way may have gone by the
 * second. Lists, which may be split over several lines, are joined and not meant.
 */
export function repeatedHeader({ headers, headersDistinct }: IncomingMessage): string | undefined {
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (values.length > 1 && headers[name] === values[0]) return name;
  }
  return undefined;
}

/** Undefined: no path, but what only proxies are sent. Two slashes at its beginning are a path too, and no other host. */
export function urlOf({ url = "/" }: IncomingMessage): URL | undefined {
  return url.startsWith("/") ? (URL.parse(`http://host${url}`) ?? undefined) : undefined;
}
