/**
 * One row a task: the whole task as its events make it, and beside it the columns that questions are asked by. An event
 * that the machine refuses was never a move; a store that holds one keeps it, and the task stays as it was.
 */
import { hasOwnTree, isHeddleError, isTaskEvent, nextTask, type StoredEvent, type TaskRecord } from "@heddle/protocol";
import type { Connection, Row } from "../driver.ts";
import { text } from "../rows.ts";

export const table = "tasks";

export const schema = `
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  workspace TEXT NOT NULL,
  thread_id TEXT,
  parent_id TEXT,
  priority INTEGER NOT NULL,
  next_at INTEGER,
  wait_cause TEXT,
  is_exclusive INTEGER NOT NULL,
  is_held INTEGER NOT NULL,
  created_position INTEGER NOT NULL,
  updated_position INTEGER NOT NULL,
  record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_creation ON tasks (created_position);
CREATE INDEX tasks_by_state ON tasks (state, created_position);
CREATE INDEX tasks_queue ON tasks (priority DESC, created_position, next_at, is_exclusive, workspace)
  WHERE next_at IS NOT NULL AND is_held = 0;
CREATE INDEX tasks_next ON tasks (next_at) WHERE next_at IS NOT NULL AND is_held = 0;
CREATE INDEX tasks_waiting ON tasks (wait_cause, created_position) WHERE wait_cause IS NOT NULL;
CREATE INDEX tasks_held ON tasks (workspace, is_exclusive) WHERE is_held = 1;
CREATE INDEX tasks_by_name ON tasks (name, created_position);
CREATE INDEX tasks_by_thread ON tasks (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent_id, created_position) WHERE parent_id IS NOT NULL;
`;

export function apply(connection: Connection, event: StoredEvent): void {
  const { stream, version, at, position, body } = event;
  if (!isTaskEvent(body)) return;
  if (body.type === "task.deleted") {
    connection.run("DELETE FROM tasks WHERE id = ?", stream);
    return;
  }
  const row = connection.get("SELECT record FROM tasks WHERE id = ?", stream);
  const task = moved(row === undefined ? undefined : toTask(row), { stream, version, at, body });
  if (task === undefined) return;
  connection.run(
    `INSERT INTO tasks (id, name, state, workspace, thread_id, parent_id, priority, next_at, wait_cause, is_exclusive,
       is_held, created_position, updated_position, record)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, workspace = excluded.workspace,
       thread_id = excluded.thread_id, next_at = excluded.next_at, wait_cause = excluded.wait_cause,
       is_held = excluded.is_held, updated_position = excluded.updated_position, record = excluded.record`,
    stream,
    task.spec.name,
    task.state,
    placeOf(task),
    task.threadId ?? null,
    task.parentId ?? null,
    task.spec.priority,
    task.nextAt ?? null,
    task.wait?.cause ?? null,
    task.spec.exclusive ? 1 : 0,
    task.holder === undefined ? 0 : 1,
    position,
    position,
    JSON.stringify(task),
  );
}

/** The folder it works in, or will; a tree of its own that is not made yet is nobody else's, and a schedule itself does no work. */
function placeOf({ id, folder, spec, parentId }: TaskRecord): string {
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

/** Heddle itself wrote it, from events whose hashes hold. */
export function toTask(row: Row): TaskRecord {
  return JSON.parse(text(row, "record")) as TaskRecord;
}
