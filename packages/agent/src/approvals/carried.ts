/** What a turn that another process began brings along (`parked.ts`), and the abort that leaves a turn to another process. */
import { HeddleError, isHeddleError, type ApprovalQuestion, type EventOf, type StoredEvent } from "@heddle/protocol";
import { approvalKey } from "@heddle/tools";
import type { Spent } from "../runners/runner.ts";

export interface StoredQuestion {
  readonly approvalId: string;
  readonly question: ApprovalQuestion;
  readonly isAnswered: boolean;
  readonly answerBy?: number | undefined;
}

/** What a turn that is carried on brings along from before. */
export interface CarriedOver {
  /** Questions that its calls have put already, by call; each is met once. */
  readonly questions: Map<string, StoredQuestion>;
  /** What hooks have said to its calls that have no result yet; each is met once. */
  readonly hookRuns: EventOf<"hook.ran">[];
  /** Stored while nobody ran the turn, or not taken before: answers, input that was added, a wish to stop. */
  readonly unheard: readonly StoredEvent[];
  readonly spent: Spent;
  readonly admittedAt: number;
}

/** The reason of an abort that lets go of a turn without ending it. */
export function parking(message: string): HeddleError {
  return new HeddleError("turn.parked", message);
}

export function isParking(reason: unknown): boolean {
  return isHeddleError(reason) && reason.code === "turn.parked";
}

/** The stored question that this one repeats; it is not put again. */
export function metBefore(carried: CarriedOver | undefined, question: ApprovalQuestion): StoredQuestion | undefined {
  const stored = carried?.questions.get(question.callId);
  // Another act under the same call, because the configuration has changed, is another question.
  if (stored === undefined || approvalKey(stored.question) !== approvalKey(question)) return undefined;
  carried?.questions.delete(question.callId);
  return stored;
}

/** What this hook has said to this call before; it is not asked again. One whose command has changed is another hook. */
export function ranBefore(
  carried: CarriedOver | undefined,
  asked: Pick<EventOf<"hook.ran">, "event" | "subject" | "command">,
): EventOf<"hook.ran"> | undefined {
  const runs = carried?.hookRuns ?? [];
  const at = runs.findIndex(
    ({ event, subject, command }) => event === asked.event && subject === asked.subject && command === asked.command,
  );
  return at < 0 ? undefined : runs.splice(at, 1)[0];
}
