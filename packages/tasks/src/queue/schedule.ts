/** The times of a schedule. Pure. What happens to missed times is its `catchUp`. */
import { Cron } from "croner";
import { HeddleError, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { TaskSchedule } from "@heddle/protocol/tasks";

/** A late timer or a busy machine does not make a time missed. */
const ON_TIME_MS = 60_000;
/** After a clock jump or a long sleep only the newest of more than this are kept. */
const MAX_CAUGHT_UP = 100;
const FIRST_LOOK_MS = 3_600_000;

/** `at` alone is one time. */
function recurs(schedule: TaskSchedule | undefined): boolean {
  return schedule !== undefined && (schedule.cron !== undefined || schedule.everyMs !== undefined);
}

/** A schedule is not work itself; each of its times is a task. */
export function isSchedule(task: TaskRecord): boolean {
  return task.parentId === undefined && recurs(task.spec.schedule);
}

/** What a schedule that was stopped says when it continues: its next time, so that those of the pause are left out. */
export function waitsForNext(task: TaskRecord, now: number): readonly TaskEventBody[] {
  const { schedule } = task.spec;
  if (schedule === undefined || !isSchedule(task)) return [];
  const until = nextTime(schedule, now, task.firstAt ?? task.createdAt);
  if (until === undefined) return [];
  return [{ type: "task.waited", v: 1, cause: "schedule", message: "waits for its time", until }];
}

/** The first time after this one, if any. `anchor`: the start of an interval. */
export function nextTime(schedule: TaskSchedule, after: number, anchor: number): number | undefined {
  const { cron, everyMs, at } = schedule;
  if (cron !== undefined) return cronOf(cron, schedule.timeZone).nextRun(new Date(after))?.getTime();
  if (everyMs !== undefined) return anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
  const time = at === undefined ? Number.NaN : Date.parse(at);
  return time > after ? time : undefined;
}

export interface DueTimes {
  readonly times: readonly number[];
  readonly hasSkipped: boolean;
  readonly next: number | undefined;
}

interface Span {
  readonly from: number;
  readonly now: number;
  readonly anchor: number;
}

/** Which times since `from` are to be carried out now. */
export function dueTimes(schedule: TaskSchedule, span: Span): DueTimes {
  const { now, anchor } = span;
  const next = nextTime(schedule, now, anchor);
  const { times, isCut } = newestTimes(schedule, span);
  const last = times.at(-1);
  if (last === undefined || schedule.catchUp === "all") return { times, hasSkipped: isCut, next };
  const isKept = schedule.catchUp === "once" || now - last <= ON_TIME_MS;
  return { times: isKept ? [last] : [], hasSkipped: isCut || times.length > 1 || !isKept, next };
}

/** Looks back in growing steps, so that a year of missed minutes costs no more than a day of them. */
function newestTimes(schedule: TaskSchedule, { from, now, anchor }: Span): { times: number[]; isCut: boolean } {
  for (let span = FIRST_LOOK_MS; ; span *= 2) {
    const start = Math.max(from, now - span);
    const times: number[] = [];
    for (let time = nextTime(schedule, start - 1, anchor); time !== undefined && time <= now;) {
      times.push(time);
      time = nextTime(schedule, time, anchor);
    }
    const isCut = times.length > MAX_CAUGHT_UP;
    if (isCut || start <= from) return { times: times.slice(-MAX_CAUGHT_UP), isCut };
  }
}

/** `task.invalid` when it is not a valid schedule. */
export function checkSchedule(schedule: TaskSchedule): void {
  const { cron, everyMs, at, timeZone } = schedule;
  if ([cron, everyMs, at].filter((given) => given !== undefined).length !== 1) {
    throw new HeddleError("task.invalid", "schedule: give exactly one of cron, every and at");
  }
  if (at !== undefined && Number.isNaN(Date.parse(at))) {
    throw new HeddleError("task.invalid", `schedule: at: ${at} is not a time; write it as 2026-11-15T09:00:00Z`);
  }
  if (cron === undefined) return;
  try {
    cronOf(cron, timeZone).nextRun(new Date(0));
  } catch (cause) {
    const message = `schedule: cron ${JSON.stringify(cron)} in ${timeZone} is not valid; write minute, hour, day, month and weekday, such as "0 9 * * 1-5"`;
    throw new HeddleError("task.invalid", message, { cause });
  }
}

function cronOf(pattern: string, timezone: string): Cron {
  return new Cron(pattern, { timezone, paused: true });
}
