/** Rows of threads, turns and queued input, and their statements. */
import { gitInfoIn, settingsIn } from "../../projections/threads.ts";
import { usageIn } from "../../projections/usage-days.ts";
import type { QueuedRow, ThreadRow, TurnRow } from "../../queries/threads.ts";
import { integer, optionalInteger, optionalText, text, wrongKind, type Row } from "../../record/rows.ts";

export const COLUMNS =
  "id, workspace, origin, title, name, preview, forked_from, forked_version, created_at, updated_at, turn_count, last_turn_status, is_ephemeral, is_archived, settings, git_info, log_entries, input_tokens, cached_input_tokens, cache_write_input_tokens, output_tokens, reasoning_output_tokens";
const ALIVE = "deleted_at IS NULL";
const NEWEST_FIRST = "ORDER BY last_position DESC LIMIT ?";

export const THREADS = {
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
    settings: settingsIn(row),
    gitInfo: gitInfoIn(row),
    logEntries: integer(row, "log_entries"),
    usage: usageIn(row),
  };
}

const TURN_COLUMNS = "id, thread_id, status, admitted_version, ended_version, failure_code";

export const TURNS = {
  get: `SELECT ${TURN_COLUMNS} FROM turns WHERE id = ?`,
  ofThread: `SELECT ${TURN_COLUMNS} FROM turns WHERE thread_id = ? ORDER BY admitted_version`,
  last: `SELECT ${TURN_COLUMNS} FROM turns WHERE thread_id = ? AND admitted_version <= ? ORDER BY admitted_version DESC LIMIT 1`,
  open: `SELECT ${TURN_COLUMNS} FROM turns WHERE status = 'open' ORDER BY admitted_position`,
  openOfThread: `SELECT ${TURN_COLUMNS} FROM turns WHERE thread_id = ? AND status = 'open' ORDER BY admitted_version`,
} as const;

const STATUSES = ["open", "completed", "failed", "interrupted"] as const;

function toStatus(stored: string): TurnRow["status"] {
  const status = STATUSES.find((known) => known === stored);
  if (status === undefined) throw wrongKind("status");
  return status;
}

export function toTurn(row: Row): TurnRow {
  return {
    id: text(row, "id"),
    threadId: text(row, "thread_id"),
    status: toStatus(text(row, "status")),
    admittedVersion: integer(row, "admitted_version"),
    endedVersion: optionalInteger(row, "ended_version"),
    failureCode: optionalText(row, "failure_code"),
  };
}

const QUEUED_COLUMNS = "id, thread_id, queued_version";

export const QUEUED = {
  all: `SELECT ${QUEUED_COLUMNS} FROM queued_turns ORDER BY queued_position`,
  ofThread: `SELECT ${QUEUED_COLUMNS} FROM queued_turns WHERE thread_id = ? ORDER BY queued_version`,
} as const;

export function toQueued(row: Row): QueuedRow {
  return {
    turnId: text(row, "id"),
    threadId: text(row, "thread_id"),
    queuedVersion: integer(row, "queued_version"),
  };
}
