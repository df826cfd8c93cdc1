/** Which tickets an append of a task sends and settles: one for each time at which the task comes due anew. Pure. */
import type { TicketChange, TicketName } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";

/** Tasks that any worker may take. */
const TASKS = "tasks";
const NONE: readonly TicketChange[] = [];

/** `delivered`: the ticket by which a worker came to make this append. */
export function ticketsOf(
  before: TaskRecord | undefined,
  after: TaskRecord | undefined,
  delivered?: TicketName,
): readonly TicketChange[] {
  const done: readonly TicketChange[] = delivered === undefined ? NONE : [{ kind: "done", ...delivered }];
  if (after === undefined || !waitsForWorker(after)) return done;
  const isKnown = before !== undefined && waitsForWorker(before) && before.nextAt === after.nextAt;
  return isKnown && delivered === undefined ? done : [...done, ticketOf(after)];
}

/** For a task that is due, or will be by itself. */
export function ticketOf({ id, nextAt = 0, spec }: TaskRecord): TicketChange {
  return { kind: "send", queue: TASKS, subject: id, notBefore: nextAt, priority: spec.priority };
}

export function waitsForWorker({ holder, nextAt }: TaskRecord): boolean {
  return holder === undefined && nextAt !== undefined;
}
