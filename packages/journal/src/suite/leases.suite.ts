/** Leases and their fence, as tests that any back-end can run. */
import { setTimeout as delay } from "node:timers/promises";
import type { EventBody, Holder } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { admitted, completed, created, said } from "./journal.samples.ts";
import type { NewStore } from "./journal.suite.ts";

const holder: Holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
const other: Holder = { ...holder, host: "elsewhere" };
const resumed: EventBody = { type: "turn.resumed", v: 1, turnId: "t1", holder: other, epoch: 2 };
const LEASE_MS = 1500;
const DAY_MS = 86_400_000;

const begin = (journal: Journal) =>
  journal.append({ stream: "a", author: "system", events: [created, admitted("t1")] });
const under = (journal: Journal, epoch: number, event: EventBody = said("x", "t1"), key?: string) =>
  journal.append({
    stream: "a",
    author: "system",
    events: [event],
    lease: { subject: "t1", epoch },
    ...(key === undefined ? {} : { key }),
  });

export function leaseSuite(newStore: NewStore): void {
  fence(newStore);
  workers(newStore);
  expiry(newStore);
}

function fence(newStore: NewStore): void {
  test("14.7: an append under a lease that another process has taken, or that has ended, is refused and named", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using second = await store.open();
    await begin(journal);
    await under(journal, 1);
    await second.append({ stream: "a", author: "system", events: [resumed] });
    await expect(under(journal, 1)).rejects.toMatchObject({
      code: "lease.lost",
      message: expect.stringContaining("t1"),
      details: { lease: "t1", epoch: 1, current: 2 },
    });
    // Each member of a group stands by itself.
    const together = await Promise.allSettled([under(journal, 1), under(journal, 2), under(journal, 1)]);
    expect(together.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
    await under(journal, 2, completed("t1"), "end");
    await expect(under(journal, 2)).rejects.toMatchObject({ code: "lease.lost", details: { lease: "t1", epoch: 2 } });
    // An end that was stored and is sent again is still the same end.
    expect(await under(journal, 2, completed("t1"), "end")).toMatchObject({ isRepeat: true });
    const types = (await journal.read({ stream: "a", after: 0 })).map(({ body }) => body.type);
    expect(types.slice(2)).toEqual(["item.completed", "turn.resumed", "item.completed", "turn.completed"]);
    expect(await journal.leases.held()).toEqual([]);
  });

  test("14.7: the attempt of a task is its epoch, and giving it back ends the lease", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const spec = TaskSpec.parse({ name: "n", workspace: "/w", goal: "g" });
    const say = (...events: EventBody[]) => journal.append({ stream: "task_1", author: "system", events });
    await say({ type: "task.created", v: 1, spec, source: { kind: "cli" } });
    await say({ type: "task.taken", v: 1, attempt: 1, holder });
    await say({ type: "task.taken", v: 1, attempt: 2, holder: other });
    const held = [{ subject: "task_1", stream: "task_1", epoch: 2, holder: other }];
    expect(await journal.leases.held()).toEqual(held);
    await journal.rebuildProjections();
    expect(await journal.leases.held()).toEqual(held);
    const prepared: EventBody = { type: "task.prepared", v: 1, attempt: 1, threadId: "x", folder: "/w" };
    const stale = {
      stream: "task_1",
      author: "system",
      events: [prepared],
      lease: { subject: "task_1", epoch: 1 },
    } as const;
    await expect(journal.append(stale)).rejects.toMatchObject({ code: "lease.lost", details: { current: 2 } });
    await say({ type: "task.paused", v: 1, cause: "user", message: "not now" });
    expect(await journal.leases.held()).toEqual([]);
  });

  test("14.7: events that say no epoch are read as taken once more each", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await begin(journal);
    const old: EventBody = { type: "turn.resumed", v: 1, turnId: "t1", holder };
    await journal.append({ stream: "a", author: "system", events: [old, old] });
    await journal.rebuildProjections();
    expect(await journal.leases.held()).toMatchObject([{ subject: "t1", epoch: 3 }]);
    // It knew no leases, so nothing of it runs out.
    expect(await journal.leases.isOver({ ...holder, pid: 7 })).toBe(false);
  });
}

function workers(newStore: NewStore): void {
  test("19.2: joining is taking a lease; a fence ends it and every other lease of its process, in one append", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using second = await store.open({ leaseMs: LEASE_MS });
    const joined: EventBody = {
      type: "worker.joined",
      v: 1,
      name: "one",
      role: "worker",
      labels: [],
      concurrency: 1,
      version: "1",
      holder,
    };
    await journal.append({ stream: "worker_1", author: "system", events: [joined] });
    await begin(journal);
    const mine = { subject: "worker_1", epoch: 1 };
    const note: EventBody = { type: "worker.drained", v: 1, reason: "asked" };
    await journal.append({ stream: "worker_1", author: "system", events: [note], lease: mine });
    await under(journal, 1);
    expect(await second.leases.isFenced(holder)).toBe(false);
    const fenced: EventBody = { type: "worker.fenced", v: 1, holder, reason: "gone" };
    await second.append({ stream: "worker_1", author: "system", events: [fenced] });
    await expect(under(journal, 1)).rejects.toMatchObject({ code: "lease.lost" });
    const late = journal.append({ stream: "b", author: "system", events: [created], lease: mine });
    await expect(late).rejects.toMatchObject({ code: "lease.lost", details: { lease: "worker_1" } });
    expect(await journal.version("b")).toBe(0);
    // What it held is still listed, for those who take it; no renewal of its own brings it back.
    expect(await second.leases.held()).toMatchObject([{ subject: "t1", epoch: 2, holder }]);
    using _held = journal.leases.hold({ subject: "t1", epoch: 1 }, holder);
    expect(await second.leases.isFenced(holder)).toBe(true);
    expect(await second.leases.isOver(holder)).toBe(true);
    await journal.rebuildProjections();
    expect(await second.leases.held()).toMatchObject([{ subject: "t1", epoch: 2, holder }]);
    await second.append({ stream: "a", author: "system", events: [resumed] });
    await under(second, 2);
  });
}

function expiry(newStore: NewStore): void {
  test("14.7: a lease runs out when its owner stops renewing, and whoever held it learns by its next renewal", async () => {
    await using store = await newStore();
    await using owner = await store.open({ leaseMs: LEASE_MS });
    await using watcher = await store.open();
    await begin(owner);
    const isOver = (): Promise<boolean> => watcher.leases.isOver(holder);
    {
      using held = owner.leases.hold({ subject: "t1", epoch: 1 }, holder);
      const until = performance.now() + 1.2 * LEASE_MS;
      while (performance.now() < until) {
        expect(await isOver()).toBe(false);
        await delay(10);
      }
      expect(held.lost.aborted).toBe(false);
    }
    const releaseTurn = performance.now();
    while (!(await isOver())) await delay(5);
    expect(performance.now() - releaseTurn).toBeGreaterThan(LEASE_MS / 3);
    // Taken by another: the old holder wakes up, renews, and is told.
    await watcher.append({ stream: "a", author: "system", events: [resumed] });
    using late = owner.leases.hold({ subject: "t1", epoch: 1 }, holder);
    while (!late.lost.aborted) await delay(5);
    expect(late.lost.reason).toMatchObject({ code: "lease.lost", details: { lease: "t1", epoch: 1 } });
  });

  test.each([
    ["forward", DAY_MS],
    ["back", -DAY_MS],
  ])("14.7: a clock that jumps %s ends no lease of a living owner, and keeps none of a dead one", async (_, jumpMs) => {
    await using store = await newStore();
    let off = 0;
    await using owner = await store.open({ leaseMs: LEASE_MS, now: () => Date.now() });
    await using watcher = await store.open({ now: () => Date.now() + off });
    await begin(owner);
    const living = owner.leases.hold({ subject: "t1", epoch: 1 }, holder);
    expect(await watcher.leases.isOver(holder)).toBe(false);
    off = jumpMs;
    // Seems to have run out, or to hold for another day: watched until it is certain either way.
    expect(await watcher.leases.isOver(holder, { wait: true })).toBe(false);
    const until = performance.now() + 1.2 * LEASE_MS;
    while (performance.now() < until) {
      expect(await watcher.leases.isOver(holder)).toBe(false);
      await delay(10);
    }
    living[Symbol.dispose]();
    const releaseTurn = performance.now();
    while (!(await watcher.leases.isOver(holder))) await delay(5);
    expect(performance.now() - releaseTurn).toBeLessThan(10 * LEASE_MS);
  });
}
