/**
 * What follows a failed attempt. A failure that waiting can clear is tried again: from the beginning when nothing was done
 * yet, and otherwise by going on in the same thread, so that no effect ever happens twice by itself.
 */
import { isRetryable, type EventOf, type InputPart, type TurnLimits } from "@heddle/protocol";
import type { RunSummary } from "./run-summary.ts";

export type NextAttempt =
  | { readonly kind: "none" }
  | { readonly kind: "restart" | "resume"; readonly delayMs: number; readonly reason: string };

export interface RetryState {
  readonly terminal: EventOf<"turn.completed"> | undefined;
  readonly hasSideEffects: boolean;
  /** How many attempts there have been. */
  readonly attempt: number;
  readonly retries: number;
  /** The thread was there before the run; its past cannot be begun again. */
  readonly isOlderThread: boolean;
}

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;

export function nextAttempt(state: RetryState): NextAttempt {
  const { terminal, attempt, retries } = state;
  const reason = terminal?.failure?.code;
  if (terminal?.status !== "failed" || reason === undefined || !isRetryable(reason) || attempt > retries) {
    return { kind: "none" };
  }
  const delayMs = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return { kind: state.hasSideEffects || state.isOlderThread ? "resume" : "restart", delayMs, reason };
}

/** The input of a thread that is resumed. */
export function resumeInput(reason: string): readonly InputPart[] {
  const text =
    `The run stopped because of a failure that was not yours (${reason}). Continue the task where it stopped, ` +
    "and look at the current state before you repeat anything.";
  return [{ type: "text", text }];
}

/** What is left for the next attempt: the limits are those of the whole run. undefined: one of them is used up. */
export function limitsLeft(limits: TurnLimits, spent: RunSummary): TurnLimits | undefined {
  const { maxRequests, maxTokens, maxCostUsd } = limits;
  const requests = maxRequests === undefined ? undefined : maxRequests - spent.requests;
  const tokens = maxTokens === undefined ? undefined : maxTokens - spent.usage.inputTokens - spent.usage.outputTokens;
  // An unknown cost has ended the attempt already.
  const costUsd = maxCostUsd === undefined ? undefined : maxCostUsd - (spent.costUsd ?? maxCostUsd);
  if ([requests, tokens, costUsd].some((left) => left !== undefined && left <= 0)) return undefined;
  return {
    ...(requests === undefined ? {} : { maxRequests: requests }),
    ...(tokens === undefined ? {} : { maxTokens: tokens }),
    ...(costUsd === undefined ? {} : { maxCostUsd: costUsd }),
  };
}
