/** Delivery by a queue of tickets, for a store that machines share. A ticket leads to a task; its row decides. */
import type { Journal } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";
import type { Delivery, Dispatch, Looking } from "./dispatch.ts";
import type { DeliveredTicket, TicketQueue } from "./ticket-queue.ts";
import { needsOf, TASKS, ticketOf, waitsForWorker } from "./tickets.ts";

/** Tasks with other needs than before are few. */
const NAMES_KEPT_MS = 5_000;
const PAGE = 500;
const DEAD_AT_ONCE = 32;

export function ticketDispatch({ tasks }: Pick<Journal, "tasks">, queue: TicketQueue): Dispatch {
  let known: { readonly names: readonly string[]; readonly readAt: number } | undefined;

  /** Those with the most needs first: fewer workers can take what is in them. */
  async function queuesFor(labels: readonly string[]): Promise<readonly string[]> {
    if (known === undefined || performance.now() - known.readAt > NAMES_KEPT_MS)
      known = { names: await queue.names(), readAt: performance.now() };
    return [...new Set([TASKS, ...known.names])]
      .map((name) => ({ name, needs: needsOf(name) }))
      .filter(({ needs }) => needs?.every((need) => labels.includes(need)) === true)
      .toSorted((a, b) => (b.needs?.length ?? 0) - (a.needs?.length ?? 0))
      .map(({ name }) => name);
  }

  async function open(ticket: DeliveredTicket, now: number): Promise<Delivery | undefined> {
    const task = await tasks.get(ticket.subject);
    if (task !== undefined && isDue(task, now)) return { task, ticket };
    // Out of date; or the clock of the database is ahead of this one.
    await settle(ticket, task, task !== undefined && waitsForWorker(task) ? (task.nextAt ?? now) : "never");
    return undefined;
  }

  async function settle(ticket: DeliveredTicket | undefined, task: TaskRecord | undefined, at: number | "never") {
    if (ticket === undefined) return;
    const done = { kind: "done", ...ticket } as const;
    const again = at === "never" || task === undefined ? [] : [{ ...ticketOf(task), notBefore: at }];
    await queue.change([done, ...again]);
  }

  return {
    async deliveries({ now, room, labels }: Looking) {
      const found: Delivery[] = [];
      for (const name of await queuesFor(labels)) {
        if (found.length >= room) break;
        for (const ticket of await queue.fetch(name, room - found.length)) {
          const delivery = await open(ticket, now);
          if (delivery !== undefined) found.push(delivery);
        }
      }
      return found.toSorted(
        (a, b) => b.task.spec.priority - a.task.spec.priority || a.task.createdAt - b.task.createdAt,
      );
    },
    later: async ({ task, ticket }, at) => {
      if (ticket !== undefined) await settle({ ...ticket, subject: task.id }, task, at);
    },
    async dead() {
      const found: Delivery[] = [];
      for (const ticket of await queue.dead(DEAD_AT_ONCE)) {
        const task = await tasks.get(ticket.subject);
        if (task !== undefined && waitsForWorker(task)) found.push({ task, ticket });
        else await settle(ticket, task, "never");
      }
      return found;
    },
    async rebuild() {
      const waiting = new Map<string, ReadonlySet<string>>();
      let sent = 0;
      for await (const task of comingTasks(tasks)) {
        const ticket = ticketOf(task);
        const there = waiting.get(ticket.queue) ?? (await queue.waiting(ticket.queue));
        waiting.set(ticket.queue, there);
        if (there.has(task.id)) continue;
        await queue.change([ticket]);
        sent += 1;
      }
      return sent;
    },
    // Who has opened the queue closes it, after everything that writes to it.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function isDue(task: TaskRecord, now: number): boolean {
  return waitsForWorker(task) && (task.nextAt ?? now) <= now;
}

async function* comingTasks(tasks: Journal["tasks"]): AsyncGenerator<TaskRecord, void, void> {
  let after: string | undefined;
  for (;;) {
    const page = await tasks.page({
      states: ["pending", "waiting"],
      limit: PAGE,
      ...(after === undefined ? {} : { after }),
    });
    for (const task of page) if (waitsForWorker(task)) yield task;
    after = page.at(-1)?.id;
    if (page.length < PAGE) return;
  }
}
