/** One row a turn: whether it is open, and how it ended. The first terminal event decides. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import type { TurnRow } from "../journal.ts";
import { integer, optionalText, text, wrongKind } from "../rows.ts";

export const table = "turns";

export const schema = `
CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  status TEXT NOT NULL,
  admitted_version INTEGER NOT NULL,
  admitted_position INTEGER NOT NULL,
  failure_code TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_by_thread ON turns (thread_id, admitted_version);
CREATE INDEX turns_open ON turns (admitted_position) WHERE status = 'open';
`;

export function apply(connection: Connection, event: StoredEvent): void {
  const { stream, version, position, body } = event;
  if (body.type === "turn.admitted") {
    connection.run(
      `INSERT INTO turns (id, thread_id, status, admitted_version, admitted_position)
       VALUES (?, ?, 'open', ?, ?) ON CONFLICT DO NOTHING`,
      body.turnId,
      stream,
      version,
      position,
    );
  } else if (body.type === "turn.completed") {
    connection.run(
      "UPDATE turns SET status = ?, failure_code = ? WHERE id = ? AND thread_id = ? AND status = 'open'",
      body.status,
      body.failure?.code ?? null,
      body.turnId,
      stream,
    );
  } else if (body.type === "thread.deleted") {
    connection.run("DELETE FROM turns WHERE thread_id = ?", stream);
  }
}

const COLUMNS = "id, thread_id, status, admitted_version, failure_code";

export const queries = {
  get: `SELECT ${COLUMNS} FROM turns WHERE id = ?`,
  ofThread: `SELECT ${COLUMNS} FROM turns WHERE thread_id = ? ORDER BY admitted_version`,
  open: `SELECT ${COLUMNS} FROM turns WHERE status = 'open' ORDER BY admitted_position`,
  openOfThread: `SELECT ${COLUMNS} FROM turns WHERE thread_id = ? AND status = 'open' ORDER BY admitted_version`,
} as const;

const STATUSES = ["open", "completed", "failed", "interrupted"] as const;

export function toStatus(stored: string): TurnRow["status"] {
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
    failureCode: optionalText(row, "failure_code"),
  };
}
