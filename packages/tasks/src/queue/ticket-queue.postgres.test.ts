/** Tickets in a real Postgres: sent and done with the transaction they belong to, delivered once, never lost. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, type TicketChange } from "@heddle/journal";
import type { EventBody } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { PgBoss } from "pg-boss";
import { expect, test } from "vitest";
import { ticketDispatch } from "./dispatch-tickets.ts";
import { openTicketQueue, type TicketQueue } from "./ticket-queue.ts";

const ADDRESS = process.env["HEDDLE_TEST_POSTGRES"] ?? "";
const QUEUE = "tasks";
const log = (): void => undefined;
let schemas = 0;

interface Fixture extends AsyncDisposable {
  open(): Promise<TicketQueue>;
  /** The changes in a transaction that ends so. */
  inTransaction(end: "commit" | "rollback", queue: TicketQueue, ...changes: readonly TicketChange[]): Promise<void>;
}

async function openFixture(): Promise<Fixture> {
  await using unless = new AsyncDisposableStack();
  schemas += 1;
  const schema = `tickets_${process.pid}_${schemas}`;
  // Another program on the same database, with transactions of its own.
  const other = new PgBoss({ connectionString: ADDRESS, schema, schedule: false, supervise: false, max: 1 });
  await other.start();
  const database = other.getDb();
  unless.defer(() => other.stop({ graceful: false }));
  unless.defer(async () => void (await database.executeSql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)));
  const ends = unless.move();
  return {
    open: async () => ends.use(await openTicketQueue({ url: ADDRESS, schema, log, claimSeconds: 1 })),
    async inTransaction(end, queue, ...changes) {
      const transaction = await database.beginTransaction?.();
      await queue.write(changes, async (sql, values) => {
        const { rows = [] } = (await transaction?.db.executeSql(sql, [...values])) ?? {};
        return { rows };
      });
      await transaction?.[end]();
    },
    [Symbol.asyncDispose]: () => ends[Symbol.asyncDispose](),
  };
}

const send = (
  subject: string,
  more: { readonly notBefore?: number; readonly priority?: number } = {},
): TicketChange => ({
  kind: "send",
  queue: QUEUE,
  subject,
  notBefore: 0,
  priority: 0,
  ...more,
});
const subjects = async (queue: TicketQueue, limit = 10): Promise<string[]> =>
  (await queue.fetch(QUEUE, limit)).map(({ subject }) => subject);

test("19.3: a ticket is there when its transaction is, delivered to one of two, and done when that transaction is", async () => {
  await using t = await openFixture();
  const [one, two] = [await t.open(), await t.open()];
  await t.inTransaction("rollback", one, send("task_0"));
  expect(await one.waiting(QUEUE)).toEqual(new Set());
  await t.inTransaction("commit", one, send("task_1"), send("task_2"), send("task_1", { priority: 7 }));
  expect(await two.waiting(QUEUE)).toEqual(new Set(["task_1", "task_2"]));
  expect(await one.names()).toEqual([QUEUE]);
  const both = await Promise.all([one.fetch(QUEUE, 1), two.fetch(QUEUE, 5)]);
  const delivered = both.flat();
  expect(delivered.map(({ subject }) => subject).toSorted()).toEqual(["task_1", "task_2"]);
  // The task was not taken after all: another worker gets the ticket when the time for it is over.
  const done = delivered.map((ticket): TicketChange => ({ kind: "done", ...ticket }));
  await t.inTransaction("rollback", one, ...done);
  await expect.poll(() => one.waiting(QUEUE), { timeout: 20_000 }).toEqual(new Set(["task_1", "task_2"]));
  const again = await two.fetch(QUEUE, 5);
  expect(again.map(({ subject }) => subject).toSorted()).toEqual(["task_1", "task_2"]);
  // What was done late belongs to an earlier delivery, and changes nothing.
  await t.inTransaction("commit", one, ...done);
  const second = again.filter(({ subject }) => subject === "task_2");
  await t.inTransaction("commit", one, ...second.map((ticket): TicketChange => ({ kind: "done", ...ticket })));
  await expect.poll(() => one.waiting(QUEUE), { timeout: 20_000 }).toEqual(new Set(["task_1"]));
});

test("19.3: a ticket waits for its time, one for each task, and higher priority comes first", async () => {
  await using t = await openFixture();
  const queue = await t.open();
  const later = Date.now() + 3_600_000;
  await queue.change([send("task_1"), send("task_2", { priority: 5 }), send("task_3", { notBefore: later })]);
  expect([await subjects(queue, 1), await subjects(queue, 1), await subjects(queue, 1)]).toEqual([
    ["task_2"],
    ["task_1"],
    [],
  ]);
  expect(await queue.waiting(QUEUE)).toEqual(new Set(["task_3"]));
  await queue.change([send("task_3", { notBefore: Date.now() - 1_000 })]);
  expect(await subjects(queue)).toEqual(["task_3"]);
});

test("S14: a ticket whose worker ends each time before it takes the task is dead after three deliveries, and others are unharmed", async () => {
  await using t = await openFixture();
  const queue = await t.open();
  await queue.change([send("task_bad")]);
  for (let deliveries = 0; deliveries < 3; deliveries += 1)
    await expect.poll(() => subjects(queue), { timeout: 20_000 }).toEqual(["task_bad"]);
  await queue.change([send("task_good")]);
  await expect
    .poll(async () => (await queue.dead(10)).map(({ subject }) => subject), { timeout: 20_000 })
    .toEqual(["task_bad"]);
  expect(await subjects(queue)).toEqual(["task_good"]);
});

test("S13: tickets that were lost while tasks are due are all sent again, and each is delivered once; a stale one is dropped", async () => {
  const count = Number(process.env["HEDDLE_E2E_FULL"] === undefined ? 100 : 1_000);
  await using t = await openFixture();
  const home = await mkdtemp(join(tmpdir(), "heddle-tickets-"));
  try {
    await using journal = await openJournal({ home });
    const needs = ["gpu", "big"];
    for (let number = 0; number < count; number += 1) {
      const given = { name: `t${number}`, workspace: `/w${number}`, goal: "g" };
      const spec = TaskSpec.parse(number === 0 ? { ...given, needs } : given);
      const created: EventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
      await journal.append({ stream: `task_${number}`, author: "system", events: [created], durability: "relaxed" });
    }
    const [one, two] = [ticketDispatch(journal, await t.open()), ticketDispatch(journal, await t.open())];
    const looking = { now: Date.now() + 1_000, limit: count, room: count, labels: [] };
    expect(await one.deliveries(looking)).toEqual([]);
    expect(await one.rebuild()).toBe(count);
    expect(await two.rebuild()).toBe(0);
    const cancelled: EventBody = { type: "task.cancelled", v: 1, reason: "no" };
    await journal.append({ stream: "task_1", author: "system", events: [cancelled] });
    const seen: string[] = [];
    for (const dispatch of [one, two, one, two, one, two, one].slice(0, Math.ceil(count / 32) + 1)) {
      const labels = dispatch === two ? ["big", "gpu"] : [];
      const found = await dispatch.deliveries({ ...looking, labels, room: 32 });
      seen.push(...found.map(({ task }) => task.id));
      for (const delivery of found) await dispatch.later(delivery, "never");
    }
    const wanted = Array.from({ length: count }, (_, number) => `task_${number}`).filter((id) => id !== "task_1");
    expect(seen.toSorted()).toEqual(wanted.toSorted());
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
