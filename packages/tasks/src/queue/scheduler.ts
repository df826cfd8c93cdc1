/**
 * Creates a task for each time of a schedule. Its id is made from the schedule and the time, so that two workers create it
 * once. Only then the schedule moves on to its next time.
 */
import { hasEnded, isHeddleError, type TaskRecord } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { appendTo, changeTask } from "./change.ts";
import { add } from "../open-tasks.ts";
import { dueTimes, isSchedule, nextTime } from "./schedule.ts";

/** Creates the tasks that are due, and moves the schedule to its next time. */
export async function fire(journal: Journal, parent: TaskRecord, now: number): Promise<void> {
  const { schedule } = parent.spec;
  if (schedule === undefined) return;
  const anchor = parent.firstAt ?? parent.createdAt;
  const { times, hasSkipped, next } = dueTimes(schedule, { from: parent.nextAt ?? now, now, anchor });
  const isBusy = schedule.catchUp === "skip" && (await isUnderWay(journal, parent.id));
  const { schedule: _, ...rest } = parent.spec;
  const spec: TaskSpec = rest;
  for (const time of isBusy ? [] : times) {
    failpoint("task.before-fire");
    const key = `${parent.id}@${time}`;
    const task = {
      spec,
      source: { kind: "schedule", ref: parent.id } as const,
      key,
      parentId: parent.id,
      occurrence: time,
      by: "system" as const,
    };
    await add(journal, task, now).catch((error: unknown) => {
      // Its task was created and deleted.
      if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
    });
    failpoint("task.after-fire");
  }
  const left = isBusy && times.length > 0 ? "; the last time was left out, the one before it still runs" : "";
  const missed = hasSkipped ? "; missed times were left out" : "";
  const message = next === undefined ? "has no more times" : `waits for its time${left}${missed}`;
  // A conflict means that another worker has moved it on.
  await appendTo(journal, parent, {
    author: "system",
    events: [{ type: "task.waited", v: 1, cause: "schedule", message, ...(next === undefined ? {} : { until: next }) }],
  });
}

async function isUnderWay(journal: Journal, parentId: string): Promise<boolean> {
  const newest = await journal.tasks.page({ parentId, limit: 1 });
  return newest.some((task) => !hasEnded(task) && task.state !== "paused");
}

/** The clock went back: waits computed with the old time would be too long. Tasks that were created stay. */
export async function reckonAnew(journal: Journal, now: number): Promise<void> {
  for (const task of await journal.tasks.waitingFor("schedule")) {
    const { schedule } = task.spec;
    const next =
      schedule === undefined || !isSchedule(task) ? undefined : nextTime(schedule, now, task.firstAt ?? task.createdAt);
    if (next === undefined || task.nextAt === undefined || task.nextAt <= next) continue;
    const message = "waits for its time; the clock was set back";
    await changeTask(journal, task.id, {
      author: "system",
      decide: ({ state }) =>
        state === "waiting" ? [{ type: "task.waited", v: 1, cause: "schedule", message, until: next }] : [],
    });
  }
  for (const task of [...(await journal.tasks.waitingFor("backoff")), ...(await journal.tasks.waitingFor("store"))]) {
    if (task.nextAt === undefined || task.nextAt <= now + LONGEST_BACKOFF_MS) continue;
    await changeTask(journal, task.id, {
      author: "system",
      decide: ({ state }) => (state === "waiting" ? [{ type: "task.woken", v: 1 }] : []),
    });
  }
}

const LONGEST_BACKOFF_MS = 3_600_000;
