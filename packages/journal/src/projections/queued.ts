/** One row for each input that waits for its turn. Whatever begins it, refuses it or deletes its thread takes it out. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import type { QueuedRow } from "../journal.ts";
import { integer, text } from "../rows.ts";

export const table = "queued_turns";

export const schema = `
CREATE TABLE queued_turns (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  queued_version INTEGER NOT NULL,
  queued_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX queued_turns_by_thread ON queued_turns (thread_id, queued_version);
`;

export function apply(connection: Connection, { stream, version, position, body }: StoredEvent): void {
  if (body.type === "turn.queued") {
    connection.run(
      `INSERT INTO queued_turns (id, thread_id, queued_version, queued_position)
       VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      body.turnId,
      stream,
      version,
      position,
    );
  } else if (body.type === "turn.admitted" || body.type === "turn.dequeued") {
    connection.run("DELETE FROM queued_turns WHERE id = ? AND thread_id = ?", body.turnId, stream);
  } else if (body.type === "thread.deleted") {
    connection.run("DELETE FROM queued_turns WHERE thread_id = ?", stream);
  }
}

const COLUMNS = "id, thread_id, queued_version";

export const queries = {
  all: `SELECT ${COLUMNS} FROM queued_turns ORDER BY queued_position`,
  ofThread: `SELECT ${COLUMNS} FROM queued_turns WHERE thread_id = ? ORDER BY queued_version`,
} as const;

export function toQueued(row: Row): QueuedRow {
  return {
    turnId: text(row, "id"),
    threadId: text(row, "thread_id"),
    queuedVersion: integer(row, "queued_version"),
  };
}
