/**
 * The sandbox made with util-linux alone. One holder per sandbox keeps a user, mount, ipc, pid and network namespace;
 * each command enters them with a pid namespace of its own (so that its whole tree ends with it), the caller's uid and
 * no capabilities. The finished mounts are checked before the first command enters.
 */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { HeddleError, type Network, type SandboxHolds } from "@heddle/protocol";
import { adoptPipes } from "../commands/pipes.ts";
import type { HostAccess, WayOut, WayOutOptions } from "../network/way-out.ts";
import { confine, FILTER_NAME, systemCallFilter, type FirstProcess } from "./confine.ts";
import { namespacesUnavailable, startHolder, type HolderProcess, type NamespaceTools } from "./holder-process.ts";
import { INIT_SCRIPT, MAX_PID_SCRIPT, READ_ONLY_PROC_SCRIPT } from "./holder-script.ts";
import { newInReach, type HostSockets } from "./host-sockets.ts";
import { runHostTool } from "./host-tools.ts";
import type { Layout, RoomTree } from "./layout.ts";
import type { Limiter } from "./limiter.ts";
import { findDeviations, planMounts, type MountPoint } from "./mount-plan.ts";
import { parseMountinfo, type Mount } from "./mountinfo.ts";
import type { EnterOptions, SandboxedCommand } from "./sandbox.ts";
import { DEVICES, type Scratch } from "./scratch.ts";
import { enterScript, Standbys } from "./standby.ts";

const COVER_MS = 10_000;
const NAMESPACES = ["user", "mnt", "ipc", "pid"] as const;

export interface Holder extends AsyncDisposable {
  readonly ready: Promise<SandboxHolds>;
  enter(argv: readonly string[], options: EnterOptions): Promise<SandboxedCommand>;
  standBy(): void;
}

export interface BackendOptions {
  readonly layout: Layout;
  readonly network: Network;
  /** Of the owner of the sandbox, for a list of hosts. */
  readonly hosts: HostAccess | undefined;
  /** Belongs to the caller. */
  readonly scratch: Scratch;
  readonly sockets: HostSockets;
  /** The host has given such a sandbox before, so its answer is not awaited. */
  readonly isExpected: boolean;
  readonly limiter: Limiter;
  /** The workspace of a room; see `RoomMount`. */
  readonly tree: RoomTree | undefined;
  readonly onMounted: ((pid: number) => void) | undefined;
}

/**
 * Resolves when the host has allowed the namespaces and the first mount: after that only a defect can stop it. The
 * other mounts are made while the caller continues.
 */
export async function openHolder(options: BackendOptions): Promise<Holder> {
  const { layout, network, scratch, sockets, isExpected, limiter, tree, onMounted } = options;
  const holder = startHolder(network, scratch);
  let wasEntered = false;
  let isLeft = false;
  let entrance: Entrance | undefined;
  const standbys = new Standbys(holder);

  async function finish(): Promise<EntryPoint> {
    try {
      const mounts = parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8"));
      const devices = DEVICES.filter((name) => existsSync(`/dev/${name}`));
      const plan = planMounts(layout.steps, { mounts, devices }, scratch);
      for (const point of plan.mountPoints) makeMountPoint(point);
      const { tools, confiner } = holder;
      const room = tree?.kind === "overlay" ? linkLayers(tree, join(scratch.path, "layers")) : undefined;
      const { maxPid, maxPidOfCommand } = limiter;
      const confined = confinedCommand(holder, layout, { isRoom: room !== undefined, maxPid: maxPidOfCommand });
      const inside = (mapsUser: boolean): readonly string[] => [...ownPids(tools, mapsUser), ...confined];
      // Written before the holder is alive: it reads its plan then.
      const enter = enterScript(inside);
      limiter.add(() => holder.pids());
      const readying = holder.finish({ ...plan, enter: limiter.holderLines() + enter, maxPid, room });
      standbys.open();
      const { pid, mapsUser, holdsPids } = await readying;
      verifyMounts(pid, layout, mounts);
      onMounted?.(pid);
      if (isLeft) throw new Error("it was left before");
      entrance = await openEntrance(pid, tools, options);
      if (isLeft) throw new Error("it was left before");
      const limits = { lines: limiter.shellLines(holdsPids), prefix: limiter.prefix(tools.sh) };
      return {
        tools,
        ...entrance,
        inside: inside(mapsUser),
        standbys,
        pipes: scratch.pipes,
        limits,
        holds: { ...limiter.holds(holdsPids), systemCalls: confiner.systemCalls },
      };
    } catch (error) {
      // Read before it is stopped: a killed holder reports being killed.
      const message = `the sandbox could not be finished: ${holder.complaint(error)}`;
      await holder[Symbol.asyncDispose]();
      await entrance?.close();
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
  // Reported to those who enter or await `ready`; there may be none.
  ready.catch(() => undefined);
  return {
    ready,
    enter: async (argv, options) => {
      wasEntered = true;
      const entry = await finished;
      if (!holder.isRunning) {
        throw new HeddleError("sandbox.failed", "the sandbox has ended; nothing can run in it any more");
      }
      const fresh = newInReach(sockets, layout, network);
      if (fresh.length > 0) await coverSockets(entry, fresh);
      return await enterCommand(entry, argv, options);
    },
    standBy: () => standbys.ask(),
    [Symbol.asyncDispose]: async () => {
      isLeft = true;
      // Without a command no process is left, and the kernel's own clean-up need not be awaited.
      if (!wasEntered) {
        holder.kill();
      } else {
        await holder[Symbol.asyncDispose]();
        await ready.catch(() => undefined);
      }
      await entrance?.close();
    },
  };
}

interface Entrance extends Pick<EntryPoint, "targets" | "environment"> {
  /** May be called twice. */
  close(): Promise<void>;
}

/** Handles of the namespaces: they stay valid, while a pid could come to mean another process. */
async function openEntrance(
  pid: number,
  tools: NamespaceTools,
  { network, hosts }: Pick<BackendOptions, "network" | "hosts">,
): Promise<Entrance> {
  const names = network === "all" ? NAMESPACES : [...NAMESPACES, "net"];
  const handles = names.map((name) => openSync(`/proc/${pid}/ns/${name}`, "r"));
  const targets = names.map((name, index) => `--${longName(name)}=/proc/${process.pid}/fd/${handles[index]}`);
  const closeHandles = (): void => handles.splice(0).forEach((handle) => closeSync(handle));
  const [user = "", net = ""] = [targets.at(0), targets.at(-1)];
  try {
    const enter = [tools.nsenter, user, net, "--preserve-credentials", "--"];
    const wayOut = await openListed(network, { ...hosts, enter });
    const close = async (): Promise<void> => {
      await wayOut?.[Symbol.asyncDispose]();
      closeHandles();
    };
    return { targets, environment: wayOut?.environment ?? {}, close };
  } catch (error) {
    closeHandles();
    throw error;
  }
}

/** Loaded only for a list of hosts. */
export async function openListed(network: Network, within: Omit<WayOutOptions, "rules">): Promise<WayOut | undefined> {
  if (typeof network === "string") return undefined;
  return await (await import("../network/way-out.ts")).openWayOut({ ...within, rules: network });
}

function confinedCommand(
  { tools, scratch, confiner, network }: HolderProcess,
  { writable }: Layout,
  { isRoom, maxPid }: { readonly isRoom: boolean; readonly maxPid: number | undefined },
): readonly string[] {
  const first = { maxPid, mountsProc: process.getuid?.() === 0 };
  if (confiner.kind === "setpriv") writeFileSync(join(scratch.devices, FILTER_NAME), systemCallFilter(isRoom));
  const before = confiner.kind === "perl" ? [] : preparing(tools, first);
  return [...before, ...confine(confiner, tools.setpriv, { writable, network, isRoom, first })];
}

export function makeMountPoint({ path, like, target }: MountPoint): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  if (target !== undefined) {
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
    return;
  }
  if (like === undefined || lstatSync(like).isDirectory()) {
    mkdirSync(path, { recursive: true });
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "", { flag: "wx" });
}

/** Links the layers of a room under names that fit into a mount option; returns the kind of its upper layer. */
function linkLayers({ lower, upper }: RoomTree & { kind: "overlay" }, folder: string): number | "disk" {
  // A holder that is started again finds the links of the first.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "top"), { recursive: true, mode: 0o700 });
  for (const [index, path] of lower.entries()) symlinkSync(path, join(folder, String(index)));
  // In memory, a descriptor of the holder keeps it.
  const isOnDisk = upper.kind === "disk";
  symlinkSync(isOnDisk ? upper.upper : "/proc/self/fd/9/upper", join(folder, "upper"));
  symlinkSync(isOnDisk ? upper.work : "/proc/self/fd/9/work", join(folder, "work"));
  return isOnDisk ? "disk" : upper.maxBytes;
}

interface EntryPoint {
  readonly tools: NamespaceTools;
  readonly targets: readonly string[];
  /** The programs between the holder and a command. */
  readonly inside: readonly string[];
  readonly standbys: Standbys;
  /** Named pipes for commands that do not go through a standby. */
  readonly pipes: string;
  /** Of every command, whatever its caller says. */
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: { readonly lines: string; readonly prefix: readonly string[] };
  readonly holds: SandboxHolds;
}

function longName(name: string): string {
  return name === "mnt" ? "mount" : name;
}

function verifyMounts(pid: number, layout: Layout, hostMounts: readonly Mount[]): void {
  const inside = parseMountinfo(readFileSync(`/proc/${pid}/mountinfo`, "utf8"));
  const deviations = findDeviations(inside, layout, hostMounts);
  if (deviations.length > 0) throw new Error(`the mounts are wrong: ${deviations.slice(0, 5).join(", ")}`);
}

/**
 * Commands get a copy of the holder's mounts, so a mount made there holds for all that enter later. A standby has its
 * copy already and needs its own.
 */
async function coverSockets({ tools, targets, standbys }: EntryPoint, paths: readonly string[]): Promise<void> {
  const script = `for path; do "$0" -n -c --bind /dev/null "$path" || [ ! -S "$path" ] || exit 1; done`;
  const inside = ["--preserve-credentials", "--", tools.sh, "-c", script, tools.mount, ...paths];
  const made = await runHostTool(tools.nsenter, [...targets.slice(0, 2), ...inside], COVER_MS);
  if (!made.isOk) {
    const why = made.stderr.trim();
    throw new HeddleError("sandbox.failed", `a socket of another program could not be covered: ${why}`);
  }
  const pid = await standbys.waiting();
  if (pid === undefined) return;
  // As root of the holder's user namespace, the parent of the standby's.
  const own = [...targets.slice(0, 1), `--mount=/proc/${pid}/ns/mnt`];
  if (!(await runHostTool(tools.nsenter, [...own, ...inside], COVER_MS)).isOk) standbys.discard();
}

async function enterCommand(
  { tools, targets, inside, standbys, pipes, environment, limits }: EntryPoint,
  argv: readonly string[],
  { cwd, env: given, isPlain = false }: EnterOptions,
): Promise<SandboxedCommand> {
  if (argv.length === 0) throw new HeddleError("tool.invalid-arguments", "the command is empty");
  const env = { ...given, ...environment, TMPDIR: "/tmp" };
  // unshare waits for the first process of the pid namespace, which the kernel ends last.
  const carriers = { pidDepth: 2, endsWithTree: true };
  const running = isPlain ? await standbys.take({ argv, cwd, env }) : undefined;
  if (running !== undefined) return { kind: "inside", ...running, ...carriers };
  adoptPipes(pipes);
  const { early, late } = splitEnvironment(env);
  const init = [tools.sh, "-c", limits.lines + INIT_SCRIPT, "heddle-init", cwd, String(late.length), ...late, ...argv];
  const entering = [tools.nsenter, ...targets, "--preserve-credentials", "--", ...inside, ...init];
  const [file = tools.nsenter, ...args] = [...limits.prefix, ...entering];
  return { kind: "spawn", file, args, env: early, cwd: "/", ...carriers };
}

/** The command's own pid namespace. */
function ownPids(tools: NamespaceTools, mapsUser: boolean): string[] {
  const common = [tools.unshare, "--mount", "--pid", "--fork", "--kill-child"];
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid === 0) return [...common, "--"];
  const map = mapsUser ? [`--map-user=${uid}`, `--map-group=${gid}`, "--keep-caps"] : ["--map-root-user"];
  return [...common, "--mount-proc", "--user", ...map, "--"];
}

/** What its first process does before it is confined. */
function preparing({ sh, mount }: NamespaceTools, { maxPid, mountsProc }: FirstProcess): string[] {
  if (mountsProc) return [sh, "-c", READ_ONLY_PROC_SCRIPT, "heddle-proc", String(maxPid ?? "-"), mount];
  return maxPid === undefined ? [] : [sh, "-c", MAX_PID_SCRIPT, "heddle-pids", String(maxPid)];
}

/**
 * The programs on the way in still have capabilities, and they, their loader or libraries may obey a variable. So they
 * see no variable that a shell can set for the command later; the few others mean nothing to them.
 */
export function splitEnvironment(env: Readonly<Record<string, string>>): {
  early: Record<string, string>;
  late: string[];
} {
  const early: Record<string, string> = {};
  const late: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (/^[A-Za-z_]\w*$/.test(name) && !OF_A_SHELL.test(name)) late.push(`${name}=${value}`);
    else early[name] = value;
  }
  return { early, late };
}

/** A shell sets these itself, or refuses to. */
const OF_A_SHELL = /^(?:_|PWD|OLDPWD|SHLVL|E?UID|PPID)$/;
