/** A task as its events make it (task-machine.ts): what lists show, doors answer and workers go on from. */
import type { Failure, Holder } from "./event-parts.ts";
import type { EventOf } from "./events.ts";
import type { CheckResult, CheckViolation, JudgedWork, WorkReview } from "./task-checks.ts";
import type { Culprit, TaskSource, WaitCause } from "./task-events.ts";
import type { FailureClass, StallAction, TaskBudget, TaskSpec } from "./task-spec.ts";

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

export interface TaskSpent {
  /** Of turns and checks; waiting and pauses are not in it. */
  readonly timeMs: number;
  readonly turns: number;
  readonly tokens: number;
  readonly costUsd: number;
  /** A turn had no known price. */
  readonly isCostPartial: boolean;
  /** Turns that the harness began by itself to have rejected or unfinished work fixed, since a person last had a say. */
  readonly nudges: number;
}

export interface TaskRecord {
  readonly id: string;
  readonly state: TaskState;
  /** Before it was archived or paused: where it was. */
  readonly stateBefore?: TaskState;
  readonly spec: TaskSpec;
  readonly source: TaskSource;
  readonly parentId?: string;
  readonly occurrence?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Of its stream. */
  readonly version: number;
  /** 0: never taken. */
  readonly attempt: number;
  /** Attempts that followed a failure by rule, since a person last had a say. */
  readonly retries: number;
  /** Prompts so far, of all attempts. */
  readonly round: number;
  /** Whoever runs it now. */
  readonly holder?: Holder;
  readonly threadId?: string;
  readonly folder?: string;
  /** The prompt that has no ended turn yet; it outlives a pause, so that its turn is found and counted. */
  readonly openPrompt?: {
    readonly round: number;
    readonly clientId: string;
    readonly text: string;
    readonly at: number;
  };
  /** Of a schedule: its first time, which an interval counts from. */
  readonly firstAt?: number;
  /** When to look at it again by itself; absent: when something happens. */
  readonly nextAt?: number;
  readonly wait?: { readonly cause: WaitCause; readonly message: string };
  /** Why it is paused, has failed or was cancelled. */
  readonly reason?: string;
  readonly failure?: Failure & { readonly class: FailureClass };
  /** Times in a row that an attempt was given back because of the store or its thread, at no cost to the task. */
  readonly faults?: number;
  readonly claim?: { readonly by: EventOf<"task.claimed">["by"]; readonly summary: string; readonly attempt: number };
  /** The check that is run now. */
  readonly checking?: {
    readonly name: string;
    readonly room: EventOf<"task.checking">["room"];
    readonly since: number;
  };
  /** What the owner accepted as the work, of what was last put to them. */
  readonly deliver?: readonly string[];
  readonly lastCheck?: {
    readonly attempt: number;
    readonly round: number;
    readonly at: number;
    readonly passed: boolean;
    readonly results: readonly CheckResult[];
    readonly violations: readonly CheckViolation[];
    readonly opinion?: EventOf<"task.checked">["opinion"];
    readonly work?: JudgedWork;
    readonly review?: WorkReview;
  };
  readonly stall?: {
    readonly episode: number;
    readonly isOpen: boolean;
    readonly message: string;
    readonly culprits: readonly Culprit[];
    /** What was done about it last. */
    readonly action?: StallAction;
  };
  readonly stepsDone: readonly number[];
  readonly spent: TaskSpent;
  /** What the user added when it ran out. */
  readonly extraBudget: Readonly<Record<string, number>>;
  readonly warned: readonly string[];
  /** The workspace was put back since. */
  readonly undone?: { readonly at: number; readonly files: number };
  readonly merged?: { readonly how: string; readonly ref: string };
  readonly replacedBy?: string;
}

/** It works in a tree of its own, a worktree or a draft, and not in the workspace itself. */
export function hasOwnTree({ worktree, apply }: Pick<TaskRecord["spec"], "worktree" | "apply">): boolean {
  return worktree !== undefined || apply === "on-verified";
}

/** Nothing is wrong with the work itself: it waits for its owner to clear the way, and is judged and delivered again then. */
export function isObstructed({ reasons }: WorkReview): boolean {
  return reasons.length > 0 && reasons.every(({ kind }) => kind === "delivery");
}

const ENDED: ReadonlySet<TaskState> = new Set(["verified", "failed", "cancelled", "archived"]);
/** It will not move again by itself. A task without checks ends where somebody says it is done. */
export function hasEnded(task: TaskRecord): boolean {
  return ENDED.has(task.state) || (task.state === "claimed" && task.holder === undefined);
}

/** What a budget is with what was added to it. */
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
