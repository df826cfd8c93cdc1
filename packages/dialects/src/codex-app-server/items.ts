/** One stored item as the original shows it. */
import {
  defined,
  never,
  type ChildStatus,
  type FileChangeEntry,
  type Item,
  type ItemOf,
  type ItemStatus,
  type WebSearch,
} from "@heddle/protocol";
import { joinShellWords } from "../shell-words.ts";
import { clientCallFields, isClientCall } from "./client-tools.ts";
import { shownDiff } from "./file-diffs.ts";
import { shownInput } from "./input.ts";
import type { CodexThreadItem } from "./shapes.ts";

export type ItemTimes = Pick<CodexThreadItem, "startedAtMs" | "completedAtMs">;

/** undefined: the original has no item for it; a plan and a notice are sent in other ways. */
export function codexItem(item: Item, times: ItemTimes): CodexThreadItem | undefined {
  const fields = details(item);
  return fields === undefined ? undefined : { ...fields, ...times };
}

/** The user was asked; the original shows the question and nothing else. */
const ASK_TOOLS: ReadonlySet<string> = new Set(["request_user_input", "request_permissions"]);

type Fields = Readonly<Record<string, unknown>> & Pick<CodexThreadItem, "type" | "id">;

function details(item: Item): Fields | undefined {
  const { id } = item;
  switch (item.type) {
    case "userMessage":
      return { type: "userMessage", id, clientId: item.clientId ?? null, content: item.content.map(shownInput) };
    case "agentMessage":
      return {
        type: "agentMessage",
        id,
        text: item.text,
        phase: item.phase ?? null,
        memoryCitation: null,
        delivery: null,
        questions: null,
        ...defined({ sources: item.sources }),
        ...(item.isPartial === true ? { isPartial: true } : {}),
      };
    case "reasoning":
      return { type: "reasoning", id, summary: item.summary, content: item.text === undefined ? [] : [item.text] };
    case "commandExecution":
      return commandItem(item);
    case "fileChange":
      return { type: "fileChange", id, changes: item.changes.map(change), ...outcome(item.status), ...because(item) };
    case "toolCall":
      if (ASK_TOOLS.has(item.tool)) return undefined;
      if (isClientCall(item)) {
        return {
          type: "dynamicToolCall",
          id,
          ...clientCallFields(item),
          ...toolOutcome(item.status),
          ...because(item),
        };
      }
      return toolItem(item);
    case "mcpToolCall":
      return mcpItem(item);
    case "collabToolCall":
      return collabItem(item);
    case "webSearch": {
      const { query, action } = item.search;
      return { type: "webSearch", id, query, action: searchAction(action), results: null };
    }
    case "imageView":
      return { type: "imageView", id, path: item.path, ...because(item) };
    case "contextCompaction":
      return { type: "contextCompaction", id, ...because(item) };
    case "proposedPlan":
      return { type: "plan", id, text: item.text, ...(isBroken(item.status) ? { isPartial: true } : {}) };
    case "plan":
    case "notice":
      return undefined;
    default:
      return never(item);
  }
}

/** How Heddle runs a command line; clients expect it with its shell. */
const SHELL = ["/bin/bash", "-c"] as const;

export function shownCommand(command: string): string {
  return joinShellWords([...SHELL, command]);
}

export function commandActions(command: string): readonly Readonly<Record<string, unknown>>[] {
  return [{ type: "unknown", command }];
}

function commandItem(item: ItemOf<"commandExecution">): Fields {
  const hasRun = item.status !== "inProgress" && item.status !== "declined";
  return {
    type: "commandExecution",
    id: item.id,
    pluginId: null,
    scriptPath: null,
    command: shownCommand(item.command),
    cwd: item.cwd,
    processId: item.processId ?? null,
    source: item.source === "user" ? "userShell" : "agent",
    ...outcome(item.status, item.exitCode !== undefined && item.exitCode !== 0),
    commandActions: commandActions(item.command),
    aggregatedOutput: hasRun && item.output !== "" ? item.output : null,
    exitCode: item.exitCode ?? null,
    durationMs: item.durationMs ?? null,
    ...(item.truncatedBytes === undefined ? {} : { truncatedBytes: item.truncatedBytes }),
    ...(item.outputBlob === undefined ? {} : { outputBlob: item.outputBlob }),
    ...(item.outputError === undefined ? {} : { outputError: item.outputError }),
    ...(item.outputFile === undefined ? {} : { outputFile: item.outputFile }),
    ...because(item),
  };
}

/** Heddle's own tools appear as those of a server named "heddle". */
function toolItem(item: ItemOf<"toolCall">): Fields {
  const { output } = item;
  const isOver = item.status !== "inProgress";
  return {
    type: "mcpToolCall",
    id: item.id,
    server: "heddle",
    tool: item.tool,
    ...toolOutcome(item.status),
    arguments: item.arguments ?? {},
    ...NO_APP,
    result:
      isOver && output !== undefined
        ? { content: [{ type: "text", text: output }], structuredContent: null, _meta: null }
        : null,
    error: errorOf(item.status, item.error),
    durationMs: item.durationMs ?? null,
  };
}

const NO_APP = { appContext: null, mcpAppUi: null, pluginId: null, readOnlyHint: null } as const;

function mcpItem(item: ItemOf<"mcpToolCall">): Fields {
  const { result } = item;
  return {
    type: "mcpToolCall",
    id: item.id,
    server: item.server,
    tool: item.tool,
    ...toolOutcome(item.status),
    arguments: item.arguments ?? {},
    ...NO_APP,
    result:
      result === undefined
        ? null
        : { content: result.content, structuredContent: result.structuredContent ?? null, _meta: null },
    error: errorOf(item.status, item.error),
    durationMs: item.durationMs ?? null,
  };
}

const COLLAB_TOOLS = { start: "spawnAgent", send: "sendInput", wait: "wait", close: "closeAgent" } as const;
const CHILD_STATUSES = {
  starting: "pendingInit",
  running: "running",
  completed: "completed",
  failed: "errored",
  interrupted: "interrupted",
  closed: "shutdown",
  missing: "notFound",
} as const satisfies Record<ChildStatus, string>;

function collabItem(item: ItemOf<"collabToolCall">): Fields {
  const states = item.children.map(({ threadId: id, status, message = null }) => [
    id,
    { status: CHILD_STATUSES[status], message },
  ]);
  return {
    type: "collabAgentToolCall",
    id: item.id,
    tool: COLLAB_TOOLS[item.tool],
    ...(item.status === "interrupted" ? { status: "interrupted" } : toolOutcome(item.status)),
    senderThreadId: item.senderThreadId,
    receiverThreadIds: item.threadIds,
    prompt: item.prompt ?? null,
    model: item.model ?? null,
    reasoningEffort: item.effort ?? null,
    agentsStates: Object.fromEntries(states),
    ...because(item),
  };
}

function isBroken(status: ItemStatus): boolean {
  return status !== "inProgress" && status !== "completed";
}

function errorOf(status: ItemStatus, error: string | undefined): { readonly message: string } | null {
  if (error !== undefined) return { message: error };
  return isBroken(status) ? { message: status } : null;
}

function because({ error }: { readonly error?: string | undefined }): { readonly error?: string } {
  return error === undefined ? {} : { error };
}

/** A tool that was refused has failed; the original knows no third end of it. */
function toolOutcome(status: ItemStatus): { readonly status: string; readonly outcome?: string } {
  return status === "declined" ? { status: "failed", outcome: status } : outcome(status);
}

/** The original has four statuses; `outcome` says which of Heddle's it was. */
function outcome(status: ItemStatus, hasFailedExit = false): { readonly status: string; readonly outcome?: string } {
  switch (status) {
    case "inProgress":
    case "failed":
    case "declined":
      return { status };
    case "completed":
      return { status: hasFailedExit ? "failed" : "completed" };
    case "interrupted":
    case "unknown":
      return { status: "failed", outcome: status };
    default:
      return never(status);
  }
}

function change(entry: FileChangeEntry): Record<string, unknown> {
  const { path, kind, movedTo, diffTruncatedBytes } = entry;
  return {
    path,
    kind: kind === "update" ? { type: kind, move_path: movedTo ?? null } : { type: kind },
    diff: shownDiff(entry),
    ...(diffTruncatedBytes === undefined ? {} : { diffTruncatedBytes }),
  };
}

function searchAction(action: WebSearch["action"]): Readonly<Record<string, unknown>> {
  switch (action?.kind) {
    case "search":
      return { type: "search", query: action.query ?? null, queries: action.queries ?? null };
    case "openPage":
      return { type: "openPage", url: action.url ?? null };
    case "findInPage":
      return { type: "findInPage", url: action.url ?? null, pattern: action.pattern ?? null };
    default:
      return { type: "other" };
  }
}
