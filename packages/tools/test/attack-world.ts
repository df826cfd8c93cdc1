/**
 * Runs the table of attacks in a world of its own and prints what happened as JSON. A program, so that it can be started
 * as another user: node --conditions=heddle-source attack-world.ts <namespaces|standby|bwrap|none>. `standby` is the wall
 * of namespaces with somebody standing by for each command. With `none` there is no wall and only attacks that touch nothing
 * but this world are run: they show that the table can tell the difference.
 */
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { closeSync, constants, createReadStream, openSync } from "node:fs";
import { appendFile, chmod, lstat, mkdir, mkdtemp, readdir, readlink, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { startCommand } from "../src/commands/process.ts";
import { openSandbox, openUnconfined } from "../src/sandbox/open.ts";
import type { Sandbox, SandboxPolicy } from "../src/sandbox/sandbox.ts";
import { ATTACKS, type Attack } from "./attacks.ts";

/** A standby waits two seconds at most; a busy machine needs some more of them. */
const MAX_STANDBY_TRIES = 20;

/** How commands get behind the wall. */
export type AttackWay = "namespaces" | "standby" | "bwrap" | "none";

export interface AttackReport {
  readonly uid: number;
  /** Arguments of the first process that the last command saw. */
  readonly firstProcess: string;
  readonly results: Readonly<Record<string, AttackResult>>;
  /** Connections that reached a listening socket of the host. */
  readonly connections: number;
  readonly changedByReadOnly: readonly string[];
  readonly changedOutside: readonly string[];
}

export interface AttackResult {
  readonly exitCode: number | undefined;
  readonly output: string;
}

export function attackKey(attack: Attack): string {
  return `${attack.mode}: ${attack.name}`;
}

interface World extends AsyncDisposable {
  readonly base: string;
  readonly workspace: string;
  readonly home: string;
  readonly outside: string;
  /** What the commands of the table know about the world. */
  readonly names: Readonly<Record<string, string>>;
  connections(): number;
  /** A program of the host begins to listen while the sandbox is open. */
  listenLate(mode: Attack["mode"]): Promise<void>;
}

async function openWorld(): Promise<World> {
  // Not below the folder for temporary files: there it would be hidden, and hiding is not the wall to test.
  const base = await realpath(await mkdtemp(join(await outerFolder(), "heddle attack's ")));
  const at = (name: string): string => join(base, name);
  for (const name of ["work space", "home", "outside"]) await mkdir(at(name));
  const workspace = at("work space");
  await fill(workspace);
  await writeFile(at("home/token"), "a secret of Heddle\n");
  await writeFile(at("outside/file"), "not yours\n");
  await chmod(at("outside/file"), 0o666);
  execFileSync("mkfifo", ["-m", "666", at("outside/pipe")]);
  // A pipe that somebody reads can be opened for writing without waiting.
  const pipe = openSync(at("outside/pipe"), constants.O_RDWR | constants.O_NONBLOCK);
  let connections = 0;
  const listen = async (...where: [string] | [number, string]): Promise<Server> => {
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      if (where.length === 1) server.listen(where[0], resolve);
      else server.listen(where[0], where[1], resolve);
    });
    return server;
  };
  const abstract = `heddle-attack-${process.pid}`;
  const tcp = await listen(0, "127.0.0.1");
  const servers = [
    tcp,
    await listen(at("outside/s")),
    await listen(join(workspace, "s")),
    await listen(`\0${abstract}`),
  ];
  const address = tcp.address();
  return {
    base,
    workspace,
    home: at("home"),
    outside: at("outside"),
    names: {
      PORT: typeof address === "object" && address !== null ? String(address.port) : "0",
      OUTSIDE_SOCKET: at("outside/s"),
      WORKSPACE_SOCKET: join(workspace, "s"),
      ABSTRACT_SOCKET: abstract,
      OUTSIDE_PIPE: at("outside/pipe"),
      LATE_SOCKETS: at("outside/late-"),
      WORKSPACE: workspace,
      MASKED: at("home"),
      OUTSIDE: at("outside"),
      HEDDLE_PID: String(process.pid),
    },
    connections: () => connections,
    listenLate: async (mode) => void servers.push(await listen(at(`outside/late-${mode}`))),
    [Symbol.asyncDispose]: async () => {
      closeSync(pipe);
      for (const server of servers) await new Promise<void>((resolve) => server.close(() => resolve()));
      // Some attacks leave folders that their owner may not write.
      execFileSync("chmod", ["-R", "u+rwx", base]);
      await rm(base, { recursive: true, force: true });
    },
  };
}

async function outerFolder(): Promise<string> {
  for (const folder of [process.env["HEDDLE_ATTACK_DIR"], tmpdir()]) {
    if (folder !== undefined && (await lstat(folder).catch(() => undefined))?.isDirectory() === true) return folder;
  }
  throw new Error("no folder to work in");
}

async function fill(workspace: string): Promise<void> {
  const at = (name: string): string => join(workspace, name);
  await mkdir(at("src"));
  await writeFile(at("src/x"), "one\n");
  await writeFile(at("evil.sh"), EVIL, { mode: 0o755 });
  await writeFile(at("src/package.json"), '{"name":"inner","version":"1.0.0"}\n');
  await writeFile(at("secret"), "secret of the workspace\n");
  await writeFile(at("package.json"), '{"name":"outer","version":"1.0.0"}\n');
  await mkdir(at(".vscode"));
  await writeFile(at(".vscode/settings.json"), "{}\n");
  await writeFile(at(".npmrc"), "\n");
  git(workspace, "init", "-q");
  git(workspace, "add", "src");
  git(workspace, "commit", "-qm", "first");
  git(workspace, "add", "package.json");
  git(workspace, "commit", "-qm", "second");
  await hostile(at("hostile"));
  await mkdir(at("vendor/a/b/c/d"), { recursive: true });
  git(at("vendor/a/b/c/d"), "init", "-q");
}

/** Leaves its mark inside and outside, and passes on what a filter gets. */
const EVIL = `#!/bin/sh
echo hi > "$WORKSPACE/src/x"
touch "$OUTSIDE/escaped" "$WORKSPACE/escaped"
cat
`;

/** A repository whose configuration, attributes and hooks run a program with nearly every command. */
async function hostile(folder: string): Promise<void> {
  await mkdir(folder);
  git(folder, "init", "-q");
  await writeFile(join(folder, "file"), "one\n");
  git(folder, "add", "file");
  git(folder, "commit", "-qm", "first");
  await writeFile(join(folder, "file"), "two\n");
  await writeFile(join(folder, ".gitattributes"), "* filter=evil diff=evil merge=evil\n");
  const evil = join(folder, ".git/evil");
  await writeFile(evil, EVIL, { mode: 0o755 });
  for (const hook of ["pre-commit", "post-checkout", "post-index-change", "reference-transaction"]) {
    await writeFile(join(folder, ".git/hooks", hook), EVIL, { mode: 0o755 });
  }
  const program = "sh ./.git/evil";
  await appendFile(
    join(folder, ".git/config"),
    [
      `[core]\n fsmonitor = ${program}\n pager = ${program}\n editor = ${program}`,
      `[filter "evil"]\n clean = ${program}\n smudge = ${program}\n process = ${program}`,
      `[diff]\n external = ${program}\n[diff "evil"]\n textconv = ${program}`,
      `[gpg]\n program = ${program}\n[user]\n name = a\n email = a@b\n`,
    ].join("\n"),
  );
}

function git(cwd: string, ...args: readonly string[]): void {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*", ...args], { cwd });
}

async function attack(sandbox: Sandbox, world: World, command: string): Promise<AttackResult> {
  const output = new CappedOutput();
  await using process_ = await startCommand({
    sandbox,
    argv: ["bash", "-c", command],
    cwd: world.workspace,
    env: commandEnvironment({ ...process.env, OPENAI_API_KEY: "sk-CANARY" }, world.names),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  const { exitCode } = await process_.exited;
  await output.close();
  return { exitCode, output: output.snapshot().text.slice(0, 2000) };
}

/** Path, mode and content of every file: what must be the same before and after. Names are bytes, one character each. */
async function manifest(top: string): Promise<Map<string, string>> {
  const entries = new Map<string, string>();
  const stack = [Buffer.from(top).toString("latin1")];
  for (let folder = stack.pop(); folder !== undefined; folder = stack.pop()) {
    for (const entry of await readdir(Buffer.from(folder, "latin1"), { withFileTypes: true, encoding: "latin1" })) {
      const path = `${folder}/${entry.name}`;
      const raw = Buffer.from(path, "latin1");
      const { mode } = await lstat(raw);
      const content = entry.isFile() ? await digest(raw) : entry.isSymbolicLink() ? await readlink(raw) : "";
      entries.set(path, `${mode.toString(8)} ${content}`);
      if (entry.isDirectory()) stack.push(path);
    }
  }
  return entries;
}

async function digest(path: Buffer): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
}

/** A standby that is late on a busy machine serves a later command. */
async function firstProcessOf(sandbox: Sandbox, world: World, way: AttackWay): Promise<string> {
  for (let tries = 1; ; tries++) {
    if (way === "standby") sandbox.standBy();
    const { output } = await attack(sandbox, world, "tr '\\0' ' ' </proc/1/cmdline");
    if (way !== "standby" || output.includes("heddle-standby") || tries === MAX_STANDBY_TRIES) return output;
  }
}

async function run(way: AttackWay): Promise<AttackReport> {
  process.env["HEDDLE_CANARY"] = "CANARY";
  await using world = await openWorld();
  const results: Record<string, AttackResult> = {};
  const isOwn = (path: string): boolean => path.includes("/outside/late-");
  const before = await manifest(world.base);
  const outsideBefore = await manifest(world.outside);
  let changedByReadOnly: string[] = [];
  let firstProcess = "";
  for (const mode of ["read-only", "workspace-write"] as const) {
    const policy: SandboxPolicy = {
      workspace: world.workspace,
      writeRoots: mode === "read-only" ? [] : [world.workspace],
      masked: [world.home],
      network: "none",
    };
    await using sandbox =
      way === "none"
        ? openUnconfined(policy)
        : await openSandbox(policy, {
            backend: way === "bwrap" ? "bwrap" : "namespaces",
            quarantineDir: join(world.base, "quarantine"),
          });
    await sandbox.ready;
    if (way === "standby") sandbox.standBy();
    await world.listenLate(mode);
    for (const one of ATTACKS) {
      if (one.mode !== mode || (way === "none" && one.isHarmless !== true)) continue;
      if (way === "standby") sandbox.standBy();
      results[attackKey(one)] = await attack(sandbox, world, one.command);
    }
    firstProcess = await firstProcessOf(sandbox, world, way);
    if (mode === "read-only")
      changedByReadOnly = differences(before, await manifest(world.base)).filter((path) => !isOwn(path));
  }
  return {
    uid: process.getuid?.() ?? -1,
    firstProcess,
    results,
    connections: world.connections(),
    changedByReadOnly,
    changedOutside: [
      ...differences(outsideBefore, await manifest(world.outside)).filter((path) => !isOwn(path)),
      ...[...(await manifest(world.base)).keys()].filter(
        (path) => path.endsWith("/escaped") && !path.startsWith(join(world.base, "quarantine")),
      ),
    ],
  };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const way = process.argv[2];
  if (way !== "namespaces" && way !== "standby" && way !== "bwrap" && way !== "none") throw new Error("which way?");
  process.stdout.write(JSON.stringify(await run(way)));
}
