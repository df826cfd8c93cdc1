/** Addresses of doors as text, and who can reach them. */
import { isIP } from "node:net";
import path from "node:path";
import { HeddleError, hostFaultOr, reasonOf } from "@heddle/protocol";
import { isLoopback, type TlsPair } from "@heddle/server";
import { readFile, stat } from "node:fs/promises";

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

/** `--tls-cert` and `--tls-key`: what a server shows to clients of other machines, and which addresses need it. */
/** Absolute paths. */
export interface TlsFiles {
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** undefined: no address wants it. */
export async function readTls({ cert, key }: TlsFiles, isWanted: boolean): Promise<TlsPair | undefined> {
  if (!isWanted) {
    if (cert === undefined && key === undefined) return undefined;
    throw new HeddleError(
      "usage.invalid",
      "--tls-cert and --tls-key are for addresses with TLS; write --listen https://IP:PORT or wss://IP:PORT",
    );
  }
  if (cert === undefined || key === undefined) {
    throw new HeddleError("usage.invalid", "an address with TLS needs both --tls-cert FILE and --tls-key FILE");
  }
  return { cert: await read(cert), key: await readPrivate(key) };
}

async function readPrivate(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (found !== undefined && (found.mode & 0o077) !== 0) {
    throw new HeddleError("credentials.unsafe", `others can read ${file}; fix it with: chmod 600 ${file}`);
  }
  return read(file);
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new HeddleError(hostFaultOr(cause, "usage.invalid"), `${file} cannot be read: ${reasonOf(cause)}`, { cause });
  }
}

export type ServeAt = UnixAt | (TcpAt & { readonly isRemembered?: true });

/** Port of OpenLoom's page, when only its host is said. */
const OPENLOOM_PORT = "55413";

/** What `--listen` says; without it what OpenLoom's variables say, beside the private socket. */
export function chosenBindings(listen: readonly string[], cwd: string, env: NodeJS.ProcessEnv): readonly ServeAt[] {
  const [host, port] = [env["OPENLOOM_UI_HOST"] ?? "", env["OPENLOOM_UI_PORT"] ?? ""];
  if (listen.length > 0 || (host === "" && port === "")) return listen.map((text) => parseServeAt(text, cwd));
  const ip = host === "" || host === "localhost" ? "127.0.0.1" : host;
  if (isIP(ip) === 0)
    throw new HeddleError(
      "usage.invalid",
      `OPENLOOM_UI_HOST "${host}" is not an IP address; write 127.0.0.1, or use --listen`,
    );
  if (port !== "" && !/^\d{1,5}$/.test(port))
    throw new HeddleError(
      "usage.invalid",
      `OPENLOOM_UI_PORT "${port}" is not a port; write a number up to 65535, or use --listen`,
    );
  const url = `http://${ip.includes(":") ? `[${ip}]` : ip}:${port === "" ? OPENLOOM_PORT : port}`;
  return [parseServeAt(url, cwd), { kind: "unix", path: undefined }];
}

function parseServeAt(text: string, cwd: string): ServeAt {
  const at = parseAddress(text, cwd, ["http", "ws"]);
  if (at !== undefined) return at;
  throw new HeddleError(
    "usage.invalid",
    `--listen "${text}" must be one of http://IP:PORT, https://IP:PORT, unix://PATH, unix://`,
  );
}
