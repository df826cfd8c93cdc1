/** How many messages, how far they go, and who may wait for whom; a limit that is reached refuses. */
import type { Journal } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";

/** Of one thread, until an agent is told of them. */
export const MAX_WAITING = 100;
/** Of one sender. */
const MAX_A_MINUTE = 60;
const MINUTE_MS = 60_000;
/** A message that was caused by so many others is an echo. */
const MAX_HOPS = 4;
/** Of questions that wait for one another; more are as good as a cycle. */
const MAX_ASKS_FOLLOWED = 256;

export type Sender = { readonly thread: string } | { readonly author: string };

export async function checkRate({ messages }: Journal, sender: Sender): Promise<void> {
  const sent = await messages.countSince(sender, Date.now() - MINUTE_MS);
  if (sent < MAX_A_MINUTE) return;
  const details = { allowed: MAX_A_MINUTE, sent };
  throw new HeddleError("message.too-many", `${sent} messages were sent in a minute; wait before the next`, {
    details,
  });
}

export function checkHops(hops: number): void {
  if (hops <= MAX_HOPS) return;
  const message = `this message is the end of a chain of ${MAX_HOPS} messages, each sent because of the one before, and that is the limit; tell the user instead`;
  throw new HeddleError("message.too-many", message, { details: { allowed: MAX_HOPS, hops } });
}

export async function checkRoom({ messages }: Journal, threadId: string): Promise<void> {
  const waiting = await messages.countWaiting(threadId);
  if (waiting < MAX_WAITING) return;
  const message = `${waiting} messages wait for thread ${threadId}, which is the limit; they are shown with its next turn`;
  throw new HeddleError("message.too-many", message, { details: { allowed: MAX_WAITING, waiting } });
}

/**
 * A thread that waits for an answer cannot give the one it is waited for. `before`: only questions that were asked earlier
 * count, so that of two that close a circle at the same moment one stands.
 */
export async function refuseCycle(
  { messages }: Journal,
  { from, to, before = Infinity }: { readonly from: string; readonly to: string; readonly before?: number },
): Promise<void> {
  const known = new Set([to]);
  const now = Date.now();
  for (const threadId of known) {
    if (threadId === from || known.size > MAX_ASKS_FOLLOWED) {
      const message = `thread ${to} waits for an answer of thread ${from} itself, directly or through others; answer first`;
      throw new HeddleError("message.cycle", message);
    }
    for (const { to: next, answerBy = 0, receivedPosition } of await messages.openAsks(threadId)) {
      if (answerBy > now && (receivedPosition ?? Infinity) < before) known.add(next);
    }
  }
}
