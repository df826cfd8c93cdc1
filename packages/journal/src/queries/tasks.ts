/** Questions about tasks, answered from projections. */
import type { TaskRecord, TaskState, WaitCause } from "@heddle/protocol";

export interface TaskPageRequest {
  readonly states?: readonly TaskState[];
  readonly workspace?: string;
  readonly label?: string;
  readonly parentId?: string;
  /** In the name; ASCII letters of either case are the same. */
  readonly text?: string;
  /** Newest first; behind this task. */
  readonly after?: string;
  readonly limit: number;
}

export interface TaskQueries {
  get(taskId: string): Promise<TaskRecord | undefined>;
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  /** Newest first. */
  named(name: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  page(request: TaskPageRequest): Promise<readonly TaskRecord[]>;
  /** How many there are in each state. */
  counts(): Promise<Readonly<Partial<Record<TaskState, number>>>>;
  /** Nobody holds them, their time has come and their folder is free: highest priority first, then oldest. */
  due(
    now: number,
    /** `among`: only these, and what their schedules began. */
    options: { readonly limit: number; readonly among?: readonly string[] | undefined },
  ): Promise<readonly TaskRecord[]>;
  /** When the next one comes due after this time; undefined: none will by itself. */
  nextDue(after: number): Promise<number | undefined>;
  /** Those that a worker holds, or says it does. */
  held(): Promise<readonly TaskRecord[]>;
  /** The ids of those that are at work now, or have not begun. */
  busy(): Promise<ReadonlySet<string>>;
  /** Those of them that work in this folder; `onlyExclusive`: that mind others there. */
  heldIn(folder: string, options: { readonly onlyExclusive: boolean }): Promise<readonly TaskRecord[]>;
  /** Nobody holds them, and they wait for this. */
  waitingFor(cause: WaitCause): Promise<readonly TaskRecord[]>;
  /** They wait for a task that they know by one of these names. */
  dependents(names: readonly string[]): Promise<readonly TaskRecord[]>;
  ofThread(threadId: string): Promise<readonly TaskRecord[]>;
  /** The position of the newest event of the task. */
  lastPosition(taskId: string): Promise<number | undefined>;
}
