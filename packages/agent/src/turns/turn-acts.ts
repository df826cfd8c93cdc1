/** What is said to a turn that runs, here or in another process: stored first, and only then acted on. */
import type { Journal } from "@heddle/journal";
import {
  HeddleError,
  isHeddleError,
  isUser,
  type By,
  type EventOf,
  type InputPart,
  type Lease,
} from "@heddle/protocol";
import type { InterruptReason } from "../heddle.ts";
import type { PendingEnds } from "../recovery/pending-ends.ts";
import { closeParked } from "../recovery/recover.ts";
import { threadOfOpen } from "../threads/threads.ts";

export async function steerTurn(
  journal: Journal,
  turnId: string,
  { input, by }: { readonly input: readonly InputPart[] } & By,
): Promise<void> {
  const stream = await threadOfOpen(journal, turnId);
  const steered: EventOf<"turn.steered"> = { type: "turn.steered", v: 1, turnId, input: [...input] };
  await journal.append({ stream, author: by, events: [steered] });
}

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
 * `running`: the turn in this process; absent: nobody here carries it out. A person's request is for whoever has the turn;
 * what Heddle itself asks is for the turn of this process, so that it does not stop one that another process has taken.
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
  // Nobody is there to hear it when its process is dead.
  if (running === undefined) {
    await closeParked(journal, { threadId, turnId }, { status: "interrupted", failure: { ...reason } });
  }
}
