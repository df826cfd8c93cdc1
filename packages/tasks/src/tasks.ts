/** What every door gets: the calls about tasks. They read and append; a harness (`harness.ts`) carries tasks out. */
import type { Author, StoredEvent, TaskEventBody, TaskRecord } from "@heddle/protocol";
import type { StallAction, TaskSource, TaskSpec } from "@heddle/protocol/tasks";
import type { TaskPageRequest } from "@heddle/journal";
import type { DiffWish, WorkDiff } from "./owner/diff-work.ts";
import type { Undone, UndoWish } from "./owner/undo.ts";
import type { Reverified } from "./owner/verify-again.ts";

export interface NewTask {
  readonly spec: TaskSpec;
  readonly source: TaskSource;
  /** The same key again answers the first task; with another spec it is `store.id-conflict`. */
  readonly key?: string;
  /** Not before this time. */
  readonly notBefore?: number;
}

/** Nothing is asked of tasks without saying who asks. */
export interface OpenTasks {
  /** What they change goes on record as theirs. */
  as(by: Author): Tasks;
}

export interface Tasks {
  /** Durable when it resolves. */
  add(task: NewTask): Promise<TaskRecord>;
  /** An exact id, a beginning of one (with or without `task_`), or an exact name. `task.not-found`, `task.ambiguous` with the candidates. */
  find(selector: string): Promise<TaskRecord>;
  page(wish: TaskPageRequest): Promise<readonly TaskRecord[]>;
  /** What happened, oldest first. */
  log(
    taskId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent<TaskEventBody>[]>;
  pause(taskId: string, reason?: string): Promise<TaskRecord>;
  /** `budget`: more of what ran out, in the words of the spec. */
  resume(taskId: string, budget?: Readonly<Record<string, number>>): Promise<TaskRecord>;
  cancel(taskId: string, reason?: string): Promise<TaskRecord>;
  /** `isFresh`: in a new thread, and with a new copy of the workspace where the task has none. */
  retry(taskId: string, reason?: string, how?: { readonly isFresh?: boolean }): Promise<TaskRecord>;
  /**
   * Work that was put to its owner is the work: it is judged again as it was frozen, with the files that were listed. Where
   * no list would make it verified it ends as claimed, on the owner's word.
   */
  accept(taskId: string, note?: string): Promise<TaskRecord>;
  /** Back to how the workspace was when the task began. `task.illegal` while it may be worked on, and for what changed since. */
  undo(taskId: string, wish: UndoWish): Promise<Undone>;
  /** What it changed: as it was judged, or as the folder is now. */
  diff(taskId: string, wish: DiffWish): Promise<WorkDiff>;
  /** Judges again what was judged last, from what was kept; writes nothing. */
  verify(
    taskId: string,
    options: { readonly signal: AbortSignal; readonly onCheck?: (name: string) => void },
  ): Promise<Reverified>;
  /** A user's word. It ends the task at `claimed`, marked as such, never at `verified`. */
  complete(taskId: string, note?: string): Promise<TaskRecord>;
  /** Runs the hooks of the spec first; one that fails keeps the task. */
  archive(taskId: string, isArchived?: boolean): Promise<TaskRecord>;
  /** Asks whoever runs the task to do something about its stall; `task.illegal` when it has none. */
  relieve(taskId: string, action: StallAction): Promise<TaskRecord>;
  /** Only of what has ended. What was kept to judge it by goes with it. */
  remove(taskId: string): Promise<void>;
}
