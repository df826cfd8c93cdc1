/**
 * One sandbox and one set of processes per thread, kept between its turns while what they are made from stays the same, and closed
 * with everything inside when it changes or the thread is left.
 */
import { join } from "node:path";
import { blobsFolder, createStreamRedactor, type Redactor } from "@heddle/journal";
import {
  canonical,
  defined,
  HeddleError,
  type EnvironmentPolicy,
  type Envelope,
  type McpServerConfig,
  type McpState,
  type McpTokenSource,
  type Network,
} from "@heddle/protocol";
import { measure, SANDBOXES } from "@heddle/protocol/measure";
import {
  agentEnvironment,
  commandEnvironment,
  QUIET,
  openThreadState,
  openSandbox,
  openUnconfined,
  type ProtectedPathViolation,
  type Sandbox,
  type SandboxLimits,
  type SandboxPolicy,
  type ThreadState,
  type SandboxContext,
} from "@heddle/tools";
import type { McpServersOptions } from "@heddle/tools/mcp";
import type { NetworkLog } from "@heddle/tools/network";
import type { ViolationRecorder } from "./after-turns.ts";
import type { NetworkLogs } from "./network-logs.ts";
import { programFolders } from "./program-folders.ts";
import type { ChangedSandbox, TurnSandbox } from "../runners/runner.ts";

export interface SandboxOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** A variable, or a value, that is a key of Heddle's. */
  readonly isKey: (name: string, value: string) => boolean;
  readonly backend: "auto" | "namespaces" | "bwrap";
  /** Removes secrets from command output, as from events. */
  readonly redactor: Redactor;
  readonly mcpLogins: McpTokenSource;
  /** Nobody can be asked, and no thread waits for its next turn. */
  readonly isUnattended: boolean;
  readonly limits?: SandboxLimits | undefined;
  readonly onMcpState: (threadId: string, state: McpState) => void;
  readonly networkLogs: NetworkLogs;
  /** Receives violations found when a sandbox is replaced, or at the end. */
  readonly onViolations: ViolationRecorder;
}

export interface EnterOptions {
  readonly threadId: string;
  readonly workspace: string;
  readonly envelope: Envelope;
  readonly mcpServers: readonly McpServerConfig[];
  /** What commands see of the environment. */
  readonly policy: EnvironmentPolicy;
  /** MCP tools that need no approval: names, or prefixes ending in `*`. */
  readonly allowTools: readonly string[];
}

export type OpenSandboxes = ReturnType<typeof openSandboxes>;
type Violations = readonly ProtectedPathViolation[];

/** Without what the turn alone knows. */
type Entered = Omit<TurnSandbox, "ceiling" | "named">;

/** With the wider sandboxes, by envelope. */
interface OpenSandbox extends Entered {
  readonly madeFrom: string;
  readonly wider: Map<string, Promise<SandboxContext>>;
}

export function openSandboxes(options: SandboxOptions) {
  const open = new Map<string, OpenSandbox>();
  /** Of idle threads whose sandbox was closed: ended commands whose end the model has not seen. */
  const pendingSteering = new Map<string, ThreadState>();

  /** Ends everything inside, then looks for violations once more. */
  async function leave(threadId: string): Promise<Violations> {
    const entry = open.get(threadId);
    open.delete(threadId);
    const state = entry?.state ?? pendingSteering.get(threadId);
    pendingSteering.delete(threadId);
    const byServers = (await entry?.mcp?.close()) ?? [];
    await state?.[Symbol.asyncDispose]();
    return entry === undefined ? [] : [...byServers, ...(await inEach(entry, (sandbox) => sandbox.close()))];
  }

  /** As `leave`, unless something still runs there (undefined); output of ended commands is kept. */
  async function rest(threadId: string): Promise<Violations | undefined> {
    const entry = open.get(threadId);
    if (entry === undefined) return [];
    if (entry.state.processes.running.length > 0) return undefined;
    if (entry.state.processes.size === 0) return leave(threadId);
    open.delete(threadId);
    pendingSteering.set(threadId, entry.state);
    const byServers = (await entry.mcp?.close()) ?? [];
    return [...byServers, ...(await inEach(entry, (sandbox) => sandbox.close()))];
  }

  async function fill(given: EnterOptions, sandbox: Sandbox, state: ThreadState): Promise<Entered> {
    const { threadId, workspace, envelope, mcpServers, allowTools } = given;
    const own = { ...options, threadId, mcpServers };
    const openLike = (network: Network): Promise<Sandbox> => openFor({ ...envelope, network }, workspace, own);
    const wider = widerSandboxes(state, (to, visible) => openFor(to, workspace, { ...own, visible }));
    const servers = await openServers(own, { workspace, allowTools, sandbox, openSandbox: openLike });
    const change = (to: Envelope): Promise<ChangedSandbox> => changeTo({ ...given, envelope: to });
    const entry: OpenSandbox = { madeFrom: originOf(given), envelope, sandbox, state, change, ...wider, ...servers };
    open.set(threadId, entry);
    return entry;
  }

  async function changeTo(given: EnterOptions): Promise<ChangedSandbox> {
    const { threadId, workspace, envelope } = given;
    const left = requireOpen(open, threadId);
    const sandbox = await openFor(envelope, workspace, { ...options, ...given });
    // Known before anything ends, so that it is closed with the thread whatever happens here.
    const sandboxContext = await fill(given, sandbox, left.state);
    return { sandboxContext, violations: await endLeft(left) };
  }

  return {
    environmentOf: (policy: EnvironmentPolicy) => environmentOf(options, policy),
    /** Throws `sandbox.unavailable` when the host cannot enforce this envelope. */
    async enter(given: EnterOptions): Promise<Entered> {
      const { threadId, workspace, envelope, policy, mcpServers } = given;
      const environment = { ...environmentOf(options, policy), ...QUIET };
      const known = open.get(threadId);
      if (known?.madeFrom === originOf(given)) {
        known.state.useEnvironment(environment);
        const entry = { ...known, envelope };
        open.set(threadId, entry);
        return entry;
      }
      if (known !== undefined) await options.onViolations(threadId, await leave(threadId));
      const own = { ...options, threadId, mcpServers };
      const sandbox = await measure(SANDBOXES, { threadId }, () => openFor(envelope, workspace, own));
      const state = pendingSteering.get(threadId) ?? newState(options, environment);
      state.useEnvironment(environment);
      pendingSteering.delete(threadId);
      return fill(given, sandbox, state);
    },
    /** How many threads have one. */
    count: (): number => open.size,
    state: (threadId: string): ThreadState | undefined => open.get(threadId)?.state,
    /** Of the thread itself; beside it there may be wider ones for single calls. */
    own: (threadId: string): Sandbox | undefined => open.get(threadId)?.sandbox,
    mcpStates: (threadId: string): readonly McpState[] => open.get(threadId)?.mcp?.states ?? [],
    /** undefined: the thread has no open sandbox. */
    living: (threadId: string): Living | undefined => livingIn(open.get(threadId)),
    /** Looks for violations in every sandbox of the thread. */
    async sweep(threadId: string): Promise<Violations> {
      const entry = open.get(threadId);
      if (entry === undefined) return [];
      const isLast = entry.state.processes.running.length === 0 && entry.mcp?.hasProcesses !== true;
      const byServers = (await entry.mcp?.sweep()) ?? [];
      return [...byServers, ...(await inEach(entry, (sandbox) => sandbox.sweep({ isLast })))];
    },
    leave,
    rest,
    async [Symbol.asyncDispose](): Promise<void> {
      for (const threadId of [...open.keys(), ...pendingSteering.keys()])
        await options.onViolations(threadId, await leave(threadId));
    },
  };
}

interface Living {
  readonly ends: readonly Promise<unknown>[];
  readonly hasServers: boolean;
}

function livingIn(entry: OpenSandbox | undefined): Living | undefined {
  if (entry === undefined) return undefined;
  const ends = entry.state.processes.running.map(({ ended }) => ended);
  return { ends, hasServers: entry.mcp?.hasProcesses === true };
}

function newState({ home, redactor }: SandboxOptions, environment: Readonly<Record<string, string>>): ThreadState {
  const newFilter = () => createStreamRedactor(redactor);
  return openThreadState({ blobFolder: blobsFolder(home), environment, newFilter });
}

function requireOpen(open: ReadonlyMap<string, OpenSandbox>, threadId: string): OpenSandbox {
  const found = open.get(threadId);
  if (found === undefined) throw new HeddleError("internal", `thread ${threadId} has no open sandbox`);
  return found;
}

/** Ends everything in a sandbox that is left. The state stays: what ended commands have printed can still be read. */
async function endLeft(left: OpenSandbox): Promise<Violations> {
  const byServers = (await left.mcp?.close()) ?? [];
  await Promise.all(left.state.processes.running.map((command) => command.kill()));
  return [...byServers, ...(await inEach(left, (each) => each.close()))];
}

/** What the sandbox and the servers in it are made from. What is allowed within it may change. */
function originOf({ workspace, envelope, mcpServers, allowTools }: EnterOptions): string {
  const { readRoots, writeRoots, masked, network, sandbox } = envelope;
  const limits = limitsOf(envelope, {});
  return canonical({
    workspace,
    ...defined({ readRoots }),
    writeRoots,
    masked,
    network,
    sandbox,
    limits,
    mcpServers,
    allowTools,
  });
}

function environmentOf(
  { env: source, redactor, isKey }: SandboxOptions,
  policy: EnvironmentPolicy,
): Record<string, string> {
  const looksSecret = (value: string): boolean => redactor.text(value) !== value;
  return agentEnvironment({ source, policy, isKey, looksSecret });
}

/** The MCP client is loaded only where there are servers. */
async function openServers(
  options: SandboxOptions & Pick<EnterOptions, "threadId" | "mcpServers">,
  within: Pick<McpServersOptions, "workspace" | "allowTools" | "sandbox" | "openSandbox">,
): Promise<Pick<TurnSandbox, "mcp">> {
  const { mcpServers: servers, threadId, env, mcpLogins: logins, isUnattended } = options;
  if (servers.length === 0) return {};
  const { openMcpServers } = await import("@heddle/tools/mcp");
  const onState = (state: McpState): void => options.onMcpState(threadId, state);
  const environment = commandEnvironment(env, QUIET);
  return { mcp: openMcpServers({ ...within, servers, environment, env, logins, mayElicit: !isUnattended, onState }) };
}

async function inEach(entry: OpenSandbox, look: (sandbox: Sandbox) => Promise<Violations>): Promise<Violations> {
  const beside = await Promise.allSettled(entry.wider.values());
  const opened = beside.flatMap((end) => (end.status === "fulfilled" ? [end.value.sandbox] : []));
  const violations: ProtectedPathViolation[] = [];
  for (const sandbox of [...opened, entry.sandbox]) violations.push(...(await look(sandbox)));
  return violations;
}

type Wider = Pick<OpenSandbox, "widen" | "narrow" | "wider">;

function widerSandboxes(
  state: ThreadState,
  open: (envelope: Envelope, visible?: readonly string[]) => Promise<Sandbox>,
): Wider {
  const wider: OpenSandbox["wider"] = new Map();
  return {
    wider,
    widen(to, visible) {
      const name = canonical(to);
      const known = wider.get(name);
      if (known !== undefined) return known;
      const widened = open(to, visible).then((opened) => ({ envelope: to, sandbox: opened }));
      wider.set(name, widened);
      // What could not be opened now may be later.
      widened.catch(() => wider.delete(name));
      return widened;
    },
    async narrow(from) {
      const widened = await wider.get(canonical(from));
      wider.delete(canonical(from));
      if (widened === undefined) return [];
      await state.processes.killAll(widened.sandbox);
      return widened.sandbox.close();
    },
  };
}

/** The lower of the owner's and the envelope's. */
function limitsOf(
  { limits = {}, effects }: Envelope,
  { processes, memoryBytes, cpuSec }: SandboxLimits,
): SandboxLimits {
  return defined({
    processes: lower(processes, limits.processes),
    memoryBytes: lower(memoryBytes, limits.memoryBytes),
    cpuSec: lower(cpuSec, limits.cpuSec),
    keepsForChildren: effects.includes("spawn") ? true : undefined,
  });
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

async function logOf({ networkLogs, threadId }: SandboxOptions & Pick<EnterOptions, "threadId">): Promise<NetworkLog> {
  return (await import("./network-logs.ts")).networkLogOf(networkLogs, threadId);
}

async function openFor(
  envelope: Envelope,
  workspace: string,
  options: SandboxOptions &
    Pick<EnterOptions, "threadId" | "mcpServers"> & { readonly visible?: readonly string[] | undefined },
): Promise<Sandbox> {
  const { readRoots, writeRoots, masked, network } = envelope;
  const visible = [...programFolders(options.mcpServers), ...(options.visible ?? [])];
  const limits = limitsOf(envelope, options.limits ?? {});
  const policy: SandboxPolicy = { workspace, readRoots, writeRoots, masked, network, visible, limits };
  if (envelope.sandbox === "off") return openUnconfined(policy);
  const hosts = typeof network === "string" ? undefined : { log: await logOf(options) };
  return openSandbox(policy, {
    hosts,
    backend: options.backend,
    quarantineDir: join(options.home, "quarantine", options.threadId),
    // Among many threads most are idle, and a pause of one is no reason to hold processes for it.
    opensAt: options.isUnattended ? "pause" : "call",
    memoryFile: join(options.home, "cache", "host-sandbox"),
  });
}
