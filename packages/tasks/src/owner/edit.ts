/** What an owner wants otherwise of a task that is ordered already. What it is to do and how it is judged stays as ordered. */
import {
  defined,
  hasOwnTree,
  HeddleError,
  type By,
  type EventOf,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { existing } from "../queue/change.ts";

type TaskChanges = Partial<Pick<EventOf<"task.changed">, "name" | "labels" | "priority" | "budget">>;

interface Within {
  readonly change: (taskId: string, decide: () => readonly TaskEventBody[]) => Promise<TaskRecord>;
  readonly kept: (taskId: string) => { readonly journal: Journal; readonly home: string };
}

export function changesBy({ journal, by }: { readonly journal: Journal } & By, { change, kept }: Within) {
  return {
    /** A name, labels, a priority or limits in place of those it was ordered with. */
    async edit(taskId: string, changes: TaskChanges): Promise<TaskRecord> {
      if (changes.name !== undefined) await refuseRename(journal, await existing(journal, taskId), changes.name);
      return change(taskId, () => [{ type: "task.changed", v: 1, ...defined(changes) }]);
    },
    /** Onto the branch that is checked out in its repository: verified work that was left on a branch or in a patch. */
    async merge(taskId: string, options: { readonly signal: AbortSignal }): Promise<TaskRecord> {
      const [task, { mergeTask }] = [await existing(journal, taskId), await import("./merge.ts")];
      return mergeTask({ ...kept(taskId), by }, task, options);
    },
  };
}

/** What goes by its name would not find it any more. */
async function refuseRename(journal: Journal, task: TaskRecord, name: string): Promise<void> {
  const { id, spec, attempt } = task;
  if (name === spec.name) return;
  const refuse = (why: string): HeddleError => new HeddleError("task.illegal", `task ${id} keeps its name: ${why}`);
  if (hasOwnTree(spec) && attempt > 0) throw refuse("the branch of its work is named after it");
  const [dependent] = await journal.tasks.dependents([spec.name]);
  if (dependent !== undefined) throw refuse(`${dependent.id} (${dependent.spec.name}) waits for it by this name`);
}
