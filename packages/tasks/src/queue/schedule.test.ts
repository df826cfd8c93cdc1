import { expect, test } from "vitest";
import { TaskSchedule } from "@heddle/protocol/tasks";
import { checkSchedule, dueTimes, nextTime } from "./schedule.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const at = (text: string): number => Date.parse(text);
const daily = (catchUp: "skip" | "once" | "all"): TaskSchedule =>
  TaskSchedule.parse({ cron: "0 9 * * *", timeZone: "Europe/Berlin", catchUp });
const everyMinute = (catchUp: "skip" | "once" | "all"): TaskSchedule =>
  TaskSchedule.parse({ everyMs: MINUTE, catchUp });

test("cron follows its time zone, over the change of summer time too", () => {
  const schedule = daily("skip");
  const first = nextTime(schedule, at("2026-03-28T07:59:00Z"), 0) ?? 0;
  const second = nextTime(schedule, first, 0) ?? 0;
  expect([first, second]).toEqual([at("2026-03-28T08:00:00Z"), at("2026-03-29T07:00:00Z")]);
});

test("an interval counts from its beginning, however late somebody looks", () => {
  expect(nextTime(everyMinute("skip"), 1000, 1000)).toBe(1000 + MINUTE);
  expect(nextTime(everyMinute("skip"), 1000 + 2.5 * MINUTE, 1000)).toBe(1000 + 3 * MINUTE);
});

test("one time comes once", () => {
  const once = TaskSchedule.parse({ at: "2026-11-15T09:00:00Z" });
  expect(nextTime(once, 0, 0)).toBe(at("2026-11-15T09:00:00Z"));
  expect(nextTime(once, at("2026-11-15T09:00:00Z"), 0)).toBeUndefined();
});

test("a time that was missed is left out, brought up once, or brought up as often as it was missed", () => {
  const from = at("2026-11-10T08:00:00Z");
  const now = from + 3 * DAY + 3_600_000;
  const span = { from, now, anchor: 0 };
  const next = from + 4 * DAY;
  expect(dueTimes(daily("skip"), span)).toEqual({ times: [], hasSkipped: true, next });
  expect(dueTimes(daily("once"), span)).toEqual({ times: [from + 3 * DAY], hasSkipped: true, next });
  expect(dueTimes(daily("all"), span)).toEqual({
    times: [0, 1, 2, 3].map((days) => from + days * DAY),
    hasSkipped: false,
    next,
  });
});

test("a timer that is a little late has missed nothing", () => {
  const from = at("2026-11-10T08:00:00Z");
  expect(dueTimes(daily("skip"), { from, now: from + 900, anchor: 0 })).toMatchObject({
    times: [from],
    hasSkipped: false,
  });
});

test("a jump of a day, or a sleep of a year, brings no flood, and costs no time", () => {
  const span = { from: MINUTE, now: MINUTE + DAY, anchor: 0 };
  expect(dueTimes(everyMinute("skip"), span).times).toEqual([MINUTE + DAY]);
  expect(dueTimes(everyMinute("once"), span).times).toEqual([MINUTE + DAY]);
  const all = dueTimes(everyMinute("all"), span);
  expect([all.times.length, all.times.at(-1), all.hasSkipped]).toEqual([100, MINUTE + DAY, true]);
  const year = { from: MINUTE, now: MINUTE + 365 * DAY, anchor: 0 };
  const before = process.threadCpuUsage();
  const cron = TaskSchedule.parse({ cron: "* * * * *", catchUp: "all" });
  expect(dueTimes(cron, year).times.length).toBe(100);
  expect(
    dueTimes(daily("once"), { ...year, from: at("2025-11-10T08:00:00Z"), now: at("2026-11-10T07:00:00Z") }).times,
  ).toEqual([at("2026-11-09T08:00:00Z")]);
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(500);
});

test.each([
  [{ cron: "nonsense" }, "nonsense"],
  [{ cron: "0 9 * * *", timeZone: "Mars/Olympus" }, "Mars/Olympus"],
  [{ at: "soon" }, "soon"],
  [{ at: "2026-11-15T09:00:00Z", everyMs: 1000 }, "exactly one"],
  [{}, "exactly one"],
])("%j is refused, and says what is wrong", (given, words) => {
  expect(() => checkSchedule(TaskSchedule.parse(given))).toThrow(words);
});
