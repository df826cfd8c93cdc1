/** The end of a turn that another process runs, or has run, as the journal tells it. */
import type { Journal } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import { isTerminalOf, type TerminalEvent } from "./turn.ts";

export async function awaitTerminal(
  journal: Journal,
  threadId: string,
  turnId: string,
  after: number,
  signal: AbortSignal = new AbortController().signal,
): Promise<TerminalEvent> {
  for await (const event of journal.tail({ stream: threadId, after, signal })) {
    if (isTerminalOf(event, turnId)) return event;
  }
  throw new HeddleError("store.failed", `the journal closed before turn ${turnId} ended`);
}
