/** One row per queued input, until it is begun, refused, or deleted with its thread. */
import { NO_CHANGES, type Projection } from "./changes.ts";

const table = "queued_turns";

export const queued: Projection = {
  table,
  changes({ stream, version, position, body }) {
    switch (body.type) {
      case "turn.queued": {
        const values = { thread_id: stream, queued_version: version, queued_position: position };
        return [{ kind: "insert", table, key: { id: body.turnId }, values }];
      }
      case "turn.admitted":
      case "turn.dequeued":
        return [{ kind: "delete", table, where: { id: body.turnId, thread_id: stream } }];
      case "thread.deleted":
        return [{ kind: "delete", table, where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};
