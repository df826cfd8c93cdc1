/** The two items around a review. Heddle does not store them: they follow from the turn. */
import { reviewText, type EventOf } from "@heddle/protocol";
import type { ItemTimes } from "./items.ts";
import type { CodexThreadItem } from "./shapes.ts";

/** undefined: the turn is no review. */
export function enteredReview(turn: EventOf<"turn.admitted">, times: ItemTimes): CodexThreadItem | undefined {
  if (turn.task !== "review") return undefined;
  return { type: "enteredReviewMode", id: `${turn.turnId}-entered`, review: turn.subject ?? "changes", ...times };
}

const NO_ANSWER = "The review ended without an answer.";

export function exitedReview(
  turn: EventOf<"turn.admitted">,
  answer: unknown,
  times: ItemTimes,
): CodexThreadItem | undefined {
  if (turn.task !== "review") return undefined;
  const review = typeof answer === "string" ? reviewText(answer) : NO_ANSWER;
  return { type: "exitedReviewMode", id: `${turn.turnId}-exited`, review, ...times };
}
