/**
 * The lines of `codex exec --json`, made from stored events: events of one turn in, in order, lines out. Shapes, names and
 * order are those of codex-cli 0.166; what it lacks (codes, cost, duration, `outcome`) is added beside them, never instead.
 * The only memory is the numbering of items and the running to-do list.
 */
import type { EventOf, StoredEvent } from "../events.ts";
import type { Item, ItemOf, ItemStatus } from "../items.ts";
import type { Usage } from "../model-output.ts";
import { never } from "../never.ts";

export interface CodexUsage {
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_output_tokens: number;
}

export interface CodexError {
  readonly message: string;
  readonly code?: string;
  readonly details?: Readonly<Record<string, string | number | boolean>>;
}

type CodexStatus = "in_progress" | "completed" | "failed" | "declined";

/** `outcome` is Heddle's own word where Codex has none for what happened. */
interface WithOutcome {
  readonly outcome?: ItemStatus;
}

type CodexItemDetails =
  | { readonly type: "agent_message"; readonly text: string; readonly is_partial?: true }
  | { readonly type: "reasoning"; readonly text: string }
  | ({
      readonly type: "command_execution";
      readonly command: string;
      readonly aggregated_output: string;
      readonly exit_code: number | null;
      readonly status: CodexStatus;
      readonly error?: string;
    } & WithOutcome)
  | ({
      readonly type: "file_change";
      readonly changes: readonly { readonly path: string; readonly kind: "add" | "update" | "delete" }[];
      readonly status: CodexStatus;
      readonly error?: string;
    } & WithOutcome)
  | ({
      readonly type: "mcp_tool_call";
      readonly server: string;
      readonly tool: string;
      readonly arguments: unknown;
      readonly result: CodexToolResult | null;
      readonly error: { readonly message: string } | null;
      readonly status: CodexStatus;
    } & WithOutcome)
  | {
      readonly type: "todo_list";
      readonly items: readonly { readonly text: string; readonly completed: boolean }[];
    }
  | { readonly type: "error"; readonly message: string; readonly code?: string };

interface CodexToolResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly structured_content: null;
}

export type CodexItem = { readonly id: string } & CodexItemDetails;

export type CodexExecLine =
  | { readonly type: "thread.started"; readonly thread_id: string }
  | { readonly type: "turn.started"; readonly turn_id: string; readonly sandbox: string }
  | { readonly type: "item.started" | "item.updated" | "item.completed"; readonly item: CodexItem }
  | {
      readonly type: "turn.completed";
      readonly usage: CodexUsage;
      /** null: the price of a model that took part is not known. */
      readonly cost_usd: number | null;
      readonly duration_ms: number;
    }
  | {
      readonly type: "turn.failed";
      readonly error: CodexError;
      readonly status: "failed" | "interrupted";
      readonly usage: CodexUsage;
      readonly cost_usd: number | null;
      readonly duration_ms: number;
    }
  | ({ readonly type: "error" } & CodexError);

export type CodexExecDialect = (event: StoredEvent) => readonly CodexExecLine[];

/** One translator for one run of `exec`. */
export function codexExecDialect(): CodexExecDialect {
  const numbering = createNumbering();
  let todo: CodexItem | undefined;

  const planLines = (item: ItemOf<"plan">): readonly CodexExecLine[] => {
    if (item.status !== "completed") return [numbering.completed(item.id, toolCall("update_plan", item))];
    const items = item.steps.map((step) => ({ text: step.text, completed: step.status === "completed" }));
    const type = todo === undefined ? "item.started" : "item.updated";
    todo = { id: todo?.id ?? numbering.next(), type: "todo_list", items };
    return [{ type, item: todo }];
  };

  return ({ stream, body }) => {
    switch (body.type) {
      case "turn.admitted":
        return [{ type: "thread.started", thread_id: stream }];
      case "turn.started":
        return [{ type: "turn.started", turn_id: body.turnId, sandbox: body.sandboxLevel }];
      case "item.started":
        return runs(body.item) ? [numbering.started(body.item.id, details(body.item))] : [];
      case "item.completed":
        if (body.item.type === "plan") return planLines(body.item);
        return isShown(body.item) ? [numbering.completed(body.item.id, details(body.item))] : [];
      case "model.retried":
        return [retryLine(body)];
      case "path.violated":
        return [numbering.completed(undefined, violation(body))];
      case "hook.ran":
        return body.failure === undefined ? [] : [numbering.completed(undefined, hookFailure(body))];
      case "turn.completed": {
        const last: readonly CodexExecLine[] = todo === undefined ? [] : [{ type: "item.completed", item: todo }];
        todo = undefined;
        return [...last, ...endLines(body)];
      }
      case "thread.created":
      case "thread.named":
      case "thread.deleted":
      case "context.loaded":
      case "context.added":
      case "context.compacted":
      case "turn.steered":
      case "turn.interrupt-requested":
      case "item.checkpointed":
      case "model.requested":
      case "model.responded":
      case "tool.intended":
      case "tool.settled":
      case "approval.requested":
      case "approval.resolved":
        return [];
      default:
        return never(body);
    }
  };
}

/** Items are numbered in the order in which a run first shows them: item_0, item_1, … */
function createNumbering(): {
  next(): string;
  started(id: string, item: CodexItemDetails): CodexExecLine;
  completed(id: string | undefined, item: CodexItemDetails): CodexExecLine;
} {
  const known = new Map<string, string>();
  let count = 0;
  const next = (): string => `item_${count++}`;
  return {
    next,
    started(id, item) {
      const number = next();
      known.set(id, number);
      return { type: "item.started", item: { id: number, ...item } };
    },
    completed(id, item) {
      const number = (id === undefined ? undefined : known.get(id)) ?? next();
      return { type: "item.completed", item: { id: number, ...item } };
    },
  };
}

/** Codex announces work that runs; what is said arrives whole. */
function runs(item: Item): boolean {
  return (
    item.type === "commandExecution" ||
    item.type === "fileChange" ||
    item.type === "toolCall" ||
    item.type === "imageView"
  );
}

function isShown(item: Item): boolean {
  if (item.type === "userMessage") return false;
  // A compaction is nobody's business but for its failure.
  if (item.type === "contextCompaction") return item.error !== undefined;
  if (item.type === "reasoning") return reasoningText(item) !== "";
  return item.type !== "agentMessage" || item.text !== "" || item.isPartial !== true;
}

function details(item: Item): CodexItemDetails {
  switch (item.type) {
    case "agentMessage":
      return { type: "agent_message", text: item.text, ...(item.isPartial === true ? { is_partial: true } : {}) };
    case "reasoning":
      return { type: "reasoning", text: reasoningText(item) };
    case "commandExecution":
      return {
        type: "command_execution",
        command: item.command,
        aggregated_output: item.output,
        exit_code: item.exitCode ?? null,
        ...withStatus(item.status, item.exitCode !== undefined && item.exitCode !== 0),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "fileChange":
      return {
        type: "file_change",
        changes: item.changes.map(({ path, kind }) => ({ path, kind })),
        ...withStatus(item.status),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "toolCall":
      return toolCall(item.tool, item, item.output);
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

interface CalledTool {
  readonly status: ItemStatus;
  readonly arguments?: unknown;
  readonly error?: string | undefined;
}

/** Heddle's own tools appear as those of a server named "heddle". */
function toolCall(tool: string, called: CalledTool, output?: string): CodexItemDetails {
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

function withStatus(status: ItemStatus, hasFailedExit = false): { status: CodexStatus } & WithOutcome {
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

function reasoningText(item: ItemOf<"reasoning">): string {
  return item.summary.length > 0 ? item.summary.join("\n\n") : (item.text ?? "");
}

function retryLine(retry: EventOf<"model.retried">): CodexExecLine {
  const { attempt, maxAttempts, cause } = retry;
  return {
    type: "error",
    message: `Reconnecting... ${attempt}/${maxAttempts} (${cause.message})`,
    code: cause.code,
    details: { delay_ms: retry.delayMs },
  };
}

function violation(event: EventOf<"path.violated">): CodexItemDetails {
  const moved = event.quarantinedTo === undefined ? "" : `; it was moved to ${event.quarantinedTo}`;
  return { type: "error", message: `a protected path was written: ${event.path}${moved}`, code: "path.protected" };
}

function hookFailure({ event, failure }: EventOf<"hook.ran">): CodexItemDetails {
  return { type: "error", message: `a ${event} hook failed: ${failure?.message ?? ""}` };
}

function endLines(end: EventOf<"turn.completed">): readonly CodexExecLine[] {
  const figures = {
    usage: codexUsage(end.usage),
    cost_usd: end.costUsd ?? null,
    duration_ms: end.durationMs,
  };
  if (end.status === "completed") return [{ type: "turn.completed", ...figures }];
  const error: CodexError = {
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
