/**
 * One row a thread: what a list of threads shows. The newest activity is the highest position, never the latest time.
 * Of a deleted thread only that it existed is kept, and every question but `isDeleted` passes over it.
 */
import {
  logEntryCount,
  visibleLine,
  type EventOf,
  type GitInfoChange,
  type InputPart,
  type StoredEvent,
} from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import type { GitInfo, ThreadRow } from "../journal.ts";
import { integer, optionalInteger, optionalText, text } from "../rows.ts";
import { toStatus } from "./turns.ts";

export const table = "threads";

export const schema = `
CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  origin TEXT NOT NULL,
  title TEXT,
  name TEXT,
  preview TEXT,
  forked_from TEXT,
  forked_version INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  turn_count INTEGER NOT NULL,
  last_turn_status TEXT,
  last_position INTEGER NOT NULL,
  is_ephemeral INTEGER,
  is_archived INTEGER,
  settings TEXT,
  git_info TEXT,
  chat_seq INTEGER NOT NULL DEFAULT 0,
  deleted_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_activity ON threads (last_position) WHERE deleted_at IS NULL;
CREATE INDEX threads_by_workspace ON threads (workspace, last_position) WHERE deleted_at IS NULL;
CREATE INDEX threads_ephemeral ON threads (id) WHERE is_ephemeral IS NOT NULL;
CREATE INDEX threads_by_name ON threads (name, last_position) WHERE name IS NOT NULL;
CREATE INDEX threads_by_parent ON threads (forked_from, last_position) WHERE forked_from IS NOT NULL;
`;

export function apply(connection: Connection, event: StoredEvent): void {
  const { stream, at, position, body } = event;
  if (body.type === "thread.created") create(connection, event, body);
  count(connection, event);
  switch (body.type) {
    case "thread.created":
      return;
    case "thread.moved":
      connection.run("UPDATE threads SET workspace = ? WHERE id = ?", body.workspace, stream);
      break;
    case "thread.named":
      // No activity: whoever looks for the last thread means the last one that worked.
      connection.run("UPDATE threads SET name = ? WHERE id = ?", body.name, stream);
      return;
    case "thread.archived":
      connection.run("UPDATE threads SET is_archived = ? WHERE id = ?", body.isArchived ? 1 : null, stream);
      return;
    case "thread.settings-changed":
      changeSettings(connection, stream, body.changes);
      return;
    case "thread.metadata-changed":
      changeGitInfo(connection, stream, body.gitInfo);
      return;
    // Beside the conversation: no activity of it.
    case "thread.goal-changed":
    case "background.ran":
    case "client.intended":
    case "client.settled":
    case "turn.dequeued":
      return;
    case "thread.deleted":
      // Made from this event alone, because the others have nothing left to say.
      connection.run(
        `INSERT OR REPLACE INTO threads (id, workspace, origin, created_at, updated_at, turn_count, last_position, deleted_at)
         VALUES (?, '', '', ?, ?, 0, ?, ?)`,
        stream,
        at,
        at,
        position,
        at,
      );
      return;
    case "turn.admitted":
      connection.run(
        `UPDATE threads SET turn_count = turn_count + 1, last_turn_status = 'open', preview = coalesce(preview, ?)
         WHERE id = ?`,
        previewOf(body.input),
        stream,
      );
      break;
    case "turn.completed":
      connection.run(
        "UPDATE threads SET last_turn_status = ? WHERE id = ? AND last_turn_status = 'open'",
        body.status,
        stream,
      );
      break;
    default:
      break;
  }
  connection.run("UPDATE threads SET updated_at = ?, last_position = ? WHERE id = ?", at, position, stream);
}

function create(connection: Connection, event: StoredEvent, body: EventOf<"thread.created">): void {
  const { stream, at, position } = event;
  connection.run(
    `INSERT INTO threads
       (id, workspace, origin, title, forked_from, forked_version, created_at, updated_at, turn_count, last_position,
        is_ephemeral)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING`,
    stream,
    body.workspace,
    body.origin,
    body.title ?? null,
    body.forkedFrom?.threadId ?? null,
    body.forkedFrom?.version ?? null,
    at,
    at,
    position,
    body.isEphemeral === true ? 1 : null,
  );
}

/** Numbers of the chat dialect are places in the list of a thread's events; how long that is, is asked for often. */
function count(connection: Connection, { stream, body }: StoredEvent): void {
  const weight = logEntryCount(body);
  if (weight > 0) connection.run("UPDATE threads SET chat_seq = chat_seq + ? WHERE id = ?", weight, stream);
}

function changeSettings(connection: Connection, threadId: string, changes: Readonly<Record<string, unknown>>): void {
  const row = connection.get("SELECT settings FROM threads WHERE id = ?", threadId);
  if (row === undefined) return;
  const settings = new Map(Object.entries(settingsOf(row)));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined) settings.delete(key);
    else settings.set(key, value);
  }
  const text = settings.size === 0 ? null : JSON.stringify(Object.fromEntries(settings));
  connection.run("UPDATE threads SET settings = ? WHERE id = ?", text, threadId);
}

function changeGitInfo(connection: Connection, threadId: string, changes: GitInfoChange): void {
  const row = connection.get("SELECT git_info FROM threads WHERE id = ?", threadId);
  if (row === undefined) return;
  const known = gitInfoOf(row);
  const now: GitInfo = {
    sha: changes.sha === undefined ? (known?.sha ?? null) : changes.sha,
    branch: changes.branch === undefined ? (known?.branch ?? null) : changes.branch,
    originUrl: changes.originUrl === undefined ? (known?.originUrl ?? null) : changes.originUrl,
  };
  const isEmpty = Object.values(now).every((value) => value === null);
  connection.run("UPDATE threads SET git_info = ? WHERE id = ?", isEmpty ? null : JSON.stringify(now), threadId);
}

function gitInfoOf(row: Row): GitInfo | undefined {
  const text = optionalText(row, "git_info");
  return text === undefined ? undefined : (JSON.parse(text) as GitInfo);
}

function settingsOf(row: Row): Readonly<Record<string, unknown>> {
  const text = optionalText(row, "settings");
  return text === undefined ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
}

const PREVIEW_CHARS = 120;
/** A prompt may be a whole file; no more of it is looked at than a preview can need. */
const PREVIEW_FROM_CHARS = 8 * PREVIEW_CHARS;

/** The first words of the user on one line, safe to show; null when the input has none. */
function previewOf(input: readonly InputPart[]): string | null {
  const said = input.find((part) => part.type === "text" && part.text.trim() !== "");
  if (said?.type !== "text") return null;
  const start = said.text.trimStart().slice(0, PREVIEW_FROM_CHARS).replace(/\s+/gu, " ").trimEnd();
  const shown = visibleLine(start);
  // Never half of a surrogate pair.
  return shown.length <= PREVIEW_CHARS
    ? shown
    : `${shown.slice(0, PREVIEW_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

export const COLUMNS =
  "id, workspace, origin, title, name, preview, forked_from, forked_version, created_at, updated_at, turn_count, last_turn_status, is_ephemeral, is_archived, settings, git_info, chat_seq";
const ALIVE = "deleted_at IS NULL";
const NEWEST_FIRST = "ORDER BY last_position DESC LIMIT ?";

export const queries = {
  get: `SELECT ${COLUMNS} FROM threads WHERE id = ? AND ${ALIVE}`,
  isDeleted: "SELECT 1 FROM threads WHERE id = ? AND deleted_at IS NOT NULL",
  list: `SELECT ${COLUMNS} FROM threads WHERE ${ALIVE} ${NEWEST_FIRST}`,
  listOfWorkspace: `SELECT ${COLUMNS} FROM threads WHERE workspace = ? AND ${ALIVE} ${NEWEST_FIRST}`,
  named: `SELECT ${COLUMNS} FROM threads WHERE name = ? AND ${ALIVE} ${NEWEST_FIRST}`,
  beginningWith: `SELECT ${COLUMNS} FROM threads WHERE id >= ? AND id < ? AND ${ALIVE} ORDER BY id LIMIT ?`,
  ephemeral: `SELECT ${COLUMNS} FROM threads WHERE is_ephemeral IS NOT NULL ORDER BY id`,
  forksOf: `SELECT ${COLUMNS} FROM threads WHERE forked_from = ? AND ${ALIVE} ${NEWEST_FIRST}`,
} as const;

export function toThread(row: Row): ThreadRow {
  const [parent, version] = [optionalText(row, "forked_from"), optionalInteger(row, "forked_version")];
  const status = optionalText(row, "last_turn_status");
  return {
    id: text(row, "id"),
    workspace: text(row, "workspace"),
    origin: text(row, "origin"),
    title: optionalText(row, "title"),
    name: optionalText(row, "name"),
    preview: optionalText(row, "preview"),
    forkedFrom: parent === undefined || version === undefined ? undefined : { threadId: parent, version },
    createdAt: integer(row, "created_at"),
    updatedAt: integer(row, "updated_at"),
    turnCount: integer(row, "turn_count"),
    lastTurnStatus: status === undefined ? undefined : toStatus(status),
    isEphemeral: optionalInteger(row, "is_ephemeral") !== undefined,
    isArchived: optionalInteger(row, "is_archived") !== undefined,
    settings: settingsOf(row),
    gitInfo: gitInfoOf(row),
    chatSeq: integer(row, "chat_seq"),
  };
}
