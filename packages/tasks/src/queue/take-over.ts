/** What dead workers left: they are fenced, their turns closed, and the tasks that they held are found. */
import { fenceLost, recover } from "@heddle/agent";
import type { Journal, TicketName } from "@heddle/journal";
import { defined, type TaskRecord } from "@heddle/protocol";
import { appendTo } from "./change.ts";
import { isAbandoned, isOurs, leaseOf } from "./take.ts";

export interface Left {
  readonly abandoned: readonly TaskRecord[];
  /** Living ones hold some, or did. */
  readonly othersHold: boolean;
}

/** `isMember`: the process has joined its store, and may fence others. */
export async function whatDeadWorkersLeft(
  journal: Journal,
  { isMember }: { readonly isMember: boolean },
): Promise<Left> {
  if (isMember) await fenceLost(journal);
  const foreign = (await journal.tasks.held()).filter(({ holder }) => holder !== undefined && !isOurs(holder));
  const abandoned: TaskRecord[] = [];
  for (const task of foreign) if (await isAbandoned(journal, task)) abandoned.push(task);
  // Turns of dead processes are closed first, so that the next worker finds their ends.
  if (abandoned.length > 0) await recover(journal);
  return { abandoned, othersHold: foreign.length > 0 };
}

/** A task that ends its worker each time must not go round. */
const MAX_TAKEOVERS = 3;

/** Taken over again and again, and no step of it has ended in between. */
export async function isTooOftenLost(journal: Journal, { id }: Pick<TaskRecord, "id">): Promise<boolean> {
  const newest = (kind: "task.step" | "task.taken", count: number) =>
    journal.marks.events({ stream: id, kinds: [kind], name: "", newest: count });
  const [step] = await newest("task.step", 1);
  const taken = await newest("task.taken", MAX_TAKEOVERS + 2);
  // The first taking is no take-over, and the newest is the one that asks.
  return taken.filter(({ version }) => version > (step?.version ?? 0)).length > MAX_TAKEOVERS + 1;
}

export async function failLost(journal: Journal, taken: TaskRecord): Promise<void> {
  const message = `${MAX_TAKEOVERS + 1} workers ended while they held it, and no step of it has ended in between`;
  const failed = { ...lost(message), attempt: taken.attempt };
  await appendTo(journal, taken, { author: "system", events: [failed], lease: leaseOf(taken) });
}

/** Every worker that was to take it ended before it did. */
export async function failUntaken(journal: Journal, task: TaskRecord, ticket: TicketName | undefined): Promise<void> {
  const failed = lost("it was brought to one worker after the other, and each ended before it took the task");
  await appendTo(journal, task, { author: "system", events: [failed], ...defined({ ticket }) });
}

function lost(message: string) {
  return { type: "task.failed", v: 1, class: "crash", failure: { code: "worker.lost", message } } as const;
}
