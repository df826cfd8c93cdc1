/**
 * MCP servers in a turn: their tools are updated before every request to the model, and what happened to them is
 * recorded. A server that fails is reported and left out; only a required one ends the turn.
 */
import { HeddleError } from "@heddle/protocol";
import {
  toolsFor,
  type ChildToolset,
  type EvidencePort,
  type GoalEndStatus,
  type McpReport,
  type MessageToolEntry,
  type MoreTools,
  type Toolset,
} from "@heddle/tools";
import { clientToolsOf } from "../approvals/client-tools.ts";
import { goalOf } from "../context/goal.ts";
import type { RunnerEvent, TurnIo, TurnRequest } from "../runners/runner.ts";
import { notice } from "../runners/notes.ts";

export interface TurnTools {
  /** As of the last `refresh`. */
  readonly toolset: Toolset;
  /**
   * Before each request: starts servers that do not run yet, each within its own time limit, and lists changed tools
   * again.
   */
  refresh(): Promise<void>;
}

export interface TurnToolsOptions extends Omit<OwnToolsOptions, "clientAnswer"> {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
}

interface OwnToolsOptions {
  readonly skillFolder: string | undefined;
  /** How long a client may take to carry out its own tool. */
  readonly clientToolMs: number;
  readonly clientAnswer: TurnIo["clientAnswer"];
  readonly endGoal: (status: GoalEndStatus) => Promise<void>;
  readonly children?: ChildToolset | undefined;
  readonly messages?: readonly MessageToolEntry[] | undefined;
  readonly evidence: EvidencePort;
}

export interface OfferedTo {
  readonly family: Toolset["family"];
  readonly readsImages?: boolean;
}

export function createTurnTools(offeredTo: () => OfferedTo, options: TurnToolsOptions): TurnTools {
  const { turn, io } = options;
  const clientAnswer: TurnIo["clientAnswer"] = (itemId, signal) => io.clientAnswer(itemId, signal);
  const more = { ...toolsBesideMcp(turn, { ...options, clientAnswer }), hops: io.policy.hops.byName };
  let isNewTurn = true;
  let inSandbox = turn.sandboxContext.sandbox;
  let offered = offeredTo();
  let toolset = offer();

  function offer(): Toolset {
    const { family, readsImages } = offered;
    const { envelope, mcp } = turn.sandboxContext;
    return toolsFor(family, envelope, { ...more, readsImages, ...(isNewTurn ? {} : { mcp }) });
  }

  async function refresh(): Promise<void> {
    const before = offered;
    offered = offeredTo();
    const { mcp, sandbox } = turn.sandboxContext;
    // After a hop the servers run anew, in the sandbox of the envelope that was entered.
    const hasHopped = sandbox !== inSandbox;
    inSandbox = sandbox;
    const isOther = hasHopped || offered.family !== before.family || offered.readsImages !== before.readsImages;
    if (mcp === undefined) {
      if (isOther) toolset = offer();
      return;
    }
    const reports = await mcp.settle(io.signal, { isNewTurn: isNewTurn || hasHopped });
    io.signal.throwIfAborted();
    const events = reports.flatMap((report) => eventsOf(report, turn.turnId));
    if (events.length > 0) await io.record(events, "system");
    const missing =
      isNewTurn || hasHopped ? reports.find((report) => report.kind === "failed" && report.isRequired) : undefined;
    if (missing?.kind === "failed") throw new HeddleError("mcp.failed", failedText(missing));
    const isStale = isNewTurn || isOther || reports.length > 0;
    isNewTurn = false;
    if (isStale) toolset = offer();
  }

  return {
    get toolset() {
      return toolset;
    },
    refresh,
  };
}

/** Tools besides the built-in ones and those of MCP servers. */
export function toolsBesideMcp(
  { settings, history }: Pick<TurnRequest, "settings" | "history">,
  {
    skillFolder,
    clientToolMs: timeoutMs,
    clientAnswer: answer,
    endGoal,
    evidence,
    children,
    messages,
  }: OwnToolsOptions,
): MoreTools {
  const { mode, asksUser, hasClientTools } = settings;
  const tools = clientToolsOf(history);
  return {
    skillFolder,
    client: hasClientTools === true && tools.length > 0 ? { tools, timeoutMs, answer } : undefined,
    mayAskUser: mode === "plan" || asksUser === true,
    children,
    messages,
    goal: goalOf(history)?.status === "active" ? endGoal : undefined,
    evidence,
  };
}

function eventsOf(report: McpReport, turnId: string): readonly RunnerEvent[] {
  switch (report.kind) {
    case "listed": {
      const { kind: _kind, tools, changed, ...listed } = report;
      return [{ type: "mcp.listed", v: 1, turnId, ...listed, tools: [...tools], changed: [...changed] }];
    }
    case "failed": {
      const mcp = { server: report.server, error: report.message };
      return notice(turnId, { level: "error", code: "mcp.failed", message: failedText(report), mcp });
    }
    case "leftOut":
      return notice(turnId, { level: "warning", code: "mcp.left-out", message: report.message });
  }
}

function failedText({ server, message }: Extract<McpReport, { kind: "failed" }>): string {
  return `the MCP server ${server} failed: ${message}`;
}
