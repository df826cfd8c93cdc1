/** Schedules that a harness brings about, with a clock that the test sets. */
import { expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import type { TaskSchedule } from "@heddle/protocol/tasks";
import { openHarness } from "./harness.ts";
import { fire } from "./scheduler.ts";
import { harnessOptions, openTestHarness, type TestHarness, type TestHarnessOptions } from "../../test/test-harness.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A harness whose wall clock the test sets; whoever sets it makes the harness look, too. */
interface Clocked extends AsyncDisposable {
  readonly t: TestHarness;
  readonly now: () => number;
  set(time: number): Promise<void>;
}

async function openClocked(script: TestHarnessOptions["script"] = [{ text: "done" }]): Promise<Clocked> {
  let time = Date.now();
  let knocks = 0;
  const t = await openTestHarness({ ...(script === undefined ? {} : { script }), now: () => time });
  return {
    t,
    now: () => time,
    async set(next) {
      time = next;
      // Any task that is added wakes it.
      knocks += 1;
      const { id } = await t.add({ name: `knock ${knocks}`, workspace: t.folder, schedule: { at: "2999-01-01" } });
      await t.tasks.cancel(id);
    },
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

async function children(t: TestHarness, parentId: string): Promise<readonly TaskRecord[]> {
  return (await t.tasks.page({ parentId, limit: 1000 })).toReversed();
}

async function scheduled(t: TestHarness, schedule: Partial<TaskSchedule>): Promise<TaskRecord> {
  return t.add({ name: "nightly", schedule });
}

/** The schedule has been moved on to a time after this one. */
const movedOn = (t: TestHarness, id: string, after: number): Promise<TaskRecord> =>
  t.until(id, ({ nextAt }) => nextAt !== undefined && nextAt > after);

test("21: each time of a schedule is a task of its own that runs, and the schedule waits for its next", async () => {
  await using clock = await openClocked();
  const { t } = clock;
  const parent = await scheduled(t, { everyMs: HOUR });
  expect(parent).toMatchObject({ state: "waiting", wait: { cause: "schedule" } });
  const first = parent.nextAt ?? 0;
  await t.work();
  await clock.set(first);
  await movedOn(t, parent.id, first);
  const [child] = await children(t, parent.id);
  expect(child).toMatchObject({ parentId: parent.id, occurrence: first, source: { kind: "schedule", ref: parent.id } });
  expect(await t.settled(child?.id ?? "")).toMatchObject([{ state: "claimed" }]);
  await clock.set(first + HOUR);
  await movedOn(t, parent.id, first + HOUR);
  expect((await children(t, parent.id)).map(({ occurrence }) => occurrence)).toEqual([first, first + HOUR]);
  // 14: by its name it is the schedule that is meant; when it is next is shown once.
  const found = await t.tasks.find("nightly");
  expect(found).toMatchObject({ id: parent.id, wait: { message: "waits for its time" } });
});

test("F38: two workers that see the same time make one task of it, and a look that fails once does not end the looking", async () => {
  await using clock = await openClocked();
  const { t } = clock;
  const parent = await scheduled(t, { everyMs: HOUR });
  const first = parent.nextAt ?? 0;
  const { journal } = t.heddle;
  await Promise.all([fire(journal, parent, first), fire(journal, parent, first)]);
  expect(await children(t, parent.id)).toHaveLength(1);
  let failures = 0;
  const lines: string[] = [];
  const options = { log: (line: string) => void lines.push(line) };
  await using harness = await openHarness({
    ...harnessOptions(t.heddle, t.home, options),
    now: () => {
      if ((failures += 1) === 3) throw new Error("the clock is broken");
      return clock.now();
    },
  });
  await clock.set(first);
  await t.settled(...(await children(t, parent.id)).map(({ id }) => id));
  await clock.set(first + HOUR);
  await movedOn(t, parent.id, first + HOUR);
  expect(await children(t, parent.id)).toHaveLength(2);
  expect(lines.join("\n")).toContain("the clock is broken");
  expect(harness.running).toBeLessThanOrEqual(1);
});

test.each([
  ["skip", 0],
  ["once", 1],
  ["all", 24],
] as const)(
  "a clock that jumps a day forward: %s brings %d of the missed times, and the next comes at its time",
  async (catchUp, number) => {
    await using clock = await openClocked();
    const { t } = clock;
    const parent = await scheduled(t, { everyMs: HOUR, catchUp });
    const first = parent.nextAt ?? 0;
    await t.work();
    const jumped = first + DAY - HOUR / 2;
    await clock.set(jumped);
    const moved = await movedOn(t, parent.id, jumped);
    expect(moved.nextAt).toBe(first + DAY);
    expect((await children(t, parent.id)).length).toBe(number);
  },
);

test("a clock that is put back a day: the next time is reckoned anew, and no time is brought about twice", async () => {
  await using clock = await openClocked();
  const { t } = clock;
  const parent = await scheduled(t, { everyMs: HOUR });
  const first = parent.nextAt ?? 0;
  await t.work();
  await clock.set(first + DAY);
  await movedOn(t, parent.id, first + DAY);
  const before = await children(t, parent.id);
  await t.settled(...before.map(({ id }) => id));
  expect(before.map(({ occurrence }) => occurrence)).toEqual([first + DAY]);
  await clock.set(first + 1);
  const back = await t.until(parent.id, ({ nextAt }) => nextAt === first + HOUR);
  expect(back.state).toBe("waiting");
  await clock.set(first + HOUR);
  await movedOn(t, parent.id, first + HOUR);
  await t.settled(...(await children(t, parent.id)).map(({ id }) => id));
  await clock.set(first + DAY);
  await movedOn(t, parent.id, first + DAY);
  const occurrences = (await children(t, parent.id)).map(({ occurrence }) => occurrence);
  expect(new Set(occurrences).size).toBe(occurrences.length);
  expect(occurrences).toContain(first + HOUR);
});

test("one time: run when it comes; missed by long it is cancelled, or run once where the schedule says so", async () => {
  await using clock = await openClocked();
  const { t } = clock;
  const soon = new Date(clock.now() + HOUR).toISOString();
  const late = new Date(clock.now() - HOUR).toISOString();
  const add = (name: string, schedule: Partial<TaskSchedule>): Promise<TaskRecord> =>
    t.add({ name, schedule, workspace: t.folder });
  const onTime = await add("on time", { at: soon });
  const missed = await add("missed", { at: late });
  const caughtUp = await add("caught up", { at: late, catchUp: "once" });
  await t.work();
  expect(await t.settled(missed.id, caughtUp.id)).toMatchObject([{ state: "cancelled" }, { state: "claimed" }]);
  expect(await t.tasks.find(onTime.id)).toMatchObject({ state: "waiting" });
  await clock.set(clock.now() + HOUR);
  expect(await t.settled(onTime.id)).toMatchObject([{ state: "claimed" }]);
});

test("a paused schedule lets its times pass, and a time that comes while the last one still runs is left out", async () => {
  await using clock = await openClocked([{ text: "slow", delayMs: 60_000 }]);
  const { t } = clock;
  const parent = await scheduled(t, { everyMs: HOUR });
  const first = parent.nextAt ?? 0;
  await t.work();
  await t.tasks.pause(parent.id);
  await clock.set(first);
  await clock.set(first + 1.5 * HOUR);
  // 14: its next time is said at once, not when a worker has looked at it.
  const next = { state: "waiting", nextAt: first + 2 * HOUR, wait: { cause: "schedule" } };
  expect(await t.tasks.resume(parent.id)).toMatchObject(next);
  await t.tasks.cancel(parent.id);
  expect(await t.tasks.retry(parent.id)).toMatchObject(next);
  expect(await children(t, parent.id)).toEqual([]);
  await clock.set(first + 2 * HOUR);
  await movedOn(t, parent.id, first + 2 * HOUR);
  await clock.set(first + 3 * HOUR);
  const left = await movedOn(t, parent.id, first + 3 * HOUR);
  expect(left.wait?.message).toContain("still runs");
  expect(await children(t, parent.id)).toHaveLength(1);
});
