/** One row per turn: whether it is open, how it ended, and what its thread had used by then. The first end decides. */
import { NO_CHANGES, NO_LOOKS, type Cells, type Projection } from "./changes.ts";
import { integer, type Row } from "../record/rows.ts";

/** Of all turns of a thread up to the end of one, so that what a part of it used is one difference. */
export const USED_COLUMNS = [
  "input_tokens",
  "cached_input_tokens",
  "cache_write_input_tokens",
  "output_tokens",
  "reasoning_output_tokens",
  "duration_ms",
] as const;

export const turns: Projection = {
  table: "turns",
  needs: ({ stream, body }) =>
    body.type === "turn.completed" ? [{ table: "threads", columns: USED_COLUMNS, where: { id: stream } }] : NO_LOOKS,
  changes({ stream, version, position, body }, [found]) {
    switch (body.type) {
      case "turn.admitted": {
        const values = { thread_id: stream, status: "open", admitted_version: version, admitted_position: position };
        return [{ kind: "insert", table: "turns", key: { id: body.turnId }, values }];
      }
      case "turn.completed": {
        const where = { id: body.turnId, thread_id: stream, status: "open" };
        const used = found?.[0] === undefined ? {} : numbersIn(found[0], USED_COLUMNS);
        const set = { status: body.status, ended_version: version, failure_code: body.failure?.code ?? null, ...used };
        return [{ kind: "update", table: "turns", where, set }];
      }
      case "thread.deleted":
        return [{ kind: "delete", table: "turns", where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};

function numbersIn(row: Row, columns: readonly string[]): Cells {
  return Object.fromEntries(columns.map((column) => [column, integer(row, column)]));
}

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
