/** Addresses of doors as text, and who can reach them. */
import { isIP } from "node:net";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { isLoopback } from "@heddle/server";

export interface UnixAt {
  readonly kind: "unix";
  /** Absent: Heddle's own, in its home. */
  readonly path: string | undefined;
}

export interface TcpAt {
  readonly kind: "tcp";
  readonly host: string;
  readonly port: number;
  readonly hasTls: boolean;
}

/** `unix://`, `unix://PATH`, or IP:PORT of one of the schemes, with an `s` where it has TLS. */
export function parseAddress(text: string, cwd: string, schemes: readonly string[]): UnixAt | TcpAt | undefined {
  if (text.startsWith("unix://")) {
    const given = text.slice("unix://".length);
    return { kind: "unix", path: given === "" ? undefined : path.resolve(cwd, given) };
  }
  const address = new RegExp(`^(?:${schemes.join("|")})(s?)://(?:\\[([0-9a-f:.]+)\\]|([0-9.]+)):(\\d{1,5})/?$`, "i");
  const [, secure, six, four, port] = address.exec(text) ?? [];
  const host = six ?? four ?? "";
  if (isIP(host) === 0 || Number(port) > 65_535) return undefined;
  return { kind: "tcp", host, port: Number(port), hasTls: secure !== "" };
}

/** Other machines come in over TLS, or when the owner allows it without. */
export function refuseOpenDoor(at: { readonly kind: string } | TcpAt, secure: "https" | "wss"): void {
  if (!("host" in at) || at.hasTls || isLoopback(at.host)) return;
  throw new HeddleError(
    "usage.invalid",
    `${at.host} can be reached from other machines; listen on 127.0.0.1, write ${secure}:// with --tls-cert and --tls-key, or add --allow-non-loopback`,
  );
}
