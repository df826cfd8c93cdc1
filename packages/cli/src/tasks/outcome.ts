/** What the end of tasks means for the caller: words, and an exit code. Claimed and verified never look alike. */
import {
  budgetOf,
  ERROR_CODES,
  EXIT,
  exitCodeOf,
  hasEnded,
  type ErrorCode,
  type TaskRecord,
  type TaskState,
} from "@heddle/protocol";
import { isPutToOwner, STATE_WORDS, standingOf } from "@heddle/protocol/task-words";
import { zonedTime, type Style } from "../print/style.ts";

/** 0: verified, or claimed where nothing could verify it, or only waiting for its time. */
export function exitCodeOfTask(task: TaskRecord): number {
  switch (task.state) {
    case "verified":
      return EXIT.ok;
    case "claimed":
      return task.spec.checks.length === 0 ? EXIT.ok : exitCodeOf("task.unverified");
    case "archived":
      return exitCodeOfTask({ ...task, state: task.stateBefore ?? "cancelled" });
    case "failed":
      return codeOf(task.failure?.code);
    case "paused":
      return exitCodeOf(isSpent(task) ? "limit.reached" : "task.unverified");
    case "pending":
    case "waiting":
    case "running":
    case "rejected":
    case "stalled":
    case "cancelled":
      return isOnlyDue(task) ? EXIT.ok : exitCodeOf("task.unverified");
  }
}

/** The worst one decides; a failure that says something about the machine or the provider says more than a rejection. */
export function exitCodeOfTasks(tasks: readonly TaskRecord[]): number {
  return Math.max(EXIT.ok, ...tasks.map(exitCodeOfTask));
}

function isSpent(task: TaskRecord): boolean {
  const { spent } = task;
  const { timeMs, turns, tokens, costUsd = Number.POSITIVE_INFINITY } = budgetOf(task);
  return spent.timeMs >= timeMs || spent.turns >= turns || spent.tokens >= tokens || spent.costUsd >= costUsd;
}

function isOnlyDue({ state, wait }: TaskRecord): boolean {
  return state === "waiting" && wait?.cause === "schedule";
}

function codeOf(code: string | undefined): number {
  const known = ERROR_CODES.find((one): one is ErrorCode => one === code);
  // A failed task never exits with success, whatever its code means elsewhere.
  return known === undefined ? EXIT.turnFailed : exitCodeOf(known) || EXIT.turnFailed;
}

/** Green is for verified alone; the table is the one that the page has too. */
export function paintState(state: TaskState, style: Style): string {
  switch (STATE_WORDS[state].tone) {
    case "proven":
      return style.verified(state);
    case "refused":
      return style.red(state);
    case "said":
    case "yours":
      return style.yellow(state);
    case "quiet":
      return style.dim(state);
    case "plain":
      return state;
  }
}

/** What its state alone does not say; it may be nothing. */
export function standing(task: TaskRecord): string {
  const text = standingOf({ ...task, hasEnded: hasEnded(task) }, zonedTime);
  return isPutToOwner(task) ? `${text}: heddle task show ${task.id} says why` : text;
}
