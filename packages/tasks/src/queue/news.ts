/** What a worker does when it hears of a task. */
import type { TaskEventBody } from "@heddle/protocol";

/** Something may be due now. */
export const BRINGS_WORK: ReadonlySet<string> = new Set<TaskEventBody["type"]>([
  "task.created",
  "task.woken",
  "task.waited",
  "task.resumed",
  "task.retried",
  "task.verified",
  "task.claimed",
  "task.paused",
  "task.failed",
  "task.cancelled",
  "task.archived",
  "task.deleted",
]);

/** Something that waits for this task may go on. */
export const FREES_OTHERS: ReadonlySet<string> = new Set<TaskEventBody["type"]>([
  "task.created",
  "task.verified",
  "task.claimed",
  "task.failed",
  "task.cancelled",
  "task.paused",
  "task.resumed",
  "task.retried",
  "task.archived",
]);
