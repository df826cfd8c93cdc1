/**
 * Opens the kernel layer, or refuses. `auto` takes namespaces first, then bubblewrap; when the host gives neither the
 * answer is `sandbox.unavailable` with the reason and what would fix it, never a weaker sandbox.
 */
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, isHeddleError, type SandboxHolds } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { Guard } from "./guard.ts";
import { checkedRoots, readHostFacts } from "./host-facts.ts";
import { HostSockets } from "./host-sockets.ts";
import { checkWriteRoots, planLayout, type Layout, type RoomTree } from "./layout.ts";
import { startHolder, type HolderProcess, type Network } from "./holder-process.ts";
import { openHostMemory } from "./host-memory.ts";
import { openLimiter, type Limiter } from "./limiter.ts";
import { openHolder, type Holder } from "./namespaces.ts";
import type { PreparedSandbox } from "./prepare.ts";
import { retrying } from "./retrying-holder.ts";
import type { ProtectedPathViolation, Sandbox, SandboxPolicy, SweepOptions } from "./sandbox.ts";
import { openScratch, type Scratch } from "./scratch.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { statOrUndefined } from "./tree-index.ts";
import { WaitingSandbox } from "./waiting-sandbox.ts";

export type Backend = "namespaces" | "bwrap";

export interface OpenSandboxOptions {
  readonly backend?: "auto" | Backend;
  /** Where protected paths that a command made are kept; outside every write root. Default: a new temporary folder. */
  readonly quarantineDir?: string;
  /** Where the sandbox keeps its private temporary files. Default: the system's folder for them. */
  readonly tmpDir?: string;
  /** Opened with the first call when this host has given such a sandbox to this process before; otherwise at once. */
  readonly mayWait?: boolean;
  /** Used when it fits; what is left of it belongs to whoever prepared it. */
  readonly prepared?: PreparedSandbox | undefined;
  /** A file that remembers what this host gives; with it, a host that has given a sandbox is not waited for. */
  readonly memoryFile?: string;
  /** Opens a room: see `RoomPlace`. */
  readonly room?: RoomPlace;
}

/**
 * A tree of its own at the workspace. What is written there reaches nobody, so nothing in it is guarded: no path is protected
 * and no sweep looks for any.
 */
export interface RoomPlace {
  readonly tree: RoomTree;
  /** Closed with the sandbox, or when it does not open. */
  readonly scratch: Scratch;
  /** Told the process whose root the mounts are seen from, before any command can enter; again when they are made anew. */
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
  const given = mayWait ? givenBefore.get(`${backend} ${policy.network}`) : undefined;
  if (given !== undefined) {
    // What is wrong with the policy itself is told now.
    checkWriteRoots(checkedRoots(policy).writeRoots);
    return new WaitingSandbox(given, policy, () => openNow(policy, options));
  }
  const sandbox = await openNow(policy, options);
  if (sandbox.level !== "none") givenBefore.set(`${backend} ${policy.network}`, sandbox.level);
  return sandbox;
}

/** What this host has been seen to give: by what was asked for. */
const givenBefore = new Map<string, Sandbox["level"]>();

async function openNow(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
  try {
    return await openConfined(policy, options);
  } catch (error) {
    if (isHeddleError(error)) throw error;
    // Out of descriptors, of processes or of room: whatever it is, without a wall nothing runs.
    const why = error instanceof Error ? error.message : String(error);
    throw new HeddleError("sandbox.failed", `the sandbox could not be opened: ${why}`, { cause: error });
  }
}

async function openConfined(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
  const { backend = "auto", tmpDir, room } = options;
  const prepared = backend === "bwrap" ? undefined : options.prepared?.take(policy.network, tmpDir);
  const scratch = room?.scratch ?? prepared?.scratch ?? openScratch(tmpDir);
  try {
    const sockets = new HostSockets();
    const facts = await readHostFacts(policy, { scratch, sockets });
    checkWriteRoots(facts.writeRoots);
    const guard = room === undefined ? openGuard(policy, facts.writeRoots, options) : undefined;
    const guarded = (await guard?.start()) ?? NOTHING_GUARDED;
    const { network } = policy;
    const limiter = openLimiter(policy.limits ?? {});
    const tree = room?.tree;
    const place = { network, scratch, limiter, sockets, tree, onMounted: room?.onMounted };
    const layout = planLayout({ ...facts, ...guarded, tree });
    const memory = options.memoryFile === undefined ? undefined : openHostMemory(options.memoryFile);
    const what = `namespaces ${network}`;
    const isExpected = backend !== "bwrap" && memory?.has(what) === true;
    const { level, holder: first } = await openFirst(backend, { layout, ...place, prepared, isExpected });
    if (isExpected) first.ready.catch(() => memory?.forget());
    else if (level === "namespaces") first.ready.then(() => memory?.keep(what), noop);
    // The plan is made from what the host looked like a moment ago, and hosts change: mounts and sockets come and go.
    const holder = retrying(first, async () => {
      const isStillThere = (path: string): boolean => statOrUndefined(path) !== undefined;
      const again = planLayout({
        ...(await readHostFacts(policy, { scratch, sockets })),
        protectedPaths: guarded.protectedPaths.filter(isStillThere),
        gitFolders: guarded.gitFolders.filter(isStillThere),
        tree,
      });
      return await openBackend(level, { layout: again, ...place, isExpected: false });
    });
    failpoint("sandbox.after-open");
    return new ConfinedSandbox({ level, policy, holder, guard, scratch, limiter });
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

const NOTHING_GUARDED: Awaited<ReturnType<Guard["start"]>> = { protectedPaths: [], gitFolders: [] };

function openGuard(policy: SandboxPolicy, writeRoots: readonly string[], options: OpenSandboxOptions): Guard {
  return new Guard({
    writeRoots,
    absentMasked: policy.masked.filter((path) => statOrUndefined(path) === undefined),
    quarantineDir: once(
      async () => options.quarantineDir ?? (await mkdtemp(join(temporaryFolder(), "heddle-quarantine-"))),
    ),
  });
}

const noop = (): void => undefined;

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

interface BackendOptions {
  readonly layout: Layout;
  readonly network: Network;
  readonly scratch: Scratch;
  readonly sockets: HostSockets;
  readonly prepared?: HolderProcess | undefined;
  readonly isExpected: boolean;
  readonly limiter: Limiter;
  readonly tree: RoomTree | undefined;
  readonly onMounted: RoomPlace["onMounted"];
}

async function openBackend(level: Backend, { prepared, isExpected, ...options }: BackendOptions): Promise<Holder> {
  if (level === "bwrap") return await (await import("./bwrap.ts")).openBwrap(options);
  const { network, scratch, ...rest } = options;
  return await openHolder({ ...rest, process: prepared ?? startHolder(network, scratch), isExpected });
}

async function openFirst(
  wanted: "auto" | Backend,
  options: BackendOptions,
): Promise<{ level: Backend; holder: Holder }> {
  // Whoever wants this one and no other is told why it cannot be, not what else there is.
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

interface ConfinedParts {
  readonly level: Backend;
  readonly policy: SandboxPolicy;
  readonly holder: Holder;
  /** Absent for a room. */
  readonly guard: Guard | undefined;
  readonly scratch: Scratch;
  readonly limiter: Limiter;
}

class ConfinedSandbox implements Sandbox {
  readonly level: Backend;
  readonly policy: SandboxPolicy;
  readonly #parts: ConfinedParts;
  #wasEntered = false;
  /** Sweeps share one index, so they run one after another. */
  #lastSweep: Promise<unknown> = Promise.resolve();
  #closing: Promise<readonly ProtectedPathViolation[]> | undefined;

  constructor(parts: ConfinedParts) {
    this.level = parts.level;
    this.policy = parts.policy;
    this.#parts = parts;
  }

  get ready(): Sandbox["ready"] {
    return this.#parts.holder.ready;
  }

  async enter(...[argv, options]: Parameters<Sandbox["enter"]>): ReturnType<Sandbox["enter"]> {
    if (this.#closing !== undefined) throw new HeddleError("sandbox.failed", "the sandbox is closed");
    this.#wasEntered = true;
    return await this.#parts.holder.enter(argv, options);
  }

  standBy(): void {
    if (this.#closing === undefined) this.#parts.holder.standBy();
  }

  async accept(): Promise<void> {
    const result = this.#lastSweep.then(() => this.#parts.guard?.accept());
    this.#lastSweep = result.catch(() => undefined);
    await result;
  }

  async sweep({ isLast = false }: SweepOptions = {}): Promise<readonly ProtectedPathViolation[]> {
    // Where nobody was, there is nothing to look for.
    const { guard } = this.#parts;
    if (!this.#wasEntered || guard === undefined) return [];
    const result = this.#lastSweep.then(() => guard.sweep({ isLast }));
    this.#lastSweep = result.catch(() => undefined);
    return await result;
  }

  async close(): Promise<readonly ProtectedPathViolation[]> {
    this.#closing ??= this.#close();
    return await this.#closing;
  }

  async #close(): Promise<readonly ProtectedPathViolation[]> {
    const { holder, scratch, limiter } = this.#parts;
    try {
      await holder[Symbol.asyncDispose]();
      limiter[Symbol.dispose]();
      return await this.sweep({ isLast: true });
    } finally {
      await scratch[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const UNLIMITED: SandboxHolds = { processes: { by: "nothing" }, memory: { by: "nothing" } };

/** No wall at all: for danger-full-access, which the owner typed, and for the demo's known script. */
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
