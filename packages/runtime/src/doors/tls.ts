/** `--tls-cert` and `--tls-key`: what a server shows to clients of other machines, and which addresses need it. */
import { readFile, stat } from "node:fs/promises";
import type { TlsPair } from "@heddle/server";
import { HeddleError, hostFaultOr } from "@heddle/protocol";

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
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
    throw new HeddleError(hostFaultOr(cause, "usage.invalid"), `${file} cannot be read: ${code}`, { cause });
  }
}
