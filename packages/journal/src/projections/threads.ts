/**
 * One row per thread, for lists. The newest activity is the highest position, never the latest time. Of a deleted
 * thread only its existence is kept, and only `isDeleted` sees it.
 */
import {
  usageInSnakeCase,
  isNotificationEvent,
  isTaskEvent,
  logEntryCount,
  visibleLine,
  type EventBody,
  type EventOf,
  type GitInfoChange,
  type InputPart,
  type StoredEvent,
} from "@heddle/protocol";
import type { GitInfo } from "../queries/threads.ts";
import { optionalText, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Cells, type Projection, type RowChange } from "./changes.ts";

const table = "threads";

export const threads: Projection = {
  table,
  needs({ stream, body }) {
    if (body.type === "thread.settings-changed") return [{ table, columns: ["settings"], where: { id: stream } }];
    if (body.type === "thread.metadata-changed") return [{ table, columns: ["git_info"], where: { id: stream } }];
    if (body.type === "thread.created" && body.forkedFrom !== undefined) {
      return [{ table, columns: ["provider"], where: { id: body.forkedFrom.threadId } }];
    }
    return NO_LOOKS;
  },
  changes(event, [known]) {
    const { stream, at, position, body } = event;
    if (isTaskEvent(body) || isNotificationEvent(body)) return NO_CHANGES;
    if (body.type === "thread.deleted") return deleted(event);
    const id = { id: stream };
    const count = logEntryCount(body);
    if (body.type === "thread.created") {
      return [created(event, body, known?.[0]), { kind: "update", table, where: id, add: { log_entries: count } }];
    }
    const isActivity = !BESIDE.has(body.type);
    const set = { ...settingOf(body, known?.[0]), ...(isActivity ? { updated_at: at, last_position: position } : {}) };
    const add = { ...(count > 0 ? { log_entries: count } : {}), ...countedIn(body) };
    if (Object.keys(set).length === 0 && Object.keys(add).length === 0) return NO_CHANGES;
    const fill = body.type === "turn.admitted" ? { fill: { preview: previewOf(body.input) } } : {};
    const change: RowChange = { kind: "update", table, where: id, set, add, ...fill };
    if (body.type !== "turn.completed") return [change];
    const where = { ...id, last_turn_status: "open" };
    return [{ kind: "update", table, where, set: { last_turn_status: body.status } }, change];
  },
};

function countedIn(body: EventBody): Cells {
  if (body.type === "turn.admitted") return { turn_count: 1 };
  return body.type === "turn.completed"
    ? { ...usageInSnakeCase(body.usage), duration_ms: Math.round(body.durationMs) }
    : {};
}

/** Not activity: the last thread is the last one that worked. */
const BESIDE: ReadonlySet<EventBody["type"]> = new Set<EventBody["type"]>([
  "thread.named",
  "thread.agent-named",
  "thread.archived",
  "thread.settings-changed",
  "thread.metadata-changed",
  "thread.goal-changed",
  "thread.attachment-changed",
  "background.ran",
  "client.intended",
  "client.settled",
  "turn.dequeued",
  "evidence.noted",
  "evidence.collected",
  "evidence.imported",
  "item.imported",
  "thread.imported",
  "message.sent",
  "message.received",
  "message.settled",
]);

function settingOf(body: EventBody, known: Row | undefined): Cells {
  switch (body.type) {
    case "thread.moved":
      return { workspace: body.workspace };
    case "thread.named":
      return { name: body.name };
    case "thread.agent-named":
      return { agent_name: body.name };
    case "thread.archived":
      return { is_archived: body.isArchived ? 1 : null };
    case "thread.settings-changed":
      return { settings: settingsAfter(known && settingsIn(known), body.changes), ...providerIn(body.changes) };
    case "thread.metadata-changed":
      return { git_info: gitInfoAfter(known && gitInfoIn(known), body.gitInfo) };
    case "turn.admitted":
      return { last_turn_status: "open", provider: body.settings.provider };
    default:
      return {};
  }
}

/** Its next turn decides anew where none is named any more. */
function providerIn({ model_provider: provider }: Readonly<Record<string, unknown>>): Cells {
  return typeof provider === "string" ? { provider } : {};
}

function created(
  { stream, at, position }: StoredEvent,
  body: EventOf<"thread.created">,
  parent: Row | undefined,
): RowChange {
  const values = {
    workspace: body.workspace,
    origin: body.origin,
    title: body.title ?? null,
    forked_from: body.forkedFrom?.threadId ?? null,
    forked_version: body.forkedFrom?.version ?? null,
    parent_thread: body.parent?.threadId ?? null,
    parent_turn: body.parent?.turnId ?? null,
    parent_item: body.parent?.itemId ?? null,
    depth: body.parent?.depth ?? null,
    created_at: at,
    updated_at: at,
    turn_count: 0,
    last_position: position,
    is_ephemeral: body.isEphemeral === true ? 1 : null,
    provider: parent === undefined ? null : (optionalText(parent, "provider") ?? null),
  };
  return { kind: "insert", table, key: { id: stream }, values };
}

/** From this event alone, because the others have no content any more. */
function deleted({ stream, at, position }: StoredEvent): readonly RowChange[] {
  const times = { created_at: at, updated_at: at, last_position: position, deleted_at: at };
  const values = { workspace: "", origin: "", turn_count: 0, ...times };
  return [
    { kind: "delete", table, where: { id: stream } },
    { kind: "insert", table, key: { id: stream }, values },
  ];
}

function settingsAfter(
  before: Readonly<Record<string, unknown>> = {},
  changes: Readonly<Record<string, unknown>>,
): string | null {
  const settings = new Map(Object.entries(before));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined) settings.delete(key);
    else settings.set(key, value);
  }
  return settings.size === 0 ? null : JSON.stringify(Object.fromEntries(settings));
}

function gitInfoAfter(before: GitInfo | undefined, changes: GitInfoChange): string | null {
  const now: GitInfo = {
    sha: changes.sha === undefined ? (before?.sha ?? null) : changes.sha,
    branch: changes.branch === undefined ? (before?.branch ?? null) : changes.branch,
    originUrl: changes.originUrl === undefined ? (before?.originUrl ?? null) : changes.originUrl,
  };
  return Object.values(now).every((value) => value === null) ? null : JSON.stringify(now);
}

export function gitInfoIn(row: Row): GitInfo | undefined {
  const text = optionalText(row, "git_info");
  return text === undefined ? undefined : (JSON.parse(text) as GitInfo);
}

export function settingsIn(row: Row): Readonly<Record<string, unknown>> {
  const text = optionalText(row, "settings");
  return text === undefined ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
}

const PREVIEW_CHARS = 120;
/** A prompt may be a whole file; a preview needs no more of it. */
const PREVIEW_FROM_CHARS = 8 * PREVIEW_CHARS;

function previewOf(input: readonly InputPart[]): string | null {
  const first = input.find((part) => part.type === "text" && part.text.trim() !== "");
  if (first?.type !== "text") return null;
  const start = first.text.trimStart().slice(0, PREVIEW_FROM_CHARS).replace(/\s+/gu, " ").trimEnd();
  const shown = visibleLine(start);
  // Never half of a surrogate pair.
  return shown.length <= PREVIEW_CHARS
    ? shown
    : `${shown.slice(0, PREVIEW_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
