/** One row a request to a model that has no answer yet: who was asked, for which thread and task. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection } from "../driver.ts";

export const table = "open_requests";

export const schema = `
CREATE TABLE open_requests (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  task_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX open_requests_by_thread ON open_requests (thread_id);
`;

/** After `usage-days.ts`, which looks here for what an answer belongs to. */
export function apply(connection: Connection, { stream, body }: StoredEvent): void {
  if (body.type === "model.requested") {
    const { requestId, turnId, provider, model } = body;
    connection.run(
      `INSERT OR REPLACE INTO open_requests (id, thread_id, turn_id, provider, model, task_id)
       VALUES (?, ?, ?, ?, ?, coalesce((SELECT id FROM tasks WHERE thread_id = ? AND is_held = 1
         ORDER BY created_position LIMIT 1), ''))`,
      requestId,
      stream,
      turnId,
      provider,
      model,
      stream,
    );
  }
  if (body.type === "model.responded") connection.run("DELETE FROM open_requests WHERE id = ?", body.requestId);
  if (body.type === "turn.completed")
    connection.run("DELETE FROM open_requests WHERE thread_id = ? AND turn_id = ?", stream, body.turnId);
  if (body.type === "thread.deleted") connection.run("DELETE FROM open_requests WHERE thread_id = ?", stream);
}
