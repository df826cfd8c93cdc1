/** Interrupts a turn, here or in another process: stored first, then acted on. */
import type { Journal } from "@heddle/journal";
import { HeddleError, isHeddleError, isUser, type By, type Lease } from "@heddle/protocol";
import type { InterruptReason } from "../heddle.ts";
import type { PendingEnds } from "../recovery/pending-ends.ts";

export interface Interruption extends By {
  readonly turnId: string;
  readonly reason: InterruptReason;
  readonly ends: Pick<PendingEnds, "unrecorded">;
}

export interface Interruptible {
  readonly threadId: string;
  readonly control: AbortController;
  readonly lease: Lease;
}

/**
 * `running`: the turn in this process, if it runs here. A user's request is for whichever process has the turn; a request of
 * Heddle itself is for the turn of this process alone, so that it does not stop one that another process has taken.
 */
export async function interruptTurn(
  journal: Journal,
  running: Interruptible | undefined,
  { turnId, reason, by, ends }: Interruption,
): Promise<void> {
  const under = running === undefined || isUser(by) ? {} : { lease: running.lease };
  const threadId = running?.threadId ?? (await threadOfOpen(journal, turnId));
  try {
    await journal.append({
      stream: threadId,
      author: by,
      events: [{ type: "turn.interrupt-requested", v: 1, turnId, failure: { ...reason } }],
      ...under,
    });
  } catch (error) {
    if (isHeddleError(error) && error.code === "lease.lost") return;
    throw running === undefined ? error : ends.unrecorded(turnId, error);
  } finally {
    // A store that cannot take the request must not keep the turn alive.
    running?.control.abort(new HeddleError(reason.code, reason.message));
  }
  // When its process is dead, nobody else will end it.
  if (running === undefined) {
    const { closeTurn } = await import("../recovery/recover.ts");
    await closeTurn(journal, turnId, { status: "interrupted", failure: { ...reason } });
  }
}

async function threadOfOpen(journal: Journal, turnId: string): Promise<string> {
  const turn = await journal.threads.turn(turnId);
  if (turn?.status === "open") return turn.threadId;
  throw new HeddleError(
    "turn.not-found",
    turn === undefined ? `no turn ${turnId}` : `turn ${turnId} has already ended`,
  );
}
