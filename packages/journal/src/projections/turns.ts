/** One row per turn: whether it is open, and how it ended. The first terminal event decides. */
import { NO_CHANGES, type Projection } from "./changes.ts";

export const turns: Projection = {
  table: "turns",
  changes({ stream, version, position, body }) {
    switch (body.type) {
      case "turn.admitted": {
        const values = { thread_id: stream, status: "open", admitted_version: version, admitted_position: position };
        return [{ kind: "insert", table: "turns", key: { id: body.turnId }, values }];
      }
      case "turn.completed": {
        const where = { id: body.turnId, thread_id: stream, status: "open" };
        const set = { status: body.status, ended_version: version, failure_code: body.failure?.code ?? null };
        return [{ kind: "update", table: "turns", where, set }];
      }
      case "thread.deleted":
        return [{ kind: "delete", table: "turns", where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};

/** One row per queued input, until it is begun, refused, or deleted with its thread. */
export const queued: Projection = {
  table: "queued_turns",
  changes({ stream, version, position, body }) {
    switch (body.type) {
      case "turn.queued": {
        const values = { thread_id: stream, queued_version: version, queued_position: position };
        // Queued again: it was changed, or stands behind others now.
        return [
          { kind: "delete", table: "queued_turns", where: { id: body.turnId, thread_id: stream } },
          { kind: "insert", table: "queued_turns", key: { id: body.turnId }, values },
        ];
      }
      case "turn.admitted":
      case "turn.dequeued":
        return [{ kind: "delete", table: "queued_turns", where: { id: body.turnId, thread_id: stream } }];
      case "thread.deleted":
        return [{ kind: "delete", table: "queued_turns", where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};
