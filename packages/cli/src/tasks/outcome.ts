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

/** Green is for verified alone. */
export function paintState(state: TaskState, style: Style): string {
  switch (state) {
    case "verified":
      return style.verified(state);
    case "failed":
    case "rejected":
      return style.red(state);
    case "claimed":
    case "paused":
    case "stalled":
    case "waiting":
      return style.yellow(state);
    case "cancelled":
    case "archived":
      return style.dim(state);
    case "pending":
    case "running":
      return state;
  }
}

/** What its state alone does not say; it may be nothing. */
export function standing(task: TaskRecord): string {
  switch (task.state) {
    case "verified":
      return `${count(task.lastCheck?.results.length ?? 0, "check")} passed${task.undone === undefined ? "" : "; its workspace has been reverted since"}`;
    case "claimed":
      if (!hasEnded(task)) return "not verified yet";
      return task.claim?.by === "user"
        ? "NOT verified: the user marked it as done"
        : "NOT verified: it has no checks that could";
    case "failed":
      return `${task.failure === undefined ? "" : `${task.failure.code}: `}${task.reason ?? "no reason is known"}`;
    case "paused":
      if (isPutToOwner(task)) return `its work waits for your decision: heddle task show ${task.id} says why`;
      return task.reason ?? "by the user";
    case "cancelled":
      return task.reason ?? "by the user";
    case "waiting":
      return `${task.wait?.message ?? "for something to happen"}${task.nextAt === undefined ? "" : `, next at ${zonedTime(task.nextAt)}`}`;
    case "stalled":
      return task.stall?.message ?? "no progress";
    case "rejected":
      return failing(task).join(", ") || "no check passed that proves the work";
    case "archived":
      return `${task.stateBefore ?? "cancelled"} before`;
    case "pending":
    case "running":
      return task.undone === undefined ? "" : "its workspace was reverted";
  }
}

/** Its checks passed, and yet it is the owner's to decide. */
export function isPutToOwner({ state, lastCheck, round }: TaskRecord): boolean {
  return state === "paused" && lastCheck?.review !== undefined && lastCheck.round === round;
}

function failing(task: TaskRecord): readonly string[] {
  const { results = [], violations = [], opinion } = task.lastCheck ?? {};
  return [
    ...results.filter(({ outcome }) => outcome !== "passed").map(({ name }) => name),
    ...violations.map(({ message }) => message),
    ...(opinion?.accepts === false ? [`second opinion: ${opinion.reason}`] : []),
  ];
}

export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
