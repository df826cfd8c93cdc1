/** Reading a stream, a range of it, or one turn, in pages. */
import type { Journal } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";

/** For whoever must not append, or only through something that says for whom. */
export type ReadJournal = Omit<Journal, "append" | "purge">;

const PAGE = 1000;

export interface Range {
  readonly after?: number;
  /** The last version to read. */
  readonly upTo?: number;
}

export async function readStream(journal: ReadJournal, stream: string, range: Range = {}): Promise<StoredEvent[]> {
  const { after = 0, upTo = Number.POSITIVE_INFINITY } = range;
  const events: StoredEvent[] = [];
  for (;;) {
    const from = events.at(-1)?.version ?? after;
    const limit = Math.min(PAGE, upTo - from);
    if (limit <= 0) return events;
    const page = await journal.read({ stream, after: from, limit });
    events.push(...page);
    if (page.length < limit) return events;
  }
}

/** From its admission on, to its end or the end of the thread; empty when there is no such turn. */
export async function readTurn(journal: ReadJournal, turnId: string): Promise<StoredEvent[]> {
  const turn = await journal.threads.turn(turnId);
  if (turn === undefined) return [];
  const { threadId, admittedVersion, endedVersion: upTo = Infinity } = turn;
  return readStream(journal, threadId, { after: admittedVersion - 1, upTo });
}
