/**
 * The same layout with bubblewrap, where bwrap may make namespaces and unshare may not. One bwrap per command: it is
 * the first process of the command's pid namespace and dies with Heddle. Mounts are made for each command, so folders
 * above a protected path cannot be renamed, and commands share a network namespace only for a list of hosts. Devices
 * cannot be mounted read-only: root inside can change the mode of the host's /dev/null.
 */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { killByArgument } from "../commands/process-tree.ts";
import { canFilter, findConfiner, loaderCommand, systemCallFilter } from "./confine.ts";
import { lateScript } from "./holder-script.ts";
import { newInReach } from "./host-sockets.ts";
import { findHostTool, runHostTool } from "./host-tools.ts";
import { coverStep, pinParents, type Layout, type Step } from "./layout.ts";
import { findDeviations } from "./mount-plan.ts";
import { isBelow, parseMountinfo } from "./mountinfo.ts";
import { makeMountPoint, openListed, splitEnvironment, type BackendOptions, type Holder } from "./namespaces.ts";
import { DEVICES, type Scratch } from "./scratch.ts";
import { statOrUndefined } from "./tree-index.ts";

const PROBE_TIMEOUT_MS = 10_000;
const KILL_MS = 2000;
/** When memory runs out, commands are ended before Heddle. */
const FIRST_TO_END = 'echo 500 2>/dev/null >/proc/self/oom_score_adj; exec "$@"';

export async function openBwrap(options: BackendOptions): Promise<Holder> {
  const { network, scratch, limiter, sockets } = options;
  const { bwrap, canForbidNesting } = await findBwrap();
  const pinned = placeLinks(pinParents(options.layout));
  const layout = { ...pinned, writable: [...pinned.writable, ...DEVICES.map((name) => `/dev/${name}`)] };
  const sh = findHostTool("sh") ?? "sh";
  const loader = loaderCommand(findConfiner(), { writable: layout.writable, network });
  const start = loader.length === 0 && canFilter() ? loadByBwrap(sh, bwrap, scratch) : [bwrap];
  const held = await holdNetwork(bwrap, options);
  const outer = [
    ...held.enter,
    ...start,
    ...isolation(network !== "all" && !held.isHeld, canForbidNesting),
    ...base(layout),
  ];
  const look = [findHostTool("cat") ?? "cat", "/proc/self/mountinfo"];
  try {
    await tryOut((steps) => [...outer, ...layoutArguments(steps), "--", ...loader, ...look], layout);
  } catch (error) {
    await held[Symbol.asyncDispose]();
    throw error;
  }
  const script = `cd -P .;${lateScript(limiter.shellLines(false))}`;
  /** Covers of sockets that appeared later. */
  const added = new Map<string, Step>();
  return {
    // The trial above has made all mounts once.
    ready: Promise.resolve({ ...limiter.holds(false), systemCalls: canFilter() ? "filtered" : "open" }),
    enter: async (argv, { cwd, env }) => {
      if (argv.length === 0) throw new HeddleError("tool.invalid-arguments", "the command is empty");
      for (const path of newInReach(sockets, layout, network)) added.set(path, coverStep(path, scratch.emptyFile));
      const mounts = layoutArguments([...layout.steps, ...added.values()].filter(isStillThere));
      const { early, late } = splitEnvironment({ ...env, ...held.environment, TMPDIR: "/tmp" });
      const command = [...loader, sh, "-c", script, "heddle-late", String(late.length), ...late, ...argv];
      const entering = [...outer, ...mounts, "--chdir", cwd, "--", ...command];
      const [file = bwrap, ...args] = [...limiter.prefix(sh), sh, "-c", FIRST_TO_END, "heddle-limits", ...entering];
      // The outer bwrap reports the exit before the namespace is empty.
      return { kind: "spawn", file, args, env: early, cwd: "/", pidDepth: 1, endsWithTree: false };
    },
    // Nothing can be done before the command is known.
    standBy: () => undefined,
    // Every bwrap of this sandbox, and no other process, has an argument below a private folder.
    [Symbol.asyncDispose]: async () => {
      for (const folder of scratch.folders) await killByArgument(folder, KILL_MS);
      await held[Symbol.asyncDispose]();
    },
  };
}

/** A private folder keeps its links from one bwrap to the next, so they are made in it once. */
function placeLinks(layout: Layout): Layout {
  const steps = layout.steps.filter((link) => {
    if (link.kind !== "link") return true;
    const around = layout.steps.findLast((step) => step.kind === "bind" && isBelow(link.path, step.path));
    if (around?.kind !== "bind") return true;
    makeMountPoint({ path: around.source + link.path.slice(around.path.length), target: link.target });
    return false;
  });
  return { ...layout, steps };
}

interface HeldNetwork extends AsyncDisposable {
  /** The program and arguments that let each bwrap begin in the held namespace; empty: it makes its own. */
  readonly enter: readonly string[];
  readonly isHeld: boolean;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * For a list of hosts all commands share one network namespace, in which Heddle listens. A bwrap makes it, because it may and
 * others may not; handles of Heddle's keep it when that one has ended.
 */
async function holdNetwork(bwrap: string, { network, hosts }: BackendOptions): Promise<HeldNetwork> {
  if (typeof network === "string") {
    return { enter: [], isHeld: false, environment: {}, [Symbol.asyncDispose]: async () => undefined };
  }
  const nsenter = findHostTool("nsenter");
  if (nsenter === undefined) throw unavailable("the program nsenter is missing; it is part of util-linux");
  const handles: number[] = [];
  const close = (): void => handles.splice(0).forEach((handle) => closeSync(handle));
  try {
    const wayOut = await openListed(network, {
      ...hosts,
      enter: [bwrap, "--unshare-user", "--unshare-net", "--die-with-parent", "--dev-bind", "/", "/", "--"],
      onEntered: (pid) => void handles.push(...["user", "net"].map((name) => openSync(`/proc/${pid}/ns/${name}`, "r"))),
    });
    const [user, net] = handles.map((handle) => `/proc/${process.pid}/fd/${handle}`);
    return {
      enter: [nsenter, `--user=${user}`, `--net=${net}`, "--preserve-credentials", "--"],
      isHeld: true,
      environment: wayOut?.environment ?? {},
      [Symbol.asyncDispose]: async () => {
        await wayOut?.[Symbol.asyncDispose]();
        close();
      },
    };
  } catch (error) {
    close();
    throw unavailable(reasonOf(error));
  }
}

/** For hosts without perl and python3: bwrap reads the filter from a descriptor. */
function loadByBwrap(sh: string, bwrap: string, scratch: Scratch): readonly string[] {
  const file = join(scratch.path, "filter");
  writeFileSync(file, systemCallFilter(), { mode: 0o600 });
  return [sh, "-c", 'exec "$@" 9<"$0"', file, bwrap, "--seccomp", "9"];
}

/** Sockets of other programs vanish at any moment; a trial whose plan named a vanished one proves nothing. */
const MAX_TRIALS = 3;

async function tryOut(argvOf: (steps: readonly Step[]) => readonly string[], layout: Layout): Promise<void> {
  const hostMounts = parseMountinfo(await readFile("/proc/self/mountinfo", "utf8"));
  for (let tries = 1; ; tries += 1) {
    const steps = layout.steps.filter(isStillThere);
    const [file = "bwrap", ...args] = argvOf(steps);
    const trial = await runHostTool(file, args, PROBE_TIMEOUT_MS);
    if (tries < MAX_TRIALS && !steps.every(isStillThere)) continue;
    if (!trial.isOk) throw unavailable(trial.stderr.trim());
    const deviations = findDeviations(parseMountinfo(trial.stdout), { ...layout, steps }, hostMounts);
    if (deviations.length > 0) throw unavailable(`the mounts are wrong: ${deviations.slice(0, 5).join(", ")}`);
    return;
  }
}

/** The owner may remove a protected path while the sandbox is open; the sweep finds one that comes back. */
function isStillThere(step: Step): boolean {
  if (step.kind === "empty") return statOrUndefined(step.path)?.isDirectory() === true;
  if (step.kind !== "bind") return true;
  const stat = statOrUndefined(step.path);
  // The mount point of a folder of the sandbox's own exists from the beginning, or lies in another such folder.
  if (step.source !== step.path) return stat !== undefined || statOrUndefined(step.source)?.isDirectory() === true;
  return stat !== undefined && !stat.isSymbolicLink();
}

async function findBwrap(): Promise<{ bwrap: string; canForbidNesting: boolean }> {
  const bwrap = findHostTool("bwrap");
  if (bwrap === undefined) throw unavailable("the program bwrap is missing; it is in the package bubblewrap");
  const help = await runHostTool(bwrap, ["--help"], PROBE_TIMEOUT_MS);
  return { bwrap, canForbidNesting: help.stdout.includes("--disable-userns") };
}

function isolation(makesNetwork: boolean, canForbidNesting: boolean): string[] {
  const args = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--die-with-parent", "--new-session"];
  if (makesNetwork) args.push("--unshare-net");
  if (canForbidNesting) args.push("--disable-userns");
  return [...args, "--cap-drop", "ALL"];
}

/** bwrap itself begins with an empty folder. */
function base({ steps }: Layout): string[] {
  return steps.some(({ path }) => path === "/") ? [] : ["--ro-bind", "/", "/"];
}

function layoutArguments(steps: readonly Step[]): string[] {
  const seals: string[] = [];
  const args: string[] = [];
  for (const step of steps) {
    switch (step.kind) {
      case "bind":
        args.push(step.isWritable ? "--bind" : "--ro-bind", step.source, step.path);
        break;
      case "empty":
        if (step.path !== "/") args.push("--tmpfs", step.path);
        seals.push("--remount-ro", step.path);
        break;
      case "link":
        args.push("--symlink", step.target, step.path);
        break;
      case "overlay":
        throw unavailable("it mounts no layers");
      case "dev":
        args.push("--dev", step.path, "--tmpfs", "/dev/shm");
        seals.push("--remount-ro", step.path);
        break;
      case "proc":
        args.push("--proc", step.path);
        // Root may write /proc/sys by its owner bits alone.
        if (process.getuid?.() === 0) seals.push("--remount-ro", step.path);
        break;
    }
  }
  return [...args, ...seals];
}

function unavailable(reason: string): HeddleError {
  return new HeddleError("sandbox.unavailable", `bwrap: ${reason}`);
}
