/**
 * Opens a sandbox, or refuses. `auto` tries namespaces, then bubblewrap; when the host gives neither, it throws
 * `sandbox.unavailable` with the reason and what would fix it, and never gives a weaker sandbox.
 */
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, isHeddleError, reasonOf, type SandboxHolds } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { HostAccess } from "../network/way-out.ts";
import { Guard } from "./guard.ts";
import { checkedRoots, readHostFacts } from "./host-facts.ts";
import { HostSockets } from "./host-sockets.ts";
import { checkWriteRoots, planLayout, type RoomTree } from "./layout.ts";
import { openHostMemory } from "./host-memory.ts";
import { openLimiter } from "./limiter.ts";
import { openHolder, type BackendOptions, type Holder } from "./namespaces.ts";
import { retrying } from "./retrying-holder.ts";
import type { ProtectedPathViolation, Sandbox, SandboxPolicy, SweepOptions } from "./sandbox.ts";
import { openScratch, type Scratch } from "./scratch.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { statOrUndefined } from "./tree-index.ts";
import { waitingSandbox } from "./waiting-sandbox.ts";

export type Backend = "namespaces" | "bwrap";

export interface OpenSandboxOptions {
  readonly backend?: "auto" | Backend;
  /** Where protected paths that a command made are moved; outside every write root. Default: a new temporary folder. */
  readonly quarantineDir?: string;
  /** For private temporary files. Default: the system's folder. */
  readonly tmpDir?: string;
  /** Opened by the first call when this host has given such a sandbox to this process before; otherwise at once. */
  readonly mayWait?: boolean;
  /** A file that remembers what this host gives, so that its answer is not awaited again. */
  readonly memoryFile?: string;
  readonly room?: RoomMount;
  /** For a network that is a list of hosts. Default: names are looked up by the system, and what is reached is not counted. */
  readonly hosts?: HostAccess | undefined;
}

/**
 * A separate tree at the workspace. What is written there reaches nothing else, so no path in it is protected or swept.
 */
export interface RoomMount {
  readonly tree: RoomTree;
  /** Closed with the sandbox, or when opening fails. */
  readonly scratch: Scratch;
  /** Called with a process that sees the mounts, before any command can enter; again when they are rebuilt. */
  readonly onMounted?: (pid: number) => void;
}

export async function openSandbox(policy: SandboxPolicy, options: OpenSandboxOptions = {}): Promise<Sandbox> {
  failpoint("sandbox.before-open");
  if (process.platform !== "linux") {
    await options.room?.scratch[Symbol.asyncDispose]();
    throw new HeddleError(
      "sandbox.unavailable",
      `Heddle has no kernel sandbox for ${process.platform} yet. Run it in a Linux container or virtual machine, ` +
        "or choose danger-full-access if you accept that commands are not confined.",
    );
  }
  const { backend = "auto", mayWait = false } = options;
  const given = mayWait ? givenBefore.get(`${backend} ${reachOf(policy.network)}`) : undefined;
  if (given !== undefined) {
    // Faults of the policy itself are reported now.
    checkWriteRoots(checkedRoots(policy).writeRoots);
    return waitingSandbox(given, policy, () => openNow(policy, options));
  }
  const sandbox = await openNow(policy, options);
  if (sandbox.level !== "none") givenBefore.set(`${backend} ${reachOf(policy.network)}`, sandbox.level);
  return sandbox;
}

/** What this host gave to this process, by what was asked for. */
const givenBefore = new Map<string, Sandbox["level"]>();

async function openNow(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
  try {
    return await openConfined(policy, options);
  } catch (error) {
    if (isHeddleError(error)) throw error;
    // Out of descriptors, processes or space: without a sandbox nothing runs.
    const why = reasonOf(error);
    throw new HeddleError("sandbox.failed", `the sandbox could not be opened: ${why}`, { cause: error });
  }
}

async function openConfined(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
  const { backend = "auto", tmpDir, room } = options;
  const scratch = room?.scratch ?? openScratch(tmpDir);
  try {
    const sockets = new HostSockets();
    const facts = await readHostFacts(policy, { scratch, sockets });
    checkWriteRoots(facts.writeRoots);
    const guard = room === undefined ? openGuard(policy, facts.writeRoots, options) : undefined;
    const guarded = (await guard?.start()) ?? NOTHING_GUARDED;
    const { network } = policy;
    const limiter = openLimiter(policy.limits ?? {});
    const tree = room?.tree;
    const shared = { network, hosts: options.hosts, scratch, limiter, sockets, tree, onMounted: room?.onMounted };
    const layout = planLayout({ ...facts, ...guarded, tree });
    const memory = options.memoryFile === undefined ? undefined : openHostMemory(options.memoryFile);
    const what = `namespaces ${reachOf(network)}`;
    const isExpected = backend !== "bwrap" && memory?.has(what) === true;
    const { level, holder: first } = await openFirst(backend, { layout, ...shared, isExpected });
    if (isExpected) first.ready.catch(() => memory?.forget());
    else if (level === "namespaces")
      first.ready.then(
        () => memory?.keep(what),
        () => undefined,
      );
    // The host changes while the plan is made: mounts and sockets come and go.
    const holder = retrying(first, async () => {
      const isStillThere = (path: string): boolean => statOrUndefined(path) !== undefined;
      const again = planLayout({
        ...(await readHostFacts(policy, { scratch, sockets })),
        protectedPaths: guarded.protectedPaths.filter(isStillThere),
        gitFolders: guarded.gitFolders.filter(isStillThere),
        tree,
      });
      return await openBackend(level, { layout: again, ...shared, isExpected: false });
    });
    failpoint("sandbox.after-open");
    return confinedSandbox({ level, policy, holder, guard, scratch, limiter });
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

const NOTHING_GUARDED: Awaited<ReturnType<Guard["start"]>> = { protectedPaths: [], gitFolders: [] };

function openGuard(policy: SandboxPolicy, writeRoots: readonly string[], options: OpenSandboxOptions): Guard {
  let made: Promise<string> | undefined;
  return new Guard({
    writeRoots,
    absentMasked: policy.masked.filter((path) => statOrUndefined(path) === undefined),
    quarantineDir: async () =>
      options.quarantineDir ?? (await (made ??= mkdtemp(join(temporaryFolder(), "heddle-quarantine-")))),
  });
}

async function openBackend(level: Backend, options: BackendOptions): Promise<Holder> {
  return level === "namespaces" ? await openHolder(options) : await (await import("./bwrap.ts")).openBwrap(options);
}

async function openFirst(
  wanted: "auto" | Backend,
  options: BackendOptions,
): Promise<{ level: Backend; holder: Holder }> {
  // With an explicit choice, the error names its reason, not the alternatives.
  if (wanted !== "auto") return { level: wanted, holder: await openBackend(wanted, options) };
  const reasons: string[] = [];
  for (const level of ["namespaces", "bwrap"] as const) {
    try {
      return { level, holder: await openBackend(level, options) };
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "sandbox.unavailable") throw error;
      reasons.push(error.message);
    }
  }
  throw new HeddleError(
    "sandbox.unavailable",
    `this host has no kernel sandbox (${reasons.join("; ")}). ` +
      "Allow unprivileged user namespaces (sysctl user.max_user_namespaces above 0; on Ubuntu " +
      "kernel.apparmor_restrict_unprivileged_userns=0; for a container a security profile that permits unshare and mount), " +
      "or install bubblewrap.",
  );
}

interface ConfinedParts extends Pick<BackendOptions, "scratch" | "limiter"> {
  readonly level: Backend;
  readonly policy: SandboxPolicy;
  readonly holder: Holder;
  /** Absent for a room. */
  readonly guard: Guard | undefined;
}

function confinedSandbox({ level, policy, holder, guard, scratch, limiter }: ConfinedParts): Sandbox {
  let wasEntered = false;
  let lastSweep: Promise<unknown> = Promise.resolve();
  let closing: Promise<readonly ProtectedPathViolation[]> | undefined;
  /** Sweeps share one index, so they run one after another. */
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const result = lastSweep.then(work);
    lastSweep = result.catch(() => undefined);
    return result;
  };
  const sweep = async ({ isLast = false }: SweepOptions = {}): Promise<readonly ProtectedPathViolation[]> =>
    // Without a command there is nothing to look for.
    wasEntered && guard !== undefined ? await inOrder(() => guard.sweep({ isLast })) : [];
  const end = async (): Promise<readonly ProtectedPathViolation[]> => {
    try {
      await holder[Symbol.asyncDispose]();
      limiter[Symbol.dispose]();
      return await sweep({ isLast: true });
    } finally {
      await scratch[Symbol.asyncDispose]();
    }
  };
  const close = (): Promise<readonly ProtectedPathViolation[]> => (closing ??= end());
  return {
    level,
    policy,
    ready: holder.ready,
    async enter(argv, options) {
      if (closing !== undefined) throw new HeddleError("sandbox.failed", "the sandbox is closed");
      wasEntered = true;
      return await holder.enter(argv, options);
    },
    standBy() {
      if (closing === undefined) holder.standBy();
    },
    accept: () => inOrder(async () => await guard?.accept()),
    sweep,
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  };
}

const UNLIMITED: SandboxHolds = { processes: { by: "nothing" }, memory: { by: "nothing" } };

/** No sandbox: for danger-full-access, which the owner chose, and for the script of the demo. */
export function openUnconfined(policy: SandboxPolicy): Sandbox {
  return {
    level: "none",
    policy,
    ready: Promise.resolve(UNLIMITED),
    enter: async (argv, { cwd, env }) => {
      const [file, ...args] = argv;
      if (file === undefined) throw new HeddleError("tool.invalid-arguments", "the command is empty");
      return { kind: "spawn", file, args, env, cwd, pidDepth: 0, endsWithTree: false };
    },
    standBy: () => undefined,
    accept: async () => undefined,
    sweep: async () => [],
    close: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** A list of hosts is reached through Heddle: for the kernel it is no network. */
function reachOf(network: SandboxPolicy["network"]): "all" | "none" {
  return network === "all" ? "all" : "none";
}
