/** The turns of a thread's past, listed from tables; the events of a turn are read only when it is shown. */
import { isKept, readPlan, readStream, turnsBack } from "@heddle/agent";
import type { Journal, TurnRow } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";

export interface PastTurn extends Pick<TurnRow, "id" | "threadId" | "admittedVersion"> {
  /** The last version that belongs to it: its end, or where the thread was forked. */
  readonly upTo: number;
}

/** Oldest first, with those before a fork and without those that were reverted; of the thread itself up to a version. */
export async function pastTurns(journal: Journal, threadId: string, seen = Infinity): Promise<readonly PastTurn[]> {
  const { kept } = await readPlan(journal, threadId);
  const parts = kept.map(async ({ stream, after, upTo }) => {
    const last = stream === threadId ? Math.min(upTo, seen) : upTo;
    const rows = (await journal.threads.turns(stream)).filter(
      ({ admittedVersion }) => admittedVersion > after && admittedVersion <= last,
    );
    return rows.map((row) => ({ ...row, upTo: Math.min(row.endedVersion ?? Infinity, last) }));
  });
  return (await Promise.all(parts)).flat();
}

/** Newest first, each found when it is asked for: from the newest one, or from the one that is named. */
export async function* turnsBackFrom(
  journal: Journal,
  threadId: string,
  { seen = Infinity, fromTurn }: { readonly seen?: number | undefined; readonly fromTurn?: string | undefined } = {},
): AsyncGenerator<PastTurn, void, void> {
  const past = await readPlan(journal, threadId);
  const from = fromTurn === undefined ? undefined : await journal.threads.turn(fromTurn);
  if (fromTurn !== undefined && (from === undefined || !isKept(past, from))) return;
  for await (const { range, ...row } of turnsBack(journal, past, from)) {
    const last = row.threadId === threadId ? Math.min(range.upTo, seen) : range.upTo;
    if (row.admittedVersion <= last) yield { ...row, upTo: Math.min(row.endedVersion ?? Infinity, last) };
  }
}

export function turnEvents(journal: Journal, { threadId, admittedVersion, upTo }: PastTurn): Promise<StoredEvent[]> {
  return readStream(journal, threadId, { after: admittedVersion - 1, upTo });
}
