/** Rows of threads, turns and queued input, and their statements. */
import { NO_USAGE } from "@heddle/protocol";
import { gitInfoIn, settingsIn } from "../../projections/threads.ts";
import { USED_COLUMNS } from "../../projections/turns.ts";
import { usageIn } from "../../projections/usage-days.ts";
import type { OpenApprovalRow, OpenItemRow, QueuedRow, ThreadRow, TurnRow, Used } from "../../queries/threads.ts";
import { integer, optionalInteger, optionalText, text, wrongKind, type Row } from "../../record/rows.ts";
import type { Dialect } from "../dialect.ts";

export const COLUMNS =
  "id, workspace, origin, title, name, agent_name, preview, forked_from, forked_version, parent_thread, parent_turn, parent_item, depth, created_at, updated_at, turn_count, last_turn_status, is_ephemeral, is_archived, settings, git_info, log_entries, input_tokens, cached_input_tokens, cache_write_input_tokens, output_tokens, reasoning_output_tokens";
const ALIVE = "deleted_at IS NULL";
const NEWEST_FIRST = "ORDER BY last_position DESC LIMIT ?";

export const THREADS = {
  get: `SELECT ${COLUMNS} FROM threads WHERE id = ? AND ${ALIVE}`,
  isDeleted: "SELECT 1 FROM threads WHERE id = ? AND deleted_at IS NOT NULL",
  childrenOf: `SELECT ${COLUMNS} FROM threads WHERE parent_thread = ? AND ${ALIVE} ORDER BY id LIMIT ?`,
  named: `SELECT ${COLUMNS} FROM threads WHERE name = ? AND ${ALIVE} ${NEWEST_FIRST}`,
  agentsNamed: `SELECT ${COLUMNS} FROM threads WHERE agent_name = ? AND ${ALIVE} ORDER BY id LIMIT ?`,
  beginningWith: `SELECT ${COLUMNS} FROM threads WHERE id >= ? AND id < ? AND ${ALIVE} ORDER BY id LIMIT ?`,
  ephemeral: `SELECT ${COLUMNS} FROM threads WHERE is_ephemeral IS NOT NULL ORDER BY id`,
  forksOf: `SELECT ${COLUMNS} FROM threads WHERE forked_from = ? AND ${ALIVE} ${NEWEST_FIRST}`,
} as const;

export function listThreads(where: string, withChildren: boolean): string {
  const root = withChildren ? "" : "AND parent_thread IS NULL";
  return `SELECT ${COLUMNS} FROM threads WHERE ${where} ${ALIVE} ${root} ${NEWEST_FIRST}`;
}

export function toThread(row: Row): ThreadRow {
  const [parent, version] = [optionalText(row, "forked_from"), optionalInteger(row, "forked_version")];
  const status = optionalText(row, "last_turn_status");
  return {
    id: text(row, "id"),
    workspace: text(row, "workspace"),
    origin: text(row, "origin"),
    title: optionalText(row, "title"),
    name: optionalText(row, "name"),
    agentName: optionalText(row, "agent_name"),
    preview: optionalText(row, "preview"),
    forkedFrom: parent === undefined || version === undefined ? undefined : { threadId: parent, version },
    parent: parentIn(row),
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

function parentIn(row: Row): ThreadRow["parent"] {
  const [threadId, turnId] = [optionalText(row, "parent_thread"), optionalText(row, "parent_turn")];
  const [itemId, depth] = [optionalText(row, "parent_item"), optionalInteger(row, "depth")];
  if (threadId === undefined || turnId === undefined || itemId === undefined || depth === undefined) return undefined;
  return { threadId, turnId, itemId, depth };
}

const TURN_COLUMNS = "id, thread_id, status, admitted_version, ended_version, failure_code";

export const TURNS = {
  get: `SELECT ${TURN_COLUMNS} FROM turns WHERE id = ?`,
  ofThread: `SELECT ${TURN_COLUMNS} FROM turns WHERE thread_id = ? ORDER BY admitted_version`,
  last: `SELECT ${TURN_COLUMNS} FROM turns WHERE thread_id = ? AND admitted_version <= ? ORDER BY admitted_version DESC LIMIT 1`,
  used: `SELECT ${USED_COLUMNS.join(", ")} FROM turns WHERE thread_id = ? AND admitted_version < ? AND ended_version <= ? ORDER BY admitted_version DESC LIMIT 1`,
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

export function toUsed(row: Row | undefined): Used {
  return row === undefined
    ? { usage: NO_USAGE, durationMs: 0 }
    : { usage: usageIn(row), durationMs: integer(row, "duration_ms") };
}

export const OPEN = {
  items: ({ each }: Dialect) =>
    `SELECT * FROM open_items WHERE thread_id IN (SELECT value FROM ${each("?", "asked")}) ORDER BY thread_id, started_version`,
  approvals: "SELECT * FROM open_approvals ORDER BY asked_at, id",
  approvalsOfThread: "SELECT * FROM open_approvals WHERE thread_id = ? ORDER BY asked_at, id",
  itemStarts:
    "SELECT version FROM events WHERE stream = ? AND version < ? AND type = 'item.started' ORDER BY version DESC LIMIT ?",
} as const;

export function toOpenItem(row: Row): OpenItemRow {
  return {
    threadId: text(row, "thread_id"),
    itemId: text(row, "item_id"),
    turnId: text(row, "turn_id"),
    // Written by Heddle itself, from an item of that type.
    type: text(row, "type") as OpenItemRow["type"],
    text: optionalText(row, "text"),
    startedVersion: integer(row, "started_version"),
    startedAt: integer(row, "started_at"),
    outputAt: optionalInteger(row, "output_at"),
  };
}

export function toOpenApproval(row: Row): OpenApprovalRow {
  return {
    id: text(row, "id"),
    threadId: text(row, "thread_id"),
    turnId: text(row, "turn_id"),
    version: integer(row, "version"),
    askedAt: integer(row, "asked_at"),
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
