/**
 * `serve.json` in the home: where clients of the same user find the server, while it runs, and the port that is
 * kept for the next start. After a crash it names a process that has ended; clients compare the pid.
 */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";

const ADDRESS_FILE = "serve.json";
const MAX_PORT = 65_535;

/** Closing it leaves nothing but the port. */
export async function rememberAddresses(home: string, addresses: readonly string[]): Promise<AsyncDisposable> {
  const plain = addresses.find((address) => address.startsWith("http:"));
  const port = plain === undefined ? undefined : Number(new URL(plain).port);
  await write(home, { addresses, url: urlOf(addresses), port, pid: process.pid });
  return {
    async [Symbol.asyncDispose]() {
      // A port that cannot be kept is better lost than an address that is none.
      await write(home, { addresses: [], port }).catch(() => rm(path.join(home, ADDRESS_FILE), { force: true }));
    },
  };
}

/** 0: any. */
export async function lastPort(home: string): Promise<number> {
  const { port } = await read(home);
  return typeof port === "number" && Number.isInteger(port) && port > 0 && port <= MAX_PORT ? port : 0;
}

/** Where this process serves, as far as it has said so. */
export async function addressOf(home: string, pid: unknown): Promise<string | undefined> {
  const found = await read(home);
  if (found["pid"] !== pid || !Array.isArray(found["addresses"])) return undefined;
  const addresses = found["addresses"].filter((address) => typeof address === "string");
  return urlOf(addresses) ?? addresses[0];
}

/** Where the server of a home serves, or served before it crashed; empty: none runs. */
export async function servedAddresses(home: string): Promise<readonly string[]> {
  const { addresses } = await read(home);
  return Array.isArray(addresses) ? addresses.filter((address) => typeof address === "string") : [];
}

/** Whether the process that wrote the addresses is still there: after a crash another may listen at them. */
export async function isServing(home: string): Promise<boolean> {
  const { pid } = await read(home);
  try {
    return typeof pid === "number" && pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The one for programs that speak HTTP. */
export function urlOf(addresses: readonly string[]): string | undefined {
  return addresses.find((address) => /^https?:/.test(address));
}

async function read(home: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const found: unknown = JSON.parse(await readFile(path.join(home, ADDRESS_FILE), "utf8"));
    return typeof found === "object" && found !== null ? { ...found } : {};
  } catch {
    return {};
  }
}

async function write(home: string, content: object): Promise<void> {
  const target = path.join(home, ADDRESS_FILE);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(content)}\n`, { mode: 0o600 });
  await rename(draft, target);
}
