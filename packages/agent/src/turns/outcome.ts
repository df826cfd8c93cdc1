/** What a turn was admitted with, what it cost, and how its failure is stored. */
import {
  addUsage,
  HeddleError,
  NO_USAGE,
  toHeddleError,
  type By,
  type ErrorCode,
  type EventOf,
  type Failure,
} from "@heddle/protocol";
import type { Spent, TurnRequest } from "../runners/runner.ts";

export function admissionOf({
  history,
  turnId,
}: Pick<TurnRequest, "history" | "turnId">): EventOf<"turn.admitted"> & By {
  const admitted = history.findLast(({ body }) => body.type === "turn.admitted" && body.turnId === turnId);
  if (admitted?.body.type !== "turn.admitted") throw new HeddleError("internal", `turn ${turnId} was never admitted`);
  return { ...admitted.body, by: admitted.author };
}

export function toFailure(error: unknown, fallback: ErrorCode = "internal"): Failure {
  const { code, message, details } = toHeddleError(error, fallback);
  return { code, message, ...(Object.keys(details).length === 0 ? {} : { details: { ...details } }) };
}

export const NOTHING_SPENT: Spent = { usage: NO_USAGE, costUsd: 0 };

/** One unknown price makes the sum unknown: a guess would look like a fact. */
export function addSpent(a: Spent, b: Spent): Spent {
  const usage = addUsage(a.usage, b.usage);
  return a.costUsd === undefined || b.costUsd === undefined ? { usage } : { usage, costUsd: a.costUsd + b.costUsd };
}
