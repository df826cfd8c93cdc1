/**
 * Commands in a real sandbox whose network is a list of hosts, for every back-end and user. Prints a report as JSON:
 *   node --conditions=heddle-source network-world.ts <back-end> <folder>
 *   node --conditions=heddle-source network-world.ts <back-end> <folder> keep    prints its processes and waits to be killed
 */
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { childrenOf } from "../src/commands/proc-stat.ts";
import { startCommand } from "../src/commands/process.ts";
import { createNetworkLog, type NetworkUse } from "../src/network/network-log.ts";
import { openSandbox } from "../src/sandbox/open.ts";
import type { Sandbox } from "../src/sandbox/sandbox.ts";
import { HELD, WORKING } from "./network-commands.ts";
import { openWebServer, type WebAnswer } from "./proxy-world.ts";

export interface NetworkReport {
  readonly uid: number | undefined;
  readonly results: Readonly<Record<string, { readonly code: number | undefined; readonly text: string }>>;
  /** Requests to the listed server, and to the one that is not. */
  readonly listed: readonly string[];
  readonly other: readonly string[];
  /** Whatever else of the host was reached. */
  readonly reached: readonly string[];
  readonly ports: { readonly web: number; readonly other: number };
  readonly use: NetworkUse;
}

/** Every other name leads to this machine. */
const ADDRESSES: Readonly<Record<string, string>> = { "meta.example": "169.254.169.254", "ten.example": "10.0.0.1" };

async function openWorld(backend: string, folder: string) {
  const workspace = join(folder, "workspace");
  mkdirSync(workspace);
  const repository = makeRepository(folder);
  const reached: string[] = [];
  const other = await openWebServer();
  const web = await openWebServer((request) => {
    const [, file] = /^\/repo\.git\/([^?]*)/.exec(request.url ?? "") ?? [];
    if (file !== undefined) return served(join(repository, file));
    if (request.url !== "/redirect") return { text: `got ${request.url}` };
    return { status: 302, headers: { location: `http://evil.example:${other.port}/` }, text: "" };
  });
  const byName = await openWebServer((request) => ({ text: `got ${request.url}` }));
  const udp = createSocket("udp4", () => reached.push("a datagram"));
  await new Promise<void>((done) => udp.bind(0, "127.0.0.1", done));
  const names = { ABSTRACT: `\0heddle-net-${process.pid}`, PLAIN: join(folder, "plain") };
  const sockets = Object.entries(names).map(([name, path]) =>
    createServer((socket) => {
      reached.push(name);
      socket.destroy();
    }).listen(path),
  );
  const log = createNetworkLog();
  const listed = ["127.0.0.1", "good.example", "*.wild.example"].map((host) => `${host}:${web.port}`);
  const network = [...listed, `localhost:${byName.port}`, `loop.example:${other.port}`, "meta.example", "ten.example"];
  const sandbox = await openSandbox(
    { workspace, writeRoots: [workspace], masked: [], network },
    {
      backend: backend === "bwrap" ? "bwrap" : "namespaces",
      hosts: { log, resolve: async (name) => [ADDRESSES[name] ?? "127.0.0.1"] },
    },
  );
  const env = {
    WEB: String(web.port),
    NAMED: String(byName.port),
    OTHER: String(other.port),
    UDP: String(udp.address().port),
    ABSTRACT: names.ABSTRACT.slice(1),
    PLAIN: names.PLAIN,
    NODE: process.execPath,
    HEDDLE_PID: String(process.pid),
    // As the user of a company has it; it must not reach commands.
    HTTPS_PROXY: "http://proxy.company.example:3128",
  };
  return {
    sandbox,
    env,
    servers: { web, other, byName },
    reached,
    log,
    close: () => [udp, ...sockets].forEach((socket) => socket.close()),
  };
}

function makeRepository(folder: string): string {
  const path = join(folder, "repo");
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", ...args], {
      cwd: path,
      encoding: "utf8",
    });
  mkdirSync(path);
  git("init", "-q");
  execFileSync("sh", ["-c", "echo from the repository >file"], { cwd: path });
  git("add", "file");
  git("commit", "-qm", "one");
  git("update-server-info");
  return join(path, ".git");
}

function served(path: string): WebAnswer {
  try {
    return { text: readFileSync(path) };
  } catch {
    return { status: 404, text: "" };
  }
}

async function run(sandbox: Sandbox, command: string, env: Readonly<Record<string, string>>) {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: ["bash", "-c", command],
    cwd: sandbox.policy.workspace,
    env: commandEnvironment(process.env, env),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  const { exitCode } = await owned.exited;
  await output.close();
  return { code: exitCode, text: output.snapshot().text };
}

async function report(backend: string, folder: string): Promise<NetworkReport> {
  const world = await openWorld(backend, folder);
  const results: Record<string, { code: number | undefined; text: string }> = {};
  for (const [index, { name, command }] of [...WORKING, ...HELD].entries()) {
    // Every second one by a standby, which has its variables by another way.
    if (index % 2 === 1) world.sandbox.standBy();
    results[name] = await run(world.sandbox, command, world.env);
  }
  const { servers, reached, log } = world;
  const { web, other } = servers;
  await world.sandbox.close();
  world.close();
  for (const server of Object.values(servers)) await server[Symbol.asyncDispose]();
  return {
    uid: process.getuid?.(),
    results,
    listed: web.requests,
    other: other.requests,
    reached,
    ports: { web: web.port, other: other.port },
    use: log.take(),
  };
}

async function keep(backend: string, folder: string): Promise<void> {
  const { sandbox, env } = await openWorld(backend, folder);
  const command = `trap '' TERM HUP; curl -sS http://good.example:$WEB/; echo reached; exec sleep 1000`;
  const output = new CappedOutput();
  const reached = Promise.withResolvers<void>();
  const looking = setInterval(() => output.snapshot().text.includes("reached") && reached.resolve(), 20);
  await startCommand({
    sandbox,
    argv: ["bash", "-c", command],
    cwd: sandbox.policy.workspace,
    env: commandEnvironment(process.env, env),
    stdin: "ignore",
    output,
    signal: new AbortController().signal,
  });
  await reached.promise;
  clearInterval(looking);
  const tree = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(tree)];
  process.stdout.write(`${JSON.stringify(tree(process.pid))}\n`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , backend = "", folder = "", way] = process.argv;
  if (way === "keep") await keep(backend, folder);
  else process.stdout.write(JSON.stringify(await report(backend, folder)));
}
