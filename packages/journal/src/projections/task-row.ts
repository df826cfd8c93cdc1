/** The row of a task after an event: the whole task, and the columns for queries. */
import { hasOwnTree, isHeddleError, nextTask, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { StoredEvent } from "@heddle/protocol";
import { integer } from "../record/rows.ts";
import { NO_CHANGES, type Found, type RowChange } from "./changes.ts";
import { leaseOfTask } from "./leases.ts";
import { toTask } from "./tasks.ts";

export function changesOfTask(
  { stream, version, at, position, body }: StoredEvent<TaskEventBody>,
  [known]: Found,
): readonly RowChange[] {
  if (body.type === "task.deleted") {
    return [
      { kind: "delete", table: "tasks", where: { id: stream } },
      { kind: "delete", table: "leases", where: { subject: stream } },
    ];
  }
  const before = known?.[0];
  const was = before && toTask(before);
  const task = moved(was, { stream, version, at, body });
  if (task === undefined) return NO_CHANGES;
  const { spec, state, threadId = null, parentId = null, nextAt = null, wait, holder } = task;
  const values = {
    name: spec.name,
    state,
    folder: folderOf(task),
    workspace: spec.workspace,
    thread_id: threadId,
    parent_id: parentId,
    priority: spec.priority,
    next_at: nextAt,
    wait_cause: wait?.cause ?? null,
    is_exclusive: spec.exclusive ? 1 : 0,
    is_held: holder === undefined ? 0 : 1,
    created_position: before === undefined ? position : integer(before, "created_position"),
    updated_position: position,
    record: JSON.stringify(task),
  };
  return [{ kind: "put", table: "tasks", key: { id: stream }, values }, ...leaseOfTask(was, task)];
}

/** Where it works, or will; a tree that is not made yet conflicts with nothing, and a schedule itself does no work. */
function folderOf({ id, folder, spec, parentId }: TaskRecord): string {
  const isSchedule = parentId === undefined && (spec.schedule?.cron ?? spec.schedule?.everyMs) !== undefined;
  return folder ?? (!hasOwnTree(spec) && !isSchedule ? spec.workspace : id);
}

function moved(task: TaskRecord | undefined, event: Parameters<typeof nextTask>[1]): TaskRecord | undefined {
  try {
    return nextTask(task, event);
  } catch (error) {
    if (isHeddleError(error)) return undefined;
    throw error;
  }
}
