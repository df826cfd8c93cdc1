/** One row per model request without an answer: provider, model, thread, task and workspace. */
import { integer, text, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Projection } from "./changes.ts";

const table = "open_requests";

export const requests: Projection = {
  table,
  needs({ stream, body }) {
    if (body.type !== "model.requested") return NO_LOOKS;
    return [
      { table: "tasks", columns: ["id", "workspace", "created_position"], where: { thread_id: stream, is_held: 1 } },
      { table: "threads", columns: ["workspace"], where: { id: stream } },
    ];
  },
  changes({ stream, body }, [held = [], threads]) {
    switch (body.type) {
      case "model.requested": {
        const { turnId, provider, model } = body;
        const task = oldest(held);
        // The task's: nobody knows its worktrees by name.
        const workspace = textOf(task ?? threads?.[0], "workspace");
        const values = { thread_id: stream, turn_id: turnId, provider, model, task_id: textOf(task, "id"), workspace };
        return [{ kind: "put", table, key: { id: body.requestId }, values }];
      }
      case "model.responded":
        return [{ kind: "delete", table, where: { id: body.requestId } }];
      case "turn.completed":
        return [{ kind: "delete", table, where: { thread_id: stream, turn_id: body.turnId } }];
      case "thread.deleted":
        return [{ kind: "delete", table, where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};

function oldest(rows: readonly Row[]): Row | undefined {
  return rows.toSorted((a, b) => integer(a, "created_position") - integer(b, "created_position"))[0];
}

export function textOf(row: Row | undefined, column: string): string {
  return row === undefined ? "" : text(row, column);
}
