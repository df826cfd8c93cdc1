import type { Journal } from "@heddle/journal";
import { HeddleError, type EventOf, type StoredEvent } from "@heddle/protocol";

export type TerminalEvent = StoredEvent<EventOf<"turn.completed">>;

/** The key it is appended under: the journal lets the first one win. */
export function terminalKey(turnId: string): string {
  return `turn.completed:${turnId}`;
}

export function isTerminalOf(event: StoredEvent, turnId: string): event is TerminalEvent {
  return event.body.type === "turn.completed" && event.body.turnId === turnId;
}

/** Of a turn that another process runs or has run. */
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
