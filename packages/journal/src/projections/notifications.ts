/** One row a notification: the durable queue of every sink. What was delivered stays until its sink's rule removes it. */
import { isNotificationEvent, type StoredEvent } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import type { NotificationRow } from "../task-queries.ts";
import { integer, optionalInteger, optionalText, text } from "../rows.ts";

export const table = "notifications";

export const schema = `
CREATE TABLE notifications (
  id TEXT PRIMARY KEY,
  sink TEXT NOT NULL,
  event TEXT NOT NULL,
  task_id TEXT,
  subject_position INTEGER NOT NULL,
  state TEXT NOT NULL,
  tries INTEGER NOT NULL,
  next_at INTEGER,
  message TEXT,
  payload TEXT NOT NULL,
  queued_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notifications_by_sink ON notifications (sink, state, subject_position, id);
`;

export function apply(connection: Connection, { at, body }: StoredEvent): void {
  if (!isNotificationEvent(body)) return;
  switch (body.type) {
    case "notification.queued": {
      const taskId = body.payload["task_id"];
      connection.run(
        `INSERT INTO notifications (id, sink, event, task_id, subject_position, state, tries, next_at, payload, queued_at, updated_at)
         VALUES (?, ?, ?, ?, ?, 'queued', 0, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        body.notificationId,
        body.sink,
        body.event,
        typeof taskId === "string" ? taskId : null,
        body.position,
        at,
        JSON.stringify(body.payload),
        at,
        at,
      );
      return;
    }
    case "notification.tried":
      connection.run(
        "UPDATE notifications SET state = ?, tries = tries + 1, next_at = ?, message = ?, updated_at = ? WHERE id = ?",
        body.outcome === "retry" ? "queued" : body.outcome,
        body.nextAt ?? null,
        body.message,
        at,
        body.notificationId,
      );
      return;
    case "notification.redelivered":
      connection.run(
        "UPDATE notifications SET state = 'queued', tries = 0, next_at = ?, queued_at = ?, updated_at = ? WHERE id = ?",
        at,
        at,
        at,
        body.notificationId,
      );
      return;
    case "notification.read":
  }
}

export function toNotification(row: Row): NotificationRow {
  return {
    id: text(row, "id"),
    sink: text(row, "sink"),
    event: text(row, "event"),
    taskId: optionalText(row, "task_id"),
    position: integer(row, "subject_position"),
    state: toState(row),
    tries: integer(row, "tries"),
    nextAt: optionalInteger(row, "next_at"),
    message: optionalText(row, "message"),
    payload: JSON.parse(text(row, "payload")) as Readonly<Record<string, unknown>>,
    queuedAt: integer(row, "queued_at"),
    updatedAt: integer(row, "updated_at"),
  };
}

export function toState(row: Row): NotificationRow["state"] {
  const state = text(row, "state");
  return state === "delivered" || state === "dead" ? state : "queued";
}
