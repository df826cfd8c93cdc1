/**
 * A sandbox of namespaces, or of bubblewrap, with everything around it: private folders, protected paths, limits. A run that
 * calls nothing does not load this.
 */
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { Guard } from "./guard.ts";
import { readHostFacts } from "./host-facts.ts";
import { openHostMemory } from "./host-memory.ts";
import { HostSockets } from "./host-sockets.ts";
import { planLayout } from "./layout.ts";
import { openLimiter } from "./limiter.ts";
import { openHolder, type BackendOptions, type Holder } from "./namespaces.ts";
import { isRemembered, namespacesFor, type Backend, type OpenSandboxOptions } from "./open.ts";
import { retrying } from "./retrying-holder.ts";
import type { ProtectedPathViolation, Sandbox, SandboxPolicy, SweepOptions } from "./sandbox.ts";
import { openScratch } from "./scratch.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { statOrUndefined } from "./tree-index.ts";
import { checkWriteRoots } from "./write-roots.ts";

export async function openConfined(policy: SandboxPolicy, options: OpenSandboxOptions): Promise<Sandbox> {
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
    const isExpected = isRemembered(policy, options);
    const { level, holder: first } = await openFirst(backend, { layout, ...shared, isExpected });
    if (isExpected) first.ready.catch(() => memory?.forget());
    else if (level === "namespaces")
      first.ready.then(
        () => memory?.keep(namespacesFor(network)),
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
