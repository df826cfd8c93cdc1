/** Which tickets an append of a task sends and settles: one for each time at which the task comes due anew. Pure. */
import type { TicketChange, TicketName } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";

/** Tasks that any worker may take. */
export const TASKS = "tasks";
/** In no label. */
const BETWEEN = "/";
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
export function ticketOf({ id, nextAt = 0, spec }: TaskRecord): Extract<TicketChange, { kind: "send" }> {
  const queue = [TASKS, ...(spec.needs ?? []).toSorted()].join(BETWEEN);
  return { kind: "send", queue, subject: id, notBefore: nextAt, priority: spec.priority };
}

/** What a worker needs to have to look into a queue; undefined: it is no queue of tasks. */
export function needsOf(queue: string): readonly string[] | undefined {
  const [first, ...needs] = queue.split(BETWEEN);
  return first === TASKS ? needs : undefined;
}

export function waitsForWorker({ holder, nextAt }: TaskRecord): boolean {
  return holder === undefined && nextAt !== undefined;
}
