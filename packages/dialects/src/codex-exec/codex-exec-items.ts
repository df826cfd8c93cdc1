/** An item as `codex exec --json` of codex-cli 0.166 shows it, with Heddle's own fields added. */
import {
  defined,
  never,
  type ChildStatus,
  type EventOf,
  type Item,
  type ItemOf,
  type ItemStatus,
  type WebSearch,
} from "@heddle/protocol";
import type { CodexItem, SearchAction } from "./codex-exec-schema.ts";
import { joinShellWords } from "../shell-words.ts";

type DistributiveOmit<T, K extends string> = T extends unknown ? Omit<T, K> : never;
export type ItemDetails = DistributiveOmit<CodexItem, "id">;

/** Codex announces work that runs; what is said arrives whole. */
export function runs(item: Item): boolean {
  return (
    item.type === "commandExecution" ||
    item.type === "fileChange" ||
    item.type === "toolCall" ||
    item.type === "mcpToolCall" ||
    item.type === "collabToolCall" ||
    item.type === "webSearch" ||
    item.type === "imageView"
  );
}

export function speaks(item: Item): boolean {
  return item.type === "agentMessage" || item.type === "reasoning";
}

export function isShown(item: Item): boolean {
  if (item.type === "userMessage") return false;
  // A compaction is shown only when it fails.
  if (item.type === "contextCompaction") return item.error !== undefined;
  if (item.type === "reasoning") return reasoningText(item) !== "";
  return item.type !== "agentMessage" || item.text !== "" || item.isPartial !== true;
}

export function details(item: Item): ItemDetails {
  switch (item.type) {
    case "agentMessage":
      return {
        type: "agent_message",
        text: item.text,
        ...defined({ sources: item.sources }),
        ...(item.isPartial === true ? { is_partial: true } : {}),
      };
    case "reasoning":
      return { type: "reasoning", text: reasoningText(item) };
    case "commandExecution":
      return {
        type: "command_execution",
        command: joinShellWords([SHELL, item.isLogin === true ? "-lc" : "-c", item.command]),
        // A command that never ran has printed nothing; its readers look for the reason here.
        aggregated_output: item.output === "" && item.exitCode === undefined ? (item.error ?? "") : item.output,
        exit_code: item.exitCode ?? (item.status === "failed" && item.signal === undefined ? NEVER_RAN : null),
        ...withStatus(item.status, item.exitCode !== undefined && item.exitCode !== 0),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "fileChange":
      return {
        type: "file_change",
        changes: item.changes.map(({ path, kind }) => ({ path, kind })).toSorted(byPath),
        ...withoutDeclined(item.status),
        ...(item.error === undefined ? {} : { error: item.error }),
      };
    case "toolCall":
      return toolCall(item.tool, item, item.output);
    case "mcpToolCall":
      return mcpToolCall(item);
    case "collabToolCall":
      return collabToolCall(item);
    case "imageView":
      return toolCall("view_image", { ...item, arguments: { path: item.path } });
    case "webSearch":
      return webSearch(item.search);
    case "proposedPlan":
      return { type: "agent_message", text: item.text };
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

/** Codex shows a search under the provider's own name; it has a number all the same. */
function webSearch(search: WebSearch): ItemDetails {
  const name = search.id === undefined ? {} : { id: search.id };
  return { type: "web_search", query: search.query, action: searchAction(search), ...name };
}

function searchAction({ action }: WebSearch): SearchAction {
  if (action === undefined) return { type: "other" };
  const { kind, ...fields } = action;
  return { type: ACTIONS[kind], ...fields };
}
const ACTIONS = { search: "search", openPage: "open_page", findInPage: "find_in_page" } as const;

/** How Heddle runs a command line; Codex shows it with its shell, and its readers take it off again. */
const SHELL = "/bin/bash";
/** What Codex gives as the exit code of a command that could not be started. */
const NEVER_RAN = -1;

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
    ...withoutDeclined(called.status),
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
    ...withoutDeclined(item.status),
  };
}

const COLLAB_TOOLS = { start: "spawn_agent", send: "send_input", wait: "wait", close: "close_agent" } as const;
const CHILD_STATUSES = {
  starting: "pending_init",
  running: "running",
  completed: "completed",
  failed: "errored",
  interrupted: "interrupted",
  closed: "shutdown",
  missing: "not_found",
} as const satisfies Record<ChildStatus, string>;

function collabToolCall(item: ItemOf<"collabToolCall">): ItemDetails {
  const states = item.children.map(({ threadId: id, status, message = null }) => [
    id,
    { status: CHILD_STATUSES[status], message },
  ]);
  return {
    type: "collab_tool_call",
    tool: COLLAB_TOOLS[item.tool],
    sender_thread_id: item.senderThreadId,
    receiver_thread_ids: item.threadIds,
    prompt: item.prompt ?? null,
    agents_states: Object.fromEntries(states),
    ...withoutDeclined(item.status),
    ...(item.error === undefined ? {} : { error: item.error }),
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

/** For items that Codex cannot show as `declined`: they have failed, and `outcome` says how. */
function withoutDeclined(status: ItemStatus): {
  status: "in_progress" | "completed" | "failed";
  outcome?: "declined" | "interrupted" | "unknown";
} {
  const { status: known, ...outcome } = withStatus(status);
  return known === "declined" ? { status: "failed", outcome: "declined" } : { status: known, ...outcome };
}

/** The order in which Codex lists what a patch changed. */
function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : 1;
}

function reasoningText(item: ItemOf<"reasoning">): string {
  return item.summary.length > 0 ? item.summary.join("\n\n") : (item.text ?? "");
}

export function violation(event: EventOf<"path.violated">): ItemDetails {
  const moved = event.quarantinedTo === undefined ? "" : `; it was moved to ${event.quarantinedTo}`;
  return { type: "error", message: `a protected path was written: ${event.path}${moved}`, code: "path.protected" };
}

export function hookFailure({ event, failure }: EventOf<"hook.ran">): ItemDetails {
  return { type: "error", message: `a ${event} hook failed: ${failure?.message ?? ""}` };
}
