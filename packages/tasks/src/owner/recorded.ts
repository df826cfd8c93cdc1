/** What the record says about the work of a task: what it is measured against, and how it was judged last. */
import type { Journal } from "@heddle/journal";
import {
  HeddleError,
  isTaskEvent,
  type EventOf,
  type StoredEvent,
  type TaskBaseline,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import { baselineIn } from "../attempt/past.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import type { KeptTree } from "../tree/manifest.ts";
import { baseFolder } from "../judge/task-rooms.ts";

export type TaskLog = readonly StoredEvent<TaskEventBody>[];

export async function readLog(journal: Journal, taskId: string): Promise<TaskLog> {
  const events = await journal.read({ stream: taskId, after: 0 });
  return events.filter((event): event is StoredEvent<TaskEventBody> => isTaskEvent(event.body));
}

export interface Judgement {
  readonly checked: EventOf<"task.checked">;
  /** What the owner had accepted as the work when it was judged. */
  readonly accepted: readonly string[] | undefined;
}

/** The last one; undefined: it was never judged. */
export function lastJudgement(log: TaskLog): Judgement | undefined {
  let accepted: readonly string[] | undefined;
  let last: Judgement | undefined;
  for (const { body } of log) {
    if (body.type === "task.prompted") accepted = undefined;
    if (body.type === "task.resumed") accepted = body.deliver ?? accepted;
    if (body.type === "task.checked") last = { checked: body, accepted };
  }
  return last;
}

export interface KeptBaseline extends TaskBaseline {
  kept: NonNullable<TaskBaseline["kept"]>;
}

/** undefined: the task began without a copy of its workspace, or has not begun. */
export function keptBaseline(log: TaskLog): KeptBaseline | undefined {
  const baseline = baselineIn(log);
  return baseline?.kept === undefined ? undefined : { ...baseline, kept: baseline.kept };
}

/** The beginning as it was kept. `task.illegal` where there is none to go back to or to compare with. */
export async function requireBase(
  home: string,
  task: TaskRecord,
  log: TaskLog,
): Promise<{ readonly base: KeptTree; readonly baseline: TaskBaseline }> {
  const baseline = keptBaseline(log);
  if (baseline === undefined) {
    const why = task.attempt === 0 ? "has not begun" : "began without a copy of its workspace";
    throw new HeddleError("task.illegal", `task ${task.id} ${why}, so there is nothing to compare with`);
  }
  const base = await readKeptTree(baseFolder(home, task.id));
  if (base?.sha256 === baseline.kept.sha256) return { base, baseline };
  throw new HeddleError(
    "task.illegal",
    `the copy of the workspace from the beginning of ${task.id} no longer exists; heddle task collect removes copies of tasks that ended long ago`,
  );
}
