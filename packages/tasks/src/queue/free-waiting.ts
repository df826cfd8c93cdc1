/** What waits for a task that has changed: its dependents, and its contest. */
import type { Journal } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";
import { followContest, wakeContest } from "../contest/follow-contest.ts";
import { changeQueued } from "./change.ts";
import { namesOf, standingOf } from "./dependencies.ts";

export async function freeWhatWaits(journal: Journal, task: TaskRecord): Promise<void> {
  await followContests(journal, task);
  for (const dependent of await journal.tasks.dependents(namesOf(task))) await judge(journal, dependent);
}

/** Of a contestant, its contest may go on; what happened to a contest happens to its contestants. */
async function followContests(journal: Journal, { id, spec, contestant, parentId }: TaskRecord): Promise<void> {
  if (contestant !== undefined && parentId !== undefined) await wakeContest(journal, parentId);
  if (spec.agents === undefined) return;
  await followContest(journal, id);
  await wakeContest(journal, id);
}

async function judge(journal: Journal, dependent: TaskRecord): Promise<void> {
  const standing = await standingOf(journal, dependent);
  if (standing.kind === "free") await changeQueued(journal, dependent, { type: "task.woken", v: 1 });
  else if (standing.message !== dependent.wait?.message) {
    const { message } = standing;
    await changeQueued(journal, dependent, { type: "task.waited", v: 1, cause: "dependency", message });
  }
}
