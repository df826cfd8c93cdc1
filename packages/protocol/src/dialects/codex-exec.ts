/**
 * The lines of `codex exec --json`, made from stored events: events of one turn in, in order, lines out. Shapes, names and
 * order are those of codex-cli 0.166; what it lacks (codes, cost, duration, `outcome`) is added beside them, never instead.
 * The only memory is the numbering of items, those that run, and the to-do list.
 */
import type { EventOf, StoredEvent } from "../events.ts";
import type { Item, ItemOf, ItemStatus } from "../items.ts";
import { addUsage, type Usage } from "../model-output.ts";
import { never } from "../never.ts";
import type { CodexExecLine, CodexItem, CodexUsage } from "./codex-exec-schema.ts";
import { joinShellWords } from "./shell-words.ts";
import { countThreadUsage } from "./thread-usage.ts";

export type { CodexExecLine, CodexItem, CodexUsage } from "./codex-exec-schema.ts";

export interface CodexExecOptions {
  /** Also announce what is said, so that `progress` can show it growing. */
  readonly hasDeltas?: boolean;
  /** What the thread used before this turn; with it the end names the thread's total. */
  readonly usageBefore?: Usage;
}

export interface CodexExecDialect {
  event(event: StoredEvent): readonly CodexExecLine[];
  /** A running item as it is after it has said or printed so much; undefined when it is not running. */
  progress(itemId: string, soFar: string): CodexExecLine | undefined;
}

type DistributiveOmit<T, K extends string> = T extends unknown ? Omit<T, K> : never;
type ItemDetails = DistributiveOmit<CodexItem, "id">;

/** One translator for one run of `exec`. */
export function codexExecDialect(options: CodexExecOptions = {}): CodexExecDialect {
  const numbering = createNumbering();
  const running = new Map<string, Item>();
  const spent = countThreadUsage(options.usageBefore);
  let todo: CodexItem | undefined;

  const startedLines = (item: Item): readonly CodexExecLine[] => {
    running.set(item.id, item);
    return runs(item) || (options.hasDeltas === true && speaks(item))
      ? [numbering.started(item.id, details(item))]
      : [];
  };

  const completedLines = (item: Item): readonly CodexExecLine[] => {
    running.delete(item.id);
    if (item.type === "plan") return planLines(item);
    return isShown(item) || numbering.knows(item.id) ? [numbering.completed(item.id, details(item))] : [];
  };

  const planLines = (item: ItemOf<"plan">): readonly CodexExecLine[] => {
    if (item.status !== "completed") return [numbering.completed(item.id, toolCall("update_plan", item))];
    const items = item.steps.map((step) => ({ text: step.text, completed: step.status === "completed" }));
    const type = todo === undefined ? "item.started" : "item.updated";
    todo = { id: todo?.id ?? numbering.next(), type: "todo_list", items };
    return [{ type, item: todo }];
  };

  const event = ({ stream, body }: StoredEvent): readonly CodexExecLine[] => {
    switch (body.type) {
      case "turn.admitted":
        spent.begin(stream);
        return [{ type: "thread.started", thread_id: stream }];
      case "turn.started":
        return [{ type: "turn.started", turn_id: body.turnId, sandbox: body.sandboxLevel }];
      case "item.started":
        return startedLines(body.item);
      case "item.completed":
        return completedLines(body.item);
      case "model.retried":
        return [retryLine(body)];
      case "path.violated":
        return [numbering.completed(undefined, violation(body))];
      case "hook.ran":
        return body.failure === undefined ? [] : [numbering.completed(undefined, hookFailure(body))];
      case "turn.completed": {
        const last: readonly CodexExecLine[] = todo === undefined ? [] : [{ type: "item.completed", item: todo }];
        todo = undefined;
        return [...last, ...endLines(body, spent.before())];
      }
      case "model.responded":
        spent.add(body.usage);
        return [];
      case "thread.created":
      case "thread.moved":
      case "thread.named":
      case "thread.deleted":
      case "context.loaded":
      case "context.added":
      case "context.compacted":
      case "turn.steered":
      case "turn.interrupt-requested":
      case "item.checkpointed":
      case "model.requested":
      case "mcp.listed":
      case "tool.intended":
      case "tool.settled":
      case "approval.requested":
      case "approval.resolved":
        return [];
      default:
        return never(body);
    }
  };

  return {
    event,
    progress(itemId, soFar) {
      const item = running.get(itemId);
      const grown = item === undefined ? undefined : grow(item, soFar);
      return grown === undefined || !numbering.knows(itemId) ? undefined : numbering.updated(itemId, details(grown));
    },
  };
}

/** An item with what its deltas have brought so far; undefined for items that have none. */
function grow(item: Item, soFar: string): Item | undefined {
  if (item.type === "agentMessage") return { ...item, text: soFar };
  if (item.type === "reasoning") return { ...item, summary: [soFar] };
  return item.type === "commandExecution" ? { ...item, output: soFar } : undefined;
}

/** Items are numbered in the order in which a run first shows them: item_0, item_1, … */
function createNumbering(): {
  next(): string;
  knows(id: string): boolean;
  started(id: string, item: ItemDetails): CodexExecLine;
  updated(id: string, item: ItemDetails): CodexExecLine;
  completed(id: string | undefined, item: ItemDetails): CodexExecLine;
} {
  const known = new Map<string, string>();
  let count = 0;
  const next = (): string => `item_${count++}`;
  const numberOf = (id: string | undefined): string => (id === undefined ? undefined : known.get(id)) ?? next();
  return {
    next,
    knows: (id) => known.has(id),
    started(id, item) {
      const number = next();
      known.set(id, number);
      return { type: "item.started", item: { id: number, ...item } };
    },
    updated: (id, item) => ({ type: "item.updated", item: { id: numberOf(id), ...item } }),
    completed: (id, item) => ({ type: "item.completed", item: { id: numberOf(id), ...item } }),
  };
}

/** Codex announces work that runs; what is said arrives whole. */
function runs(item: Item): boolean {
  return (
    item.type === "commandExecution" ||
    item.type === "fileChange" ||
    item.type === "toolCall" ||
    item.type === "mcpToolCall" ||
    item.type === "imageView"
  );
}

function speaks(item: Item): boolean {
  return item.type === "agentMessage" || item.type === "reasoning";
}

function isShown(item: Item): boolean {
  if (item.type === "userMessage") return false;
  // A compaction is nobody's business but for its failure.
  if (item.type === "contextCompaction") return item.error !== undefined;
  if (item.type === "reasoning") return reasoningText(item) !== "";
  return item.type !== "agentMessage" || item.text !== "" || item.isPartial !== true;
}

function details(item: Item): ItemDetails {
  switch (item.type) {
    case "agentMessage":
      return { type: "agent_message", text: item.text, ...(item.isPartial === true ? { is_partial: true } : {}) };
    case "reasoning":
      return { type: "reasoning", text: reasoningText(item) };
    case "commandExecution":
      return {
        type: "command_execution",
        command: joinShellWords([SHELL, item.isLogin === true ? "-lc" : "-c", item.command]),
        // A command that never ran has printed nothing; its readers look for the reason here.
        aggregated_output: item.output === "" && item.exitCode === undefined ? (item.error ?? "") : item.output,
        exit_code: item.exitCode ?? null,
        ...withStatus(item.status, item.exitCode !== undefined && item.exitCode !== 0),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "fileChange":
      return {
        type: "file_change",
        changes: item.changes.map(({ path, kind }) => ({ path, kind })).toSorted(byPath),
        ...withStatus(item.status),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "toolCall":
      return toolCall(item.tool, item, item.output);
    case "mcpToolCall":
      return mcpToolCall(item);
    case "imageView":
      return toolCall("view_image", { ...item, arguments: { path: item.path } });
    case "plan":
      return toolCall("update_plan", item);
    case "notice":
      return { type: "error", message: item.message, code: item.code };
    case "contextCompaction":
      return { type: "error", message: item.error ?? "the context was compacted" };
    case "userMessage":
      throw new Error("a user message has no Codex item");
    default:
      return never(item);
  }
}

/** How Heddle runs a command line; Codex shows it with its shell, and its readers take it off again. */
const SHELL = "/bin/bash";

interface CalledTool {
  readonly status: ItemStatus;
  readonly arguments?: unknown;
  readonly error?: string | undefined;
}

/** Heddle's own tools appear as those of a server named "heddle". */
function toolCall(tool: string, called: CalledTool, output?: string): ItemDetails {
  const isOver = called.status !== "inProgress";
  const isGood = called.status === "completed" || !isOver;
  const error = isGood ? undefined : (called.error ?? called.status);
  return {
    type: "mcp_tool_call",
    server: "heddle",
    tool,
    arguments: called.arguments ?? {},
    result:
      isOver && output !== undefined ? { content: [{ type: "text", text: output }], structured_content: null } : null,
    error: error === undefined ? null : { message: error },
    ...withStatus(called.status),
  };
}

function mcpToolCall(item: ItemOf<"mcpToolCall">): ItemDetails {
  const { result } = item;
  return {
    type: "mcp_tool_call",
    server: item.server,
    tool: item.tool,
    arguments: item.arguments ?? {},
    result:
      result === undefined ? null : { content: result.content, structured_content: result.structuredContent ?? null },
    error: item.error === undefined ? null : { message: item.error },
    ...withStatus(item.status),
  };
}

function withStatus(
  status: ItemStatus,
  hasFailedExit = false,
): {
  status: "in_progress" | "completed" | "failed" | "declined";
  outcome?: "interrupted" | "unknown";
} {
  switch (status) {
    case "inProgress":
      return { status: "in_progress" };
    case "completed":
      return { status: hasFailedExit ? "failed" : "completed" };
    case "failed":
      return { status: "failed" };
    case "declined":
      return { status: "declined" };
    case "interrupted":
    case "unknown":
      return { status: "failed", outcome: status };
    default:
      return never(status);
  }
}

/** The order in which Codex lists what a patch changed. */
function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : 1;
}

function reasoningText(item: ItemOf<"reasoning">): string {
  return item.summary.length > 0 ? item.summary.join("\n\n") : (item.text ?? "");
}

function retryLine(retry: EventOf<"model.retried">): CodexExecLine {
  const { attempt, maxAttempts, round = attempt, maxRounds = maxAttempts, cause } = retry;
  if (retry.level === "request") {
    const { message, code, details } = cause;
    const figures = { attempt, max_attempts: maxAttempts, delay_ms: retry.delayMs };
    return { type: "heddle.retry", message, code, ...(details === undefined ? {} : { details }), ...figures };
  }
  return {
    type: "error",
    // Codex counts retries, not tries: after one failed try of two it is at its first and last.
    message: `Reconnecting... ${round}/${Math.max(round, maxRounds - 1)} (${cause.message})`,
    code: cause.code,
    details: { delay_ms: retry.delayMs },
  };
}

function violation(event: EventOf<"path.violated">): ItemDetails {
  const moved = event.quarantinedTo === undefined ? "" : `; it was moved to ${event.quarantinedTo}`;
  return { type: "error", message: `a protected path was written: ${event.path}${moved}`, code: "path.protected" };
}

function hookFailure({ event, failure }: EventOf<"hook.ran">): ItemDetails {
  return { type: "error", message: `a ${event} hook failed: ${failure?.message ?? ""}` };
}

function endLines(end: EventOf<"turn.completed">, usageBefore: Usage | undefined): readonly CodexExecLine[] {
  const figures = {
    usage: codexUsage(end.usage),
    ...(usageBefore === undefined ? {} : { thread_usage: codexUsage(addUsage(usageBefore, end.usage)) }),
    cost_usd: end.costUsd ?? null,
    duration_ms: end.durationMs,
  };
  if (end.status === "completed") return [{ type: "turn.completed", ...figures }];
  const error = {
    message: end.failure?.message ?? `the turn was ${end.status}`,
    ...(end.failure === undefined ? {} : { code: end.failure.code }),
    ...(end.failure?.details === undefined ? {} : { details: end.failure.details }),
  };
  const failed: CodexExecLine = { type: "turn.failed", error, status: end.status, ...figures };
  return end.status === "failed" ? [{ type: "error", ...error }, failed] : [failed];
}

function codexUsage(usage: Usage): CodexUsage {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_input_tokens: usage.cacheWriteInputTokens,
    output_tokens: usage.outputTokens,
    reasoning_output_tokens: usage.reasoningOutputTokens,
  };
}
