import type { NotificationQueries, NotificationRow } from "../../queries/notifications.ts";
import { integer, optionalInteger, optionalText, text, type Row } from "../../record/rows.ts";
import { get, rowsAs, type Ask, type Value } from "../ask.ts";

export function notificationQueries(ask: Ask): NotificationQueries {
  const rows = (sql: string, ...values: Value[]): Promise<readonly NotificationRow[]> =>
    ask(() => rowsAs(sql, toNotification, ...values));
  return {
    get: async (id) => (await rows("SELECT * FROM notifications WHERE id = ?", id))[0],
    page: ({ sink, state, taskId, after, limit }) => {
      const asked = Object.entries({ sink, state, task_id: taskId }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      );
      const conditions = asked.map(([column]) => `${column} = ?`);
      const values = asked.map(([, value]) => value);
      // Ids sort by their events.
      if (after !== undefined) {
        conditions.push("id < ?");
        values.push(after);
      }
      const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
      return rows(`SELECT * FROM notifications ${where} ORDER BY id DESC LIMIT ?`, ...values, limit);
    },
    next: async (sink, tries) => {
      const waiting = "SELECT * FROM notifications WHERE sink = ? AND state = 'queued'";
      const [head] = await rows(`${waiting} AND tries < ? ORDER BY subject_position, id LIMIT 1`, sink, tries);
      const [late] = await rows(`${waiting} AND tries >= ? ORDER BY next_at LIMIT 1`, sink, tries);
      return { head, late };
    },
    counts: () =>
      ask(() =>
        rowsAs(
          "SELECT sink, state, count(*) AS count FROM notifications GROUP BY sink, state ORDER BY sink, state",
          (row) => ({ sink: text(row, "sink"), state: stateIn(row), count: integer(row, "count") }),
        ),
      ),
    cursor: (sink) =>
      ask(function* () {
        const row = yield* get("SELECT read_position FROM sinks WHERE name = ?", sink);
        return row === undefined ? undefined : integer(row, "read_position");
      }),
  };
}

function toNotification(row: Row): NotificationRow {
  return {
    id: text(row, "id"),
    sink: text(row, "sink"),
    event: text(row, "event"),
    taskId: optionalText(row, "task_id"),
    position: integer(row, "subject_position"),
    state: stateIn(row),
    tries: integer(row, "tries"),
    nextAt: optionalInteger(row, "next_at"),
    message: optionalText(row, "message"),
    payload: JSON.parse(text(row, "payload")) as Readonly<Record<string, unknown>>,
    queuedAt: integer(row, "queued_at"),
    updatedAt: integer(row, "updated_at"),
  };
}

function stateIn(row: Row): NotificationRow["state"] {
  const state = text(row, "state");
  return state === "delivered" || state === "dead" ? state : "queued";
}
