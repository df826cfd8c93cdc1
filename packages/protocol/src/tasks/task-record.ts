/** A task as its events make it (task-machine.ts). */
import type { Holder } from "../events/event-parts.ts";
import type { Task } from "../http/http-task-shapes.ts";
import type { WorkReview } from "./task-checks.ts";
import type { TaskBudget } from "./task-spec.ts";

export const TASK_STATES = [
  "pending",
  "waiting",
  "running",
  "claimed",
  "rejected",
  "stalled",
  "paused",
  "verified",
  "failed",
  "cancelled",
  "archived",
] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** What doors show of a task; optional means absent here. */
type Shown = {
  readonly [K in keyof Omit<Task, "seq" | "hasEnded" | "spentNow" | "lastWriteAt" | "editsSinceCheck">]: Exclude<
    Task[K],
    undefined
  >;
};

/** With what workers need to continue it. */
export interface TaskRecord extends Shown {
  /** Of its stream. */
  readonly version: number;
  /** The process that runs it now. */
  readonly holder?: Holder;
  /** The prompt whose turn has not ended yet; it outlives a pause, so that its turn is found and counted. */
  readonly openPrompt?: {
    readonly round: number;
    readonly clientId: string;
    readonly text: string;
    readonly at: number;
  };
  /** What the user said when it was resumed; the next prompt begins with it. */
  readonly userInput?: string;
  /** Times in a row that an attempt was given back because of the store or its thread, at no cost to the task. */
  readonly faults?: number;
  /** Of a schedule: its first time, which an interval counts from. */
  readonly firstAt?: number;
  readonly warned: readonly string[];
}
export type TaskSpent = TaskRecord["spent"];

/** It works in a tree of its own, a worktree or a draft, instead of the workspace itself. */
export function hasOwnTree({
  worktree,
  apply,
  agents,
}: Pick<TaskRecord["spec"], "worktree" | "apply" | "agents">): boolean {
  return worktree !== undefined || apply === "on-verified" || apply === "never" || agents !== undefined;
}

/** The work itself is fine: the owner has to remove an obstacle, then it is judged and delivered again. */
export function isObstructed({ reasons }: WorkReview): boolean {
  return reasons.length > 0 && reasons.every(({ kind }) => kind === "delivery");
}

const ENDED: ReadonlySet<TaskState> = new Set(["verified", "failed", "cancelled", "archived"]);
/** It will not move again by itself. A task without checks ends when it is claimed. */
export function hasEnded(task: TaskRecord): boolean {
  return ENDED.has(task.state) || (task.state === "claimed" && task.holder === undefined);
}

/** With what the user added to it. */
export function budgetOf({ spec, extraBudget }: Pick<TaskRecord, "spec" | "extraBudget">): TaskBudget {
  const { budget } = spec;
  const extra = (name: string): number => extraBudget[name] ?? 0;
  return {
    ...budget,
    timeMs: budget.timeMs + extra("timeMs"),
    turns: budget.turns + extra("turns"),
    tokens: budget.tokens + extra("tokens"),
    ...(budget.costUsd === undefined ? {} : { costUsd: budget.costUsd + extra("costUsd") }),
  };
}
