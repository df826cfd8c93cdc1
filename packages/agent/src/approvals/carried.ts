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

export interface CarriedOver {
  /** Questions that its calls have asked already, by call; each is used once. */
  readonly questions: Map<string, StoredQuestion>;
  /** Results of hooks for calls without a result; each is used once. */
  readonly hookRuns: EventOf<"hook.ran">[];
  /** Stored while no process ran the turn, or not handled before: answers, steering, interrupts. */
  readonly unread: readonly StoredEvent[];
  readonly spent: Spent;
  readonly admittedAt: number;
}

/** The reason of an abort that leaves a turn to another process without ending it. */
export function parking(message: string): HeddleError {
  return new HeddleError("turn.parked", message);
}

export function isParking(reason: unknown): boolean {
  return isHeddleError(reason) && reason.code === "turn.parked";
}

export function takeStoredQuestion(
  carried: CarriedOver | undefined,
  question: ApprovalQuestion,
): StoredQuestion | undefined {
  const stored = carried?.questions.get(question.callId);
  // Another act under the same call, because the configuration has changed, is another question.
  if (stored === undefined || approvalKey(stored.question) !== approvalKey(question)) return undefined;
  carried?.questions.delete(question.callId);
  return stored;
}

/** The stored run of this hook for this call; it is not run again. A hook with another command is another hook. */
export function takeStoredRun(
  carried: CarriedOver | undefined,
  asked: Pick<EventOf<"hook.ran">, "event" | "subject" | "command">,
): EventOf<"hook.ran"> | undefined {
  const runs = carried?.hookRuns ?? [];
  const at = runs.findIndex(
    ({ event, subject, command }) => event === asked.event && subject === asked.subject && command === asked.command,
  );
  return at < 0 ? undefined : runs.splice(at, 1)[0];
}
