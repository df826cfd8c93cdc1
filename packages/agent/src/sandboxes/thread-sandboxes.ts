/**
 * The sandboxes of threads between turns: opened for a turn, checked or closed at its end, watched while something
 * still runs there, closed when idle. Violations outside a turn are recorded here.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError, type Envelope, type McpServerConfig, type McpState, type TurnSettings } from "@heddle/protocol";
import type { ProtectedPathViolation } from "@heddle/tools";
import type { OfThread } from "../children/parent-envelope.ts";
import { createAfterTurns, recordViolations } from "./after-turns.ts";
import type { HeddleOptions } from "../heddle.ts";
import { keyCheck } from "../keys-in-use.ts";
import { createIdleSandboxes } from "./idle-sandboxes.ts";
import { createOutputCollector } from "../evidence/collect-outputs.ts";
import type { BroughtServers } from "../mcp/brought-servers.ts";
import type { MessageBound } from "../messages/bound.ts";
import { createListeners } from "../turns/live.ts";
import { createThreadServers } from "../mcp/thread-servers.ts";
import type { LazyMcpLogins } from "../mcp/mcp-logins.ts";
import type { NetworkLogs } from "./network-logs.ts";
import { openSandboxes, type OpenSandboxes } from "./open-sandboxes.ts";
import type { TurnOutcome, TurnSandbox, TurnRequest } from "../runners/runner.ts";
import type { Serial } from "../turns/serial.ts";
import { withPluginServers } from "../context/installed.ts";
import { admissionOf } from "../turns/outcome.ts";
import { turnEnvelope, type TurnEnvelope } from "../turns/turn-envelope.ts";

export interface EnterThread extends OfThread {
  readonly workspace: string;
  /** Of a turn that messages started. */
  readonly message?: MessageBound | undefined;
  readonly settings: TurnSettings;
  /** The caller may not work without a sandbox, whatever envelope is named. */
  readonly staysInSandbox?: boolean | undefined;
}

export type ThreadSandboxes = ReturnType<typeof createThreadSandboxes>;

interface Within {
  readonly journal: Journal;
  readonly mcpLogins: LazyMcpLogins;
  /** Serializes the starts of a thread: none begins in a sandbox that is being closed. */
  readonly starts: Serial;
  readonly isWorkedIn: (threadId: string) => boolean;
}

export function createThreadSandboxes(options: HeddleOptions, { journal, mcpLogins, starts, isWorkedIn }: Within) {
  const brought = loadedWhenBrought(journal);
  const mcpStates = createListeners<McpState>();
  const logs: NetworkLogs = new Map();
  const record = foundIn(journal, logs);
  const sandboxes = openSandboxes({
    networkLogs: logs,
    home: options.home,
    env: options.env,
    backend: options.sandboxBackend ?? "auto",
    redactor: journal.redactor,
    isKey: keyCheck(options, journal.redactor),
    mcpLogins,
    isUnattended: options.isUnattended,
    limits: options.sandboxLimits,
    onMcpState: (threadId, state) => mcpStates.tell(threadId, state),
    onViolations: record,
  });
  const afterTurns = createAfterTurns({ sandboxes, record, everyMs: options.sweepEveryMs });
  const outputs = createOutputCollector(journal, options);
  const serversOf = serversWith(options, brought);
  const idle = createIdleSandboxes(options.idleSandboxes ?? {}, (threadId) =>
    starts.run(threadId, async () => (isWorkedIn(threadId) ? "closed" : rest(threadId))),
  );

  async function rest(threadId: string): Promise<"busy" | "closed"> {
    const violations = await sandboxes.rest(threadId);
    if (violations !== undefined) await record(threadId, violations);
    return violations === undefined ? "busy" : "closed";
  }

  async function enter(thread: EnterThread): Promise<TurnSandbox> {
    idle.forget(thread.threadId);
    const mcpServers = await serversOf(thread);
    const own = await turnEnvelope({ ...options, mcpServers }, thread);
    requireSandbox(thread, own);
    const entered = await withinMessage(await withinParent(journal, own, thread), thread);
    const wanted = entered.bound === undefined ? mcpServers : serversIn(entered.envelope, mcpServers);
    return enterEnvelope(sandboxes, { ...thread, mcpServers: wanted }, entered);
  }

  /** Outside a turn; violations are recorded. */
  async function leave(threadId: string): Promise<void> {
    await record(threadId, await sandboxes.leave(threadId));
    logs.delete(threadId);
  }

  return {
    ...knownOf(sandboxes),
    servers: createThreadServers({
      brought,
      serversOf,
      states: sandboxes.mcpStates,
      listeners: mcpStates,
      serially: (threadId, work) => starts.run(threadId, async () => (isWorkedIn(threadId) ? undefined : work())),
      enter,
      leave,
      idle,
    }),
    enter,
    async end(turn: TurnRequest, outcome: TurnOutcome): Promise<void> {
      const { threadId, turnId } = turn;
      const endsSandbox = options.isUnattended || leavesNothing(turn, outcome);
      const violations = endsSandbox ? await sandboxes.leave(threadId) : await sandboxes.sweep(threadId);
      await record(threadId, violations, turnId);
      if (!endsSandbox) afterTurns.follow(threadId);
    },
    wait: (threadId: string): void => {
      outputs.look();
      if (!options.isUnattended) idle.wait(threadId);
    },
    leave,
    /** Of a thread without a record. */
    drop: async (threadId: string): Promise<void> => {
      logs.delete(threadId);
      await sandboxes.leave(threadId);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      idle[Symbol.dispose]();
      await afterTurns[Symbol.asyncDispose]();
      await sandboxes[Symbol.asyncDispose]();
      await outputs[Symbol.asyncDispose]();
    },
  };
}

type Known = Pick<OpenSandboxes, "state" | "own" | "count" | "environmentOf">;

function knownOf({ state, own, count, environmentOf }: OpenSandboxes): Known {
  return { state, own, count, environmentOf };
}

function requireSandbox({ staysInSandbox }: EnterThread, { envelope: { id, sandbox } }: TurnEnvelope): void {
  if (staysInSandbox !== true || sandbox !== "off") return;
  throw new HeddleError("door.forbidden", `${id} has no sandbox; only the owner can enter it`);
}

/**
 * An interrupted turn leaves nothing running, nor does an outside agent, which leaves its envelope, nor a person who had the
 * thread without a sandbox; otherwise open processes
 * wait for the next turn. Those of an unattended one never do.
 */
function leavesNothing(turn: TurnRequest, outcome: TurnOutcome): boolean {
  const { task } = admissionOf(turn);
  if (outcome.kind === "interrupted" || task === "outside" || task === "attached") return true;
  return outcome.kind === "failed" && outcome.failure.code === "sandbox.failed";
}

async function enterEnvelope(
  sandboxes: OpenSandboxes,
  { threadId, workspace, settings, mcpServers }: EnterThread & { readonly mcpServers: readonly McpServerConfig[] },
  entered: TurnEnvelope,
): Promise<TurnSandbox> {
  const { allowedTools: allowTools = [], environment: policy = {} } = settings;
  const { envelope } = entered;
  const sandbox = await sandboxes.enter({ threadId, workspace, envelope, policy, allowTools, mcpServers });
  return { ...sandbox, ...entered };
}

function loadedWhenBrought({ redactor }: Journal): () => Promise<BroughtServers> {
  let opened: Promise<BroughtServers> | undefined;
  return () => (opened ??= import("../mcp/brought-servers.ts").then((all) => all.createBroughtServers(redactor)));
}

/** The servers of a thread: those that are configured, and those that its client brought. */
function serversWith({ home, mcpServers = [] }: HeddleOptions, brought: () => Promise<BroughtServers>) {
  return async ({ threadId, settings, newThread }: EnterThread): Promise<readonly McpServerConfig[]> => {
    const configured = await withPluginServers(home, mcpServers, { disabled: settings.disabledPlugins });
    const kept = settings.mcpServers;
    if (kept && newThread?.parent) (await brought()).copy(newThread.parent.threadId, threadId);
    return kept === undefined ? configured : (await brought()).serversOf(threadId, configured, kept);
  };
}

/** What is for child threads is loaded for them alone. */
async function withinParent(journal: Journal, own: TurnEnvelope, thread: EnterThread): Promise<TurnEnvelope> {
  const { threadId, newThread } = thread;
  const parent = newThread === undefined ? (await journal.threads.get(threadId))?.parent : newThread.parent;
  if (parent === undefined) return own;
  return (await import("../children/parent-envelope.ts")).withinParent(journal, own, thread);
}

async function withinMessage(own: TurnEnvelope, { message }: EnterThread): Promise<TurnEnvelope> {
  return message === undefined ? own : (await import("../messages/bound.ts")).withinMessage(own, message);
}

/** A message starts no programs that its turn may not call. */
function serversIn({ tools }: Envelope, servers: readonly McpServerConfig[]): readonly McpServerConfig[] {
  return servers.filter(({ name }) => tools.some((tool) => tool.startsWith(`mcp.${name}.`)));
}

/** Records what a look into a thread's sandboxes found; outside a turn it belongs to the last one. */
function foundIn(journal: Journal, logs: NetworkLogs) {
  return async (threadId: string, violations: readonly ProtectedPathViolation[], during?: string): Promise<void> => {
    await recordViolations(journal, threadId, violations, during);
    const log = logs.get(threadId);
    if (log === undefined) return;
    await (await import("./network-logs.ts")).recordNetworkUse(journal, { log, threadId, during });
  };
}
