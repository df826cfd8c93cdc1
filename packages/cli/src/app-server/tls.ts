/** `--tls-cert` and `--tls-key`: what a server shows to clients of other machines, and which addresses need it. */
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { TlsPair } from "@heddle/server";
import { HeddleError, hostFaultOr } from "@heddle/protocol";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";

export const TLS_OPTIONS: readonly OptionSpec[] = [
  { name: "tls-cert", value: "FILE", completes: "file", help: "The certificate to show, with its chain, in PEM" },
  { name: "tls-key", value: "FILE", completes: "file", help: "Its private key in PEM, readable by its owner alone" },
];

/** undefined: no address wants it. */
export async function readTls(args: ParsedArgs, cwd: string, isWanted: boolean): Promise<TlsPair | undefined> {
  const [cert, key] = [args.value("tls-cert"), args.value("tls-key")];
  if (!isWanted) {
    if (cert === undefined && key === undefined) return undefined;
    throw usage("--tls-cert and --tls-key are for addresses with TLS; write --listen https://IP:PORT or wss://IP:PORT");
  }
  if (cert === undefined || key === undefined) {
    throw usage("an address with TLS needs both --tls-cert FILE and --tls-key FILE");
  }
  return { cert: await read(path.resolve(cwd, cert)), key: await readPrivate(path.resolve(cwd, key)) };
}

async function readPrivate(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (found !== undefined && (found.mode & 0o077) !== 0) {
    throw new HeddleError("credentials.unsafe", `others can read ${file}; mend it with: chmod 600 ${file}`);
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
