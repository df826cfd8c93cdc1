/** One row a thread: what a list of threads shows. The newest activity is the highest position, never the latest time. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import type { ThreadRow } from "../journal.ts";
import { integer, optionalText, text } from "../rows.ts";

export const table = "threads";

export const schema = `
CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  origin TEXT NOT NULL,
  title TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  turn_count INTEGER NOT NULL,
  last_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_activity ON threads (last_position);
CREATE INDEX threads_by_workspace ON threads (workspace, last_position);
`;

export function apply(connection: Connection, event: StoredEvent): void {
  const { stream, at, position, body } = event;
  if (body.type === "thread.created") {
    connection.run(
      `INSERT INTO threads (id, workspace, origin, title, created_at, updated_at, turn_count, last_position)
       VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING`,
      stream,
      body.workspace,
      body.origin,
      body.title ?? null,
      at,
      at,
      position,
    );
    return;
  }
  connection.run(
    "UPDATE threads SET updated_at = ?, last_position = ?, turn_count = turn_count + ? WHERE id = ?",
    at,
    position,
    body.type === "turn.admitted" ? 1 : 0,
    stream,
  );
}

const COLUMNS = "id, workspace, origin, title, created_at, updated_at, turn_count";

export const queries = {
  get: `SELECT ${COLUMNS} FROM threads WHERE id = ?`,
  list: `SELECT ${COLUMNS} FROM threads ORDER BY last_position DESC LIMIT ?`,
  listOfWorkspace: `SELECT ${COLUMNS} FROM threads WHERE workspace = ? ORDER BY last_position DESC LIMIT ?`,
} as const;

export function toThread(row: Row): ThreadRow {
  return {
    id: text(row, "id"),
    workspace: text(row, "workspace"),
    origin: text(row, "origin"),
    title: optionalText(row, "title"),
    createdAt: integer(row, "created_at"),
    updatedAt: integer(row, "updated_at"),
    turnCount: integer(row, "turn_count"),
  };
}
