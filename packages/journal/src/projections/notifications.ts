/**
 * One row per notification: the durable queue of every sink. Delivered ones stay until the sink's rule removes them.
 */
import { isNotificationEvent } from "@heddle/protocol";
import { integer } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Projection } from "./changes.ts";

const table = "notifications";

export const notifications: Projection = {
  table,
  changes({ at, body }) {
    if (!isNotificationEvent(body)) return NO_CHANGES;
    switch (body.type) {
      case "notification.queued": {
        const { sink, event, payload, position } = body;
        const taskId = payload["task_id"];
        const values = {
          sink,
          event,
          task_id: typeof taskId === "string" ? taskId : null,
          subject_position: position,
          state: "queued",
          tries: 0,
          next_at: at,
          payload: JSON.stringify(payload),
          queued_at: at,
          updated_at: at,
        };
        return [{ kind: "insert", table, key: { id: body.notificationId }, values }];
      }
      case "notification.tried": {
        const { outcome, nextAt = null, message } = body;
        const state = outcome === "retry" ? "queued" : outcome;
        const set = { state, next_at: nextAt, message, updated_at: at };
        return [{ kind: "update", table, where: { id: body.notificationId }, set, add: { tries: 1 } }];
      }
      case "notification.redelivered": {
        const set = { state: "queued", tries: 0, next_at: at, queued_at: at, updated_at: at };
        return [{ kind: "update", table, where: { id: body.notificationId }, set }];
      }
      case "notification.read":
        return NO_CHANGES;
    }
  },
};

/** One row per sink: how far it has read in the journal, also where nothing was sent. */
export const sinks: Projection = {
  table: "sinks",
  needs({ body }) {
    if (body.type !== "notification.queued" && body.type !== "notification.read") return NO_LOOKS;
    return [{ table: "sinks", columns: ["read_position"], where: { name: body.sink } }];
  },
  changes({ body }, [known]) {
    if (body.type !== "notification.queued" && body.type !== "notification.read") return NO_CHANGES;
    const before = known?.[0] === undefined ? 0 : integer(known[0], "read_position");
    const values = { read_position: Math.max(before, body.position) };
    return [{ kind: "put", table: "sinks", key: { name: body.sink }, values }];
  },
};
