/**
 * The sandbox made of util-linux alone. One holder per sandbox keeps a user, mount, ipc, pid and network namespace;
 * each command enters them, gets a pid namespace of its own (so that its whole tree dies with it), the caller's own uid
 * and no capabilities. The finished mounts are read back and checked before the first command may enter.
 */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { HeddleError, type SandboxHolds } from "@heddle/protocol";
import { adoptPipes } from "../pipes.ts";
import { namespacesUnavailable, type HolderProcess, type NamespaceTools } from "./holder-process.ts";
import { INIT_SCRIPT, READ_ONLY_PROC_SCRIPT } from "./holder-script.ts";
import type { Layout } from "./layout.ts";
import type { Limiter } from "./limiter.ts";
import { findDeviations, planMounts, type MountPoint } from "./mount-plan.ts";
import { parseMountinfo, type Mount } from "./mountinfo.ts";
import type { EnterOptions, SandboxedCommand } from "./sandbox.ts";
import { DEVICES } from "./scratch.ts";
import { enterScript, Standbys } from "./standby.ts";

const NO_PRIVILEGES = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"];
const NAMESPACES = ["user", "mnt", "ipc", "pid"] as const;

export interface Holder extends AsyncDisposable {
  /** Commands can enter; see `Sandbox.ready`. */
  readonly ready: Promise<SandboxHolds>;
  enter(argv: readonly string[], options: EnterOptions): Promise<SandboxedCommand>;
  /** See `Sandbox.standBy`. */
  standBy(): void;
}

export interface HolderOptions {
  readonly layout: Layout;
  readonly process: HolderProcess;
  /** The host has let one be made before, so that its word is not waited for. */
  readonly isExpected: boolean;
  readonly limiter: Limiter;
}

/**
 * Resolves as soon as the host has let the namespaces and the first mount be made: from there on only a defect can
 * stop it. The other mounts are made while the caller goes on.
 */
export async function openHolder({ layout, process: holder, isExpected, limiter }: HolderOptions): Promise<Holder> {
  const handles: number[] = [];
  const names = holder.network === "none" ? [...NAMESPACES, "net"] : NAMESPACES;
  let wasEntered = false;
  let isLeft = false;
  const standbys = new Standbys(holder);

  async function finish(): Promise<EntryPoint> {
    try {
      const mounts = parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8"));
      const devices = DEVICES.filter((name) => existsSync(`/dev/${name}`));
      const plan = planMounts(layout.steps, { mounts, devices }, holder.scratch);
      for (const point of plan.mountPoints) makeMountPoint(point);
      // Told before the holder has said that it is alive: it reads its plan when it is.
      const enter = enterScript((mapsUser) => insideOf(holder.tools, mapsUser));
      limiter.add(holder.pids());
      const { maxPid } = limiter;
      const readying = holder.finish({ ...plan, enter: limiter.holderLines() + enter, maxPid });
      standbys.open();
      const { pid, mapsUser, holdsPids } = await readying;
      verifyMounts(pid, layout, mounts);
      if (isLeft) throw new Error("it was left before");
      for (const name of names) handles.push(openSync(`/proc/${pid}/ns/${name}`, "r"));
      // Open handles name exactly these namespaces; a pid could come to mean another process.
      const targets = names.map((name, index) => `--${longName(name)}=/proc/${process.pid}/fd/${handles[index]}`);
      const { tools, scratch } = holder;
      const limits = { lines: limiter.shellLines(holdsPids), prefix: limiter.prefix(tools.sh) };
      return {
        tools,
        targets,
        inside: insideOf(tools, mapsUser),
        standbys,
        pipes: scratch.pipes,
        limits,
        holds: limiter.holds(holdsPids),
      };
    } catch (error) {
      // Asked before it is stopped: a killed holder complains of being killed.
      const message = `the sandbox could not be finished: ${holder.complaint(error)}`;
      await holder[Symbol.asyncDispose]();
      throw new HeddleError("sandbox.failed", message, { cause: error });
    }
  }

  try {
    if (!isExpected) await holder.alive;
  } catch (error) {
    const complaint = holder.complaint(error);
    await holder[Symbol.asyncDispose]();
    throw namespacesUnavailable(complaint);
  }
  const finished = finish();
  const ready = finished.then(({ holds }) => holds);
  // Whoever enters or asks `ready` is told; nobody may do either.
  ready.catch(() => undefined);
  return {
    ready,
    enter: async (argv, options) => {
      wasEntered = true;
      const entry = await finished;
      if (!holder.isRunning) {
        throw new HeddleError("sandbox.failed", "the sandbox has ended; nothing can run in it any more");
      }
      return await enterCommand(entry, argv, options);
    },
    standBy: () => standbys.ask(),
    [Symbol.asyncDispose]: async () => {
      isLeft = true;
      // Where nobody was, nobody can be left; what the kernel still takes apart then is nothing to wait for.
      if (!wasEntered) {
        holder.kill();
      } else {
        await holder[Symbol.asyncDispose]();
        await ready.catch(() => undefined);
      }
      for (const handle of handles.splice(0)) closeSync(handle);
    },
  };
}

function makeMountPoint({ path, like }: MountPoint): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  if (like === undefined || lstatSync(like).isDirectory()) {
    mkdirSync(path, { recursive: true });
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "", { flag: "wx" });
}

/** All it takes to enter a finished holder. */
interface EntryPoint {
  readonly tools: NamespaceTools;
  readonly targets: readonly string[];
  /** See `insideOf`. */
  readonly inside: readonly string[];
  readonly standbys: Standbys;
  /** Named pipes that wait for a command that enters by itself. */
  readonly pipes: string;
  readonly limits: { readonly lines: string; readonly prefix: readonly string[] };
  readonly holds: SandboxHolds;
}

function longName(name: string): string {
  return name === "mnt" ? "mount" : name;
}

function verifyMounts(pid: number, layout: Layout, hostMounts: readonly Mount[]): void {
  const inside = parseMountinfo(readFileSync(`/proc/${pid}/mountinfo`, "utf8"));
  const deviations = findDeviations(inside, layout, hostMounts);
  if (deviations.length > 0) throw new Error(`the mounts came out wrong: ${deviations.slice(0, 5).join(", ")}`);
}

async function enterCommand(
  { tools, targets, inside, standbys, pipes, limits }: EntryPoint,
  argv: readonly string[],
  { cwd, env: given, isPlain = false }: EnterOptions,
): Promise<SandboxedCommand> {
  if (argv.length === 0) throw new HeddleError("tool.invalid-arguments", "the command is empty");
  const env = { ...given, TMPDIR: "/tmp" };
  const folder = realOr(cwd);
  // unshare waits for the first process of the pid namespace, and the kernel ends that one last.
  const carriers = { pidDepth: 2, endsWithTree: true };
  const running = isPlain ? await standbys.take({ argv, cwd: folder, env }) : undefined;
  if (running !== undefined) return { kind: "inside", ...running, ...carriers };
  adoptPipes(pipes);
  const { early, late } = splitEnvironment(env);
  const init = [
    tools.sh,
    "-c",
    limits.lines + INIT_SCRIPT,
    "heddle-init",
    folder,
    String(late.length),
    ...late,
    ...argv,
  ];
  const entering = [tools.nsenter, ...targets, "--preserve-credentials", "--", ...inside, ...init];
  const [file = tools.nsenter, ...args] = [...limits.prefix, ...entering];
  return { kind: "spawn", file, args, env: early, cwd: "/", ...carriers };
}

/** A folder that is not there is for the command to complain about. */
function realOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

/** What leads from the holder to where a command begins. */
function insideOf(tools: NamespaceTools, mapsUser: boolean): readonly string[] {
  return [...ownPidNamespace(tools, mapsUser), tools.setpriv, ...NO_PRIVILEGES, "--"];
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
