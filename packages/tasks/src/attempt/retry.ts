/** Classes of failures, and whether and when a task is retried after one. */
import { isRetryable, type Failure, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { FailureClass } from "@heddle/protocol/tasks";

/** A provider that was down for a night is noticed soon after it is back. */
const MAX_BACKOFF_MS = 600_000;

function classOf(code: string): FailureClass {
  if (code === "provider.rate-limited") return "rate-limit";
  if (code === "turn.abandoned") return "crash";
  if (code === "task.rejected") return "rejected";
  if (code.startsWith("provider.") && isRetryable(code)) return "provider";
  // An answer that cannot be read is more often a lost connection than a model that cannot write.
  if (code === "provider.malformed") return "provider";
  if (/^(store|sandbox|host)\./.test(code) || code === "internal") return "infrastructure";
  return "turn";
}

/** Work that failed by itself continues in a new thread. */
const BEGINS_ANEW: ReadonlySet<FailureClass> = new Set(["rejected", "turn"]);

export function settleFailure(task: TaskRecord, failure: Failure, now: number): TaskEventBody {
  const failed = classOf(failure.code);
  const { max, on, backoffMs } = task.spec.retries;
  if (!on.includes(failed) || task.retries >= max) {
    const tried = task.retries === 0 ? "" : ` (tried ${task.retries + 1} times)`;
    const reported = { ...failure, message: `${failure.message}${tried}` };
    return { type: "task.failed", v: 1, attempt: task.attempt, class: failed, failure: reported };
  }
  return {
    type: "task.retried",
    v: 1,
    attempt: task.attempt,
    class: failed,
    failure,
    ...(BEGINS_ANEW.has(failed) ? { isFresh: true } : {}),
    notBefore: now + backoff(backoffMs, task.retries),
    reason: `${failure.code}: ${failure.message}`,
  };
}

export function backoff(firstMs: number, before: number): number {
  return Math.min(Math.max(MAX_BACKOFF_MS, firstMs), firstMs * 2 ** Math.min(before, 20));
}
