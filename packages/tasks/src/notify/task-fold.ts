/** Tasks as they were at each event, however far ahead the projection is. */
import type { Journal } from "@heddle/journal";
import {
  isHeddleError,
  isTaskEvent,
  nextTask,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";

/** More tasks than run at once; a dropped one is read again. */
const MAX_KEPT = 512;

export type TaskFold = (event: StoredEvent<TaskEventBody>) => Promise<TaskRecord | undefined>;

export function foldTasks(journal: Journal): TaskFold {
  const kept = new Map<string, TaskRecord>();
  return async (event) => {
    const before = kept.get(event.stream);
    const after =
      before === undefined || before.version !== event.version - 1
        ? await readUpTo(journal, event)
        : step(before, event);
    kept.delete(event.stream);
    if (after !== undefined && event.body.type !== "task.deleted") kept.set(event.stream, after);
    const oldest = kept.size > MAX_KEPT ? kept.keys().next().value : undefined;
    if (oldest !== undefined) kept.delete(oldest);
    return after;
  };
}

async function readUpTo(journal: Journal, { stream, version }: StoredEvent): Promise<TaskRecord | undefined> {
  const newest = await journal.tasks.get(stream);
  if (newest?.version === version) return newest;
  let task: TaskRecord | undefined;
  for (let after = 0; after < version;) {
    const events = await journal.read({ stream, after });
    if (events.length === 0) return task;
    for (const event of events) {
      if (event.version > version) return task;
      if (isTaskEvent(event.body)) task = step(task, { ...event, body: event.body });
      after = event.version;
    }
  }
  return task;
}

/** An event that the machine refuses changes only the version. */
function step(task: TaskRecord | undefined, event: StoredEvent<TaskEventBody>): TaskRecord | undefined {
  try {
    return nextTask(task, event);
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    return task && { ...task, version: event.version };
  }
}
