/**
 * Opens a sandbox, or refuses. `auto` tries namespaces, then bubblewrap; when the host gives neither, it throws
 * `sandbox.unavailable` with the reason and what would fix it, and never gives a weaker sandbox.
 */
import { HeddleError, isHeddleError, reasonOf, type SandboxHolds } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { HostAccess } from "../network/way-out.ts";
import { openHostMemory } from "./host-memory.ts";
import type { RoomTree } from "./layout.ts";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";
import type { Scratch } from "./scratch.ts";
import { waitingSandbox } from "./waiting-sandbox.ts";
import { checkedRoots, checkWriteRoots } from "./write-roots.ts";

export type Backend = "namespaces" | "bwrap";

export interface OpenSandboxOptions {
  readonly backend?: "auto" | Backend;
  /** Where protected paths that a command made are moved; outside every write root. Default: a new temporary folder. */
  readonly quarantineDir?: string;
  /** For private temporary files. Default: the system's folder. */
  readonly tmpDir?: string;
  /**
   * Opened by what first runs in it, or by the first such sign (`standBy`), where this host has given such a sandbox before: to
   * this process, or by the memory. Absent, and elsewhere: at once.
   */
  readonly opensAt?: "call" | "pause";
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
  const { opensAt } = options;
  const given = opensAt === undefined ? undefined : givenBefore(policy, options);
  if (opensAt !== undefined && given !== undefined) {
    // Faults of the policy itself are reported now.
    checkWriteRoots(checkedRoots(policy).writeRoots);
    return waitingSandbox(given, policy, { opensAt, open: () => openNow(policy, options) });
  }
  const sandbox = await openNow(policy, options);
  if (sandbox.level !== "none") givenHere.set(wantedOf(policy, options), sandbox.level);
  return sandbox;
}

/** What this host gave to this process, by what was asked for. */
const givenHere = new Map<string, Sandbox["level"]>();

function wantedOf({ network }: SandboxPolicy, { backend = "auto" }: OpenSandboxOptions): string {
  return `${backend} ${reachOf(network)}`;
}

function givenBefore(policy: SandboxPolicy, options: OpenSandboxOptions): Sandbox["level"] | undefined {
  return givenHere.get(wantedOf(policy, options)) ?? (isRemembered(policy, options) ? "namespaces" : undefined);
}

/** Namespaces are all that is remembered. */
export function isRemembered({ network }: SandboxPolicy, { backend, memoryFile }: OpenSandboxOptions): boolean {
  return backend !== "bwrap" && memoryFile !== undefined && openHostMemory(memoryFile).has(namespacesFor(network));
}

/** The name of a sandbox of namespaces in the memory. */
export function namespacesFor(network: SandboxPolicy["network"]): string {
  return `namespaces ${reachOf(network)}`;
}

async function openNow(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
  try {
    return await (await import("./open-confined.ts")).openConfined(policy, options);
  } catch (error) {
    if (isHeddleError(error)) throw error;
    // Out of descriptors, processes or space: without a sandbox nothing runs.
    const why = reasonOf(error);
    throw new HeddleError("sandbox.failed", `the sandbox could not be opened: ${why}`, { cause: error });
  }
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
