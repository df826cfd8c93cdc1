/**
 * The one way to change a task: read it, ask the task machine, append on that version. After a conflict a request of the
 * user is decided again; a worker learns that the task is no longer its own.
 */
import {
  afterEvents,
  defined,
  HeddleError,
  isHeddleError,
  type Author,
  type Lease,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import type { AppendGuard, Journal, TicketName } from "@heddle/journal";
import { ticketsOf } from "./tickets.ts";

/** A task has few writers; so many conflicts in a row are a fault. */
const MAX_TRIES = 50;

export interface Change {
  readonly author: Author;
  /** Called again after a conflict. An empty list: nothing to do. */
  readonly decide: (task: TaskRecord) => readonly TaskEventBody[] | Promise<readonly TaskEventBody[]>;
}

/** The task after the change. Throws what the task machine refuses. */
export async function changeTask(journal: Journal, taskId: string, { author, decide }: Change): Promise<TaskRecord> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const task = await existing(journal, taskId);
    const events = await decide(task);
    if (events.length === 0) return task;
    const next = await appendTo(journal, task, { author, events });
    if (next !== undefined) return next;
  }
  throw new HeddleError("store.busy", `task ${taskId} is being changed by another process; try again`);
}

/** Only if it is still queued: another process may have changed it. */
export async function changeQueued(journal: Journal, seen: TaskRecord, event: TaskEventBody): Promise<void> {
  await changeTask(journal, seen.id, {
    author: "system",
    decide: (task) =>
      (task.state === "pending" || task.state === "waiting") && task.holder === undefined ? [event] : [],
  });
}

export async function existing(journal: Journal, taskId: string): Promise<TaskRecord> {
  const task = await journal.tasks.get(taskId);
  if (task === undefined) throw new HeddleError("task.not-found", `there is no task ${taskId}`);
  return task;
}

export interface TaskAppend {
  readonly author: Author;
  readonly events: readonly TaskEventBody[];
  readonly lease?: Lease;
  readonly guard?: AppendGuard;
  /** The ticket by which its worker came to it; it is done with this append. */
  readonly ticket?: TicketName | undefined;
}

/** undefined: it has changed since it was read, and nothing was written. */
export async function appendTo(
  journal: Journal,
  task: TaskRecord,
  { author, events, lease, guard, ticket }: TaskAppend,
): Promise<TaskRecord | undefined> {
  // What the task machine refuses is never stored.
  const after = afterEvents(task, task.id, events, task.updatedAt);
  const tickets = ticketsOf(task, after, ticket);
  try {
    const appended = await journal.append({
      stream: task.id,
      author,
      events,
      expectedVersion: task.version,
      ...defined({ lease, guard }),
      ...(tickets.length === 0 ? {} : { tickets }),
    });
    const at = appended.events.at(-1)?.at ?? task.updatedAt;
    return afterEvents(task, task.id, events, at);
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.version-conflict") return undefined;
    throw error;
  }
}
