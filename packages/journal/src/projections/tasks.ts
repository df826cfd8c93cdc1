/**
 * One row per task: the whole task, and the columns for queries. An event that the machine refuses is kept and changes
 * nothing. The machine is loaded with the first event of a task: a plain run writes none.
 */
import { HeddleError, isTaskEvent, type TaskRecord } from "@heddle/protocol";
import { text, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Projection } from "./changes.ts";
import type { changesOfTask } from "./task-row.ts";

let machine: { readonly changesOfTask: typeof changesOfTask } | undefined;
let failure: unknown;

export const tasks: Projection = {
  table: "tasks",
  later: {
    isMissing: (body) => machine === undefined && isTaskEvent(body),
    async load() {
      try {
        machine ??= await import("./task-row.ts");
      } catch (error) {
        failure = error;
      }
    },
  },
  needs({ stream, body }) {
    if (!isTaskEvent(body)) return NO_LOOKS;
    return [{ table: "tasks", columns: ["record", "created_position"], where: { id: stream } }];
  },
  changes(event, found) {
    const { body } = event;
    if (!isTaskEvent(body)) return NO_CHANGES;
    if (machine === undefined)
      throw new HeddleError("internal", "the machine of tasks is not loaded", { cause: failure });
    return machine.changesOfTask({ ...event, body }, found);
  },
};

/** Written by Heddle itself, from events whose hashes match. */
export function toTask(row: Row): TaskRecord {
  return JSON.parse(text(row, "record")) as TaskRecord;
}
