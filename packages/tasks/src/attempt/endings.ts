/** How an attempt ends short of a verdict: budget, nudges, or a turn that did not complete. */
import type { Failure, TaskEventBody } from "@heddle/protocol";
import type { Followed } from "./follow-turn.ts";
import type { Hold } from "./hold.ts";
import { failing } from "./prompts.ts";
import { settleFailure } from "./retry.ts";

export const MAX_REASON = 500;

export function outOfBudget({ task }: Hold, why: string): TaskEventBody {
  if (task.spec.budget.onReached === "pause") {
    return { type: "task.paused", v: 1, cause: "budget", message: why };
  }
  const failure = { code: "limit.reached", message: why };
  return { type: "task.failed", v: 1, attempt: task.attempt, class: "turn", failure };
}

/** A new attempt where the spec retries rejected work; otherwise a pause for the user. */
export function outOfNudges(now: number, { task }: Hold): TaskEventBody {
  const found = failing(task).map(({ name, message }) => `${name}: ${message}`);
  const undone = task.hops?.refused ?? "it is not done";
  const why = found.length === 0 ? undone : found.join("; ").slice(0, MAX_REASON);
  const message = `after ${task.spent.nudges} nudges: ${why}`;
  const { on, max } = task.spec.retries;
  if (on.includes("rejected") && task.retries < max)
    return settleFailure(task, { code: "task.rejected", message }, now);
  return { type: "task.paused", v: 1, cause: "nudges", message };
}

type EndVerdict =
  | { readonly kind: "completed" }
  | { readonly kind: "again"; readonly why: "restarted" | "stall" }
  | { readonly kind: "over"; event(now: number): TaskEventBody };

/** A turn that did not complete is never a claim, whatever it said. */
export function judgeEnd(hold: Hold, { terminal, stoppedFor }: Followed): EndVerdict {
  const { status, failure } = terminal.body;
  if (status === "completed") return { kind: "completed" };
  const reported: Failure = failure ?? { code: "turn.interrupted", message: "the turn was interrupted" };
  if (stoppedFor === "time") return { kind: "over", event: () => outOfBudget(hold, reported.message) };
  if (reported.code === "turn.abandoned") return { kind: "again", why: "restarted" };
  const { stall } = hold.task;
  if (status === "interrupted") {
    const { attempt } = hold.task;
    if (stall?.isOpen === true && stall.action === "retry")
      return { kind: "over", event: () => ({ type: "task.retried", v: 1, attempt, reason: stall.message }) };
    if (stall?.isOpen === true) return { kind: "again", why: "stall" };
    const message = `its turn was interrupted: ${reported.message}`;
    return { kind: "over", event: () => ({ type: "task.paused", v: 1, cause: "user", message }) };
  }
  if (reported.code === "limit.reached" && reported.details?.["limit"] !== undefined)
    return { kind: "over", event: () => outOfBudget(hold, reported.message) };
  return { kind: "over", event: (now) => settleFailure(hold.task, reported, now) };
}
