/**
 * What happens to a contest happens to its contestants: paused with it, resumed with it, cancelled when it has ended or has
 * picked one. Doing it once more changes nothing, so that whoever notices may do it: the door, any worker, the contestant.
 */
import { hasEnded, isHeddleError, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { changeTask } from "../queue/change.ts";
import { isDue, PAUSED_WITH_CONTEST } from "./standings.ts";

export async function followContest(journal: Journal, contestId: string): Promise<void> {
  const contest = await journal.tasks.get(contestId);
  for (const { taskId, number } of contest?.contest?.contestants ?? []) {
    await changeTask(journal, taskId, {
      author: "system",
      decide: async (task) => {
        const now = await journal.tasks.get(contestId);
        return now === undefined ? [] : changeFor(now, task, number);
      },
    }).catch(unlessDeleted);
  }
}

/** Of a contestant that a worker has taken: what it has to do instead of its work. */
export async function insteadOfWork(journal: Journal, task: TaskRecord): Promise<readonly TaskEventBody[]> {
  if (task.contestant === undefined || task.parentId === undefined) return [];
  const contest = await journal.tasks.get(task.parentId);
  if (contest === undefined) return [{ type: "task.cancelled", v: 1, reason: "its contest was deleted" }];
  return changeFor(contest, task, task.contestant);
}

/** Wakes a contest that can do something, whoever notices. */
export async function wakeContest(journal: Journal, contestId: string): Promise<void> {
  await changeTask(journal, contestId, {
    author: "system",
    decide: async (task) => {
      const isWaiting = task.state === "waiting" && task.wait?.cause === "contest" && task.holder === undefined;
      return isWaiting && (await isDue(journal, task)) === "due" ? [{ type: "task.woken", v: 1 }] : [];
    },
  }).catch(unlessDeleted);
}

function changeFor(contest: TaskRecord, task: TaskRecord, number: number): readonly TaskEventBody[] {
  if (hasEnded(task)) return [];
  const known = contest.contest;
  const isOwn = known?.contestants.some(({ taskId }) => taskId === task.id) === true;
  if (!isOwn || hasEnded(contest) || known.hasEnded) {
    const why = isOwn ? `its contest is over: ${contest.reason ?? contest.state}` : "its contest began again";
    return [{ type: "task.cancelled", v: 1, reason: why }];
  }
  if (known.picked !== undefined) {
    if (known.picked.number === number) return [];
    return [{ type: "task.cancelled", v: 1, reason: `the contest picked contestant ${known.picked.number}` }];
  }
  if (contest.state === "paused")
    return task.state === "paused" ? [] : [{ type: "task.paused", v: 1, cause: "user", message: PAUSED_WITH_CONTEST }];
  const isPausedWithIt = task.state === "paused" && task.reason === PAUSED_WITH_CONTEST;
  return isPausedWithIt ? [{ type: "task.resumed", v: 1 }] : [];
}

function unlessDeleted(error: unknown): void {
  if (!isHeddleError(error) || error.code !== "task.not-found") throw error;
}
