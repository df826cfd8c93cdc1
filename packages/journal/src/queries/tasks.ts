import type { TaskRecord, TaskState, WaitCause } from "@heddle/protocol";

export interface TaskPageRequest {
  readonly states?: readonly TaskState[];
  readonly workspace?: string;
  readonly label?: string;
  readonly parentId?: string;
  /** In the name; ASCII letters match in either case. */
  readonly text?: string;
  readonly after?: string;
  readonly limit: number;
}

export interface TaskQueries {
  get(taskId: string): Promise<TaskRecord | undefined>;
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  named(name: string, options: { readonly limit: number }): Promise<readonly TaskRecord[]>;
  /** Of each word the task with that id, or else the newest with that name; words without one are left out. */
  meant(words: readonly string[]): Promise<readonly (Pick<TaskRecord, "id" | "state"> & { readonly word: string })[]>;
  page(request: TaskPageRequest): Promise<readonly TaskRecord[]>;
  /** Of these states alone, which costs nothing for tasks in others; absent: of all. */
  counts(states?: readonly TaskState[]): Promise<Readonly<Partial<Record<TaskState, number>>>>;
  /** Not held, due, and with a free folder: highest priority first, then oldest. */
  due(
    now: number,
    options: {
      readonly limit: number;
      /** Only these, and what their schedules began. */
      readonly among?: readonly string[] | undefined;
      /** Only what needs nothing else; absent: whatever it needs. */
      readonly labels?: readonly string[] | undefined;
    },
  ): Promise<readonly TaskRecord[]>;
  /** When the next one comes due after this time; undefined: none will by itself. */
  nextDue(after: number): Promise<number | undefined>;
  /** Held by a worker, alive or not. */
  held(): Promise<readonly TaskRecord[]>;
  /** The ids of those that are at work now, or have not begun. */
  busy(): Promise<ReadonlySet<string>>;
  /** Of the held ones, those that work in this folder. */
  heldIn(folder: string, options: { readonly onlyExclusive: boolean }): Promise<readonly TaskRecord[]>;
  /** Not held, and waiting for this. */
  waitingFor(cause: WaitCause): Promise<readonly TaskRecord[]>;
  /** Waiting for a task with one of these names. */
  dependents(names: readonly string[]): Promise<readonly TaskRecord[]>;
  ofThread(threadId: string): Promise<readonly TaskRecord[]>;
  lastPosition(taskId: string): Promise<number | undefined>;
}
