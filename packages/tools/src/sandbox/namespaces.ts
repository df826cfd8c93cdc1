/**
 * The sandbox made of util-linux alone. One holder per sandbox keeps a user, mount, ipc, pid and network namespace;
 * each command enters them, gets a pid namespace of its own (so that its whole tree dies with it), the caller's own uid
 * and no capabilities. The finished mounts are read back and checked before the first command may enter.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { open, readFile, realpath, type FileHandle } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { onlyStandardStreams } from "../inherited-descriptors.ts";
import { warmPipes } from "../pipes.ts";
import { findHostTool, runHostTool } from "./host-tools.ts";
import { HOLDER_SCRIPT, INIT_SCRIPT, READ_ONLY_PROC_SCRIPT } from "./holder-script.ts";
import type { Layout } from "./layout.ts";
import { findDeviations, mountOperations } from "./mount-operations.ts";
import { parseMountinfo, type Mount } from "./mountinfo.ts";
import type { SandboxedCommand } from "./sandbox.ts";
import type { Scratch } from "./scratch.ts";

/** A loaded machine with hundreds of mounts needs a second; a hang must not become a hanging turn. */
const OPEN_TIMEOUT_MS = 20_000;
const MAX_STDERR = 4096;

const UNSHARE = ["--user", "--map-root-user", "--mount", "--ipc", "--pid", "--fork", "--kill-child"];
const NO_PRIVILEGES = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"];
const NAMESPACES = ["user", "mnt", "ipc", "pid"] as const;

export interface NamespaceTools {
  readonly unshare: string;
  readonly nsenter: string;
  readonly setpriv: string;
  readonly mount: string;
  readonly sh: string;
}

export function findNamespaceTools(): NamespaceTools {
  const found = { ...need("unshare"), ...need("nsenter"), ...need("setpriv"), ...need("mount"), ...need("sh") };
  need("pivot_root");
  return found;
}

/** `unshare` can show the caller's own uid inside; older ones can only show root. */
async function canMapUser(tools: NamespaceTools): Promise<boolean> {
  const { stdout } = await runHostTool(tools.unshare, ["--help"], 5000);
  return stdout.includes("--map-user=") && stdout.includes("--keep-caps");
}

function need<Name extends string>(name: Name): Record<Name, string> {
  const path = findHostTool(name);
  if (path === undefined) throw unavailable(`the program ${name} is missing; it is part of util-linux`);
  const entry: Partial<Record<Name, string>> = {};
  entry[name] = path;
  return entry as Record<Name, string>;
}

export interface Holder extends AsyncDisposable {
  /** Commands can enter; see `Sandbox.ready`. */
  readonly ready: Promise<void>;
  enter(
    argv: readonly string[],
    options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  ): Promise<SandboxedCommand>;
}

export interface HolderOptions {
  readonly layout: Layout;
  readonly network: "none" | "all";
  readonly scratch: Scratch;
}

/**
 * Resolves as soon as the host has let the namespaces and the first mounts be made: from there on only a defect can
 * stop it. The other mounts, some fifty short programs, are made while the caller goes on.
 */
export async function openHolder({ layout, network, scratch }: HolderOptions): Promise<Holder> {
  const tools = findNamespaceTools();
  const mounts = parseMountinfo(await readFile("/proc/self/mountinfo", "utf8"));
  const operations = mountOperations(layout.steps, mounts, scratch.root);
  const args = [...UNSHARE, ...(network === "none" ? ["--net"] : []), "--", tools.sh, "-c", HOLDER_SCRIPT];
  args.push("heddle-holder", scratch.root, ...operations, ...(network === "none" ? ["loopback"] : []));
  const child = spawn(tools.unshare, args, {
    cwd: "/",
    env: { LC_ALL: "C" },
    stdio: onlyStandardStreams("pipe", "pipe", "pipe"),
    // Its own session: a ^C at the terminal is for Heddle to handle, not for the holder to die of.
    detached: true,
  });
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  let pid: number | undefined;
  const stop = async (): Promise<void> => {
    child.stdin?.destroy();
    // The first process of the pid namespace, not the one that made it: that one ends when all inside are gone, and
    // until then the number cannot mean anybody else.
    if (pid === undefined || child.exitCode !== null) child.kill("SIGKILL");
    else killHolder(pid);
    await ended;
  };
  const said = listenTo(child);
  const handles: FileHandle[] = [];
  const names = network === "none" ? [...NAMESPACES, "net"] : NAMESPACES;

  async function finish(): Promise<EntryPoint> {
    try {
      const [readyPid, mapsUser] = await Promise.all([said.ready, canMapUser(tools), warmPipes()]);
      pid = readyPid;
      await verifyMounts(pid, layout, mounts);
      for (const name of names) handles.push(await open(`/proc/${pid}/ns/${name}`));
      // Open handles name exactly these namespaces; a pid could come to mean another process.
      const targets = names.map((name, index) => `--${longName(name)}=/proc/${process.pid}/fd/${handles[index]?.fd}`);
      return { tools, targets, mapsUser };
    } catch (error) {
      // Asked before it is stopped: a killed holder complains of being killed.
      const message = `the sandbox could not be finished: ${said.complaint(error)}`;
      await stop();
      throw new HeddleError("sandbox.failed", message, { cause: error });
    }
  }

  try {
    await said.alive;
  } catch (error) {
    const complaint = said.complaint(error);
    await stop();
    throw unavailable(complaint);
  }
  const finished = finish();
  const ready = finished.then(() => undefined);
  // Whoever enters or asks `ready` is told; nobody may do either.
  ready.catch(() => undefined);
  return {
    ready,
    enter: async (argv, options) => {
      const entry = await finished;
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new HeddleError("sandbox.failed", "the sandbox has ended; nothing can run in it any more");
      }
      return await enterCommand(entry, argv, options);
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await ready.catch(() => undefined);
      for (const handle of handles.splice(0)) await handle.close();
    },
  };
}

/** All it takes to enter a finished holder. */
interface EntryPoint {
  readonly tools: NamespaceTools;
  readonly targets: readonly string[];
  readonly mapsUser: boolean;
}

function killHolder(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // It may have ended by itself when its input closed.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

function longName(name: string): string {
  return name === "mnt" ? "mount" : name;
}

interface HolderWords {
  /** The namespaces exist and mounts can be made in them. */
  readonly alive: Promise<void>;
  /** Everything is in place; the pid of the holder on the host. */
  readonly ready: Promise<number>;
  /** What the holder itself had to say about a failure, else the failure. */
  complaint(error: unknown): string;
}

function listenTo(child: ChildProcess): HolderWords {
  const alive = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<number>();
  let stdout = "";
  let stderr = "";
  const fail = (reason: string): void => {
    alive.reject(new Error(reason));
    ready.reject(new Error(reason));
  };
  const timer = setTimeout(() => fail("the holder gave no answer"), OPEN_TIMEOUT_MS);
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(0, MAX_STDERR);
  });
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
    if (stdout.startsWith("alive\n")) alive.resolve();
    const pid = /^ready (\d+)\n/m.exec(stdout)?.[1];
    if (pid === undefined) return;
    clearTimeout(timer);
    ready.resolve(Number(pid));
  });
  child.once("close", () => {
    clearTimeout(timer);
    fail("the holder ended");
  });
  child.once("error", (error) => fail(error.message));
  // Each is awaited in its time; until then a failure must not count as unhandled.
  for (const promise of [alive.promise, ready.promise]) promise.catch(() => undefined);
  return {
    alive: alive.promise,
    ready: ready.promise,
    complaint: (error) =>
      [error instanceof Error ? error.message : String(error), stderr.trim()].filter(Boolean).join(": "),
  };
}

async function verifyMounts(pid: number, layout: Layout, hostMounts: readonly Mount[]): Promise<void> {
  const inside = parseMountinfo(await readFile(`/proc/${pid}/mountinfo`, "utf8"));
  const deviations = findDeviations(inside, layout, hostMounts);
  if (deviations.length > 0) throw new Error(`the mounts came out wrong: ${deviations.slice(0, 5).join(", ")}`);
}

async function enterCommand(
  { tools, targets, mapsUser }: EntryPoint,
  argv: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<SandboxedCommand> {
  if (argv.length === 0) throw new HeddleError("tool.invalid-arguments", "the command is empty");
  const { early, late } = splitEnvironment({ ...env, TMPDIR: "/tmp" });
  const folder = await realpath(cwd).catch(() => cwd);
  const init = [tools.sh, "-c", INIT_SCRIPT, "heddle-init", folder, String(late.length), ...late, ...argv];
  const bare = [tools.setpriv, ...NO_PRIVILEGES, "--", ...init];
  return {
    file: tools.nsenter,
    args: [...targets, "--preserve-credentials", "--", ...ownPidNamespace(tools, mapsUser), ...bare],
    env: early,
    cwd: "/",
    pidDepth: 2,
    // unshare waits for the first process of the pid namespace, and the kernel ends that one last.
    endsWithTree: true,
  };
}

function ownPidNamespace(tools: NamespaceTools, mapsUser: boolean): string[] {
  const common = [tools.unshare, "--mount", "--pid", "--fork", "--kill-child"];
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid === 0) return [...common, "--", tools.sh, "-c", READ_ONLY_PROC_SCRIPT, "heddle-proc", tools.mount];
  const map = mapsUser ? [`--map-user=${uid}`, `--map-group=${gid}`, "--keep-caps"] : ["--map-root-user"];
  return [...common, "--mount-proc", "--user", ...map, "--"];
}

/** What a loader or a shell obeys before `main`; the programs that still have capabilities must not see it. */
const LOADER_VARIABLE =
  /^(?:LD_|GLIBC_|MALLOC_|LIBMOUNT_|GCONV_PATH$|LOCPATH$|NLSPATH$|ENV$|BASH_ENV$|IFS$|PS4$|SHELLOPTS$|BASHOPTS$)/;

function splitEnvironment(env: Readonly<Record<string, string>>): { early: Record<string, string>; late: string[] } {
  const early: Record<string, string> = {};
  const late: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (LOADER_VARIABLE.test(name)) late.push(`${name}=${value}`);
    else early[name] = value;
  }
  return { early, late };
}

function unavailable(reason: string): HeddleError {
  return new HeddleError("sandbox.unavailable", `namespaces: ${reason}`);
}
