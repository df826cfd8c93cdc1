/**
 * The sandboxes of threads between turns: opened for a turn, checked or closed at its end, watched while something
 * still runs there, closed when idle. Violations outside a turn are recorded here.
 */
import type { Journal } from "@heddle/journal";
import type { McpServerConfig, McpState, TurnSettings } from "@heddle/protocol";
import { createAfterTurns, recordViolations, type ViolationRecorder } from "./after-turns.ts";
import type { HeddleOptions } from "../heddle.ts";
import { keyCheck } from "../keys-in-use.ts";
import { createIdleSandboxes } from "./idle-sandboxes.ts";
import type { BroughtServers } from "../mcp/brought-servers.ts";
import { createListeners } from "../turns/live.ts";
import { createThreadServers } from "../mcp/thread-servers.ts";
import type { LazyMcpLogins } from "../mcp/mcp-logins.ts";
import { openSandboxes } from "./open-sandboxes.ts";
import type { TurnOutcome, TurnSandbox, TurnRequest } from "../runners/runner.ts";
import type { Serial } from "../turns/serial.ts";
import { withPluginServers } from "../context/installed.ts";
import { turnEnvelope } from "../turns/turn-envelope.ts";

export interface EnterThread {
  readonly threadId: string;
  readonly workspace: string;
  readonly settings: TurnSettings;
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
  const record: ViolationRecorder = (threadId, violations) => recordViolations(journal, threadId, violations);
  const sandboxes = openSandboxes({
    home: options.home,
    env: options.env,
    backend: options.sandboxBackend ?? "auto",
    redactor: journal.redactor,
    isKey: keyCheck(options, journal.redactor),
    mcpLogins,
    mayWait: !options.isUnattended,
    limits: options.sandboxLimits,
    onMcpState: (threadId, state) => mcpStates.tell(threadId, state),
    onViolations: record,
  });
  const afterTurns = createAfterTurns({ sandboxes, record, everyMs: options.sweepEveryMs });
  const idle = createIdleSandboxes(options.idleSandboxes ?? {}, (threadId) =>
    starts.run(threadId, async () => {
      if (isWorkedIn(threadId)) return "closed";
      const violations = await sandboxes.rest(threadId);
      if (violations === undefined) return "busy";
      await record(threadId, violations);
      return "closed";
    }),
  );

  async function enter(thread: EnterThread): Promise<TurnSandbox> {
    const { threadId, workspace, settings } = thread;
    idle.forget(threadId);
    const mcpServers = await serversOf(thread);
    const envelope = turnEnvelope({ ...options, mcpServers }, { settings, workspace });
    const { allowedTools: allowTools = [], environment: policy = {} } = settings;
    return sandboxes.enter({ threadId, workspace, envelope, policy, allowTools, mcpServers });
  }

  async function serversOf({ threadId, settings }: EnterThread): Promise<readonly McpServerConfig[]> {
    const configured = await withPluginServers(options.home, options.mcpServers ?? []);
    const kept = settings.mcpServers;
    return kept === undefined ? configured : (await brought()).serversOf(threadId, configured, kept);
  }

  /** Outside a turn; violations are recorded. */
  async function leave(threadId: string): Promise<void> {
    await record(threadId, await sandboxes.leave(threadId));
  }

  const servers = createThreadServers({
    brought,
    serversOf,
    states: sandboxes.mcpStates,
    listeners: mcpStates,
    serially: (threadId, work) => starts.run(threadId, async () => (isWorkedIn(threadId) ? undefined : work())),
    enter,
    leave,
    idle,
  });
  return {
    state: sandboxes.state,
    environmentOf: sandboxes.environmentOf,
    servers,
    enter,
    /** An interrupted or unattended turn leaves nothing running; otherwise open processes wait for the next turn. */
    async end({ threadId, turnId }: TurnRequest, outcome: TurnOutcome): Promise<void> {
      const lostSandbox = outcome.kind === "failed" && outcome.failure.code === "sandbox.failed";
      const endsSandbox = options.isUnattended || outcome.kind === "interrupted" || lostSandbox;
      const violations = endsSandbox ? await sandboxes.leave(threadId) : await sandboxes.sweep(threadId);
      await recordViolations(journal, threadId, violations, turnId);
      if (!endsSandbox) afterTurns.follow(threadId);
    },
    wait(threadId: string): void {
      if (!options.isUnattended) idle.wait(threadId);
    },
    leave,
    /** Of a thread without a record. */
    async drop(threadId: string): Promise<void> {
      await sandboxes.leave(threadId);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      idle[Symbol.dispose]();
      await afterTurns[Symbol.asyncDispose]();
      await sandboxes[Symbol.asyncDispose]();
    },
  };
}

function loadedWhenBrought({ redactor }: Journal): () => Promise<BroughtServers> {
  let opened: Promise<BroughtServers> | undefined;
  return () => (opened ??= import("../mcp/brought-servers.ts").then((all) => all.createBroughtServers(redactor)));
}
