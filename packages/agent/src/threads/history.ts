/**
 * The past of a thread. A fork begins with its parent's events up to the fork point; nothing is copied. Versions belong
 * to the stream of an event: the last event of a history is always the thread's own.
 */
import { HeddleError, type EventOf, type StoredEvent } from "@heddle/protocol";
import type { ExportPart, Journal } from "@heddle/journal";

/** For readers that must not append, or append only under a lease. */
export type ReadJournal = Omit<Journal, "append" | "purge">;

const PAGE = 1000;
/** More forks of forks than anybody makes by hand. */
const MAX_FORK_DEPTH = 100;

/** Versions after `after`, up to and including `upTo`. */
export async function readStream(
  journal: ReadJournal,
  stream: string,
  { after = 0, upTo = Infinity }: { readonly after?: number; readonly upTo?: number } = {},
): Promise<StoredEvent[]> {
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

/** From its admission to its end, or to the end of the thread; empty when there is no such turn. */
export async function readTurn(journal: ReadJournal, turnId: string): Promise<StoredEvent[]> {
  const turn = await journal.threads.turn(turnId);
  if (turn === undefined) return [];
  const { threadId, admittedVersion, endedVersion: upTo = Infinity } = turn;
  return readStream(journal, threadId, { after: admittedVersion - 1, upTo });
}

export async function eventAt(journal: ReadJournal, stream: string, version: number): Promise<StoredEvent | undefined> {
  const [event] = await journal.read({ stream, after: version - 1, limit: 1 });
  return event;
}

export type ForkPoint = NonNullable<EventOf<"thread.created">["forkedFrom"]>;

export async function readHistory(journal: ReadJournal, threadId: string): Promise<StoredEvent[]> {
  return readParts(journal, await lineage(journal, threadId));
}

/** Without reverted turns. */
export async function readPast(journal: ReadJournal, threadId: string): Promise<StoredEvent[]> {
  return withoutReverted(await readHistory(journal, threadId));
}

/**
 * A revert removes every turn from the one it names on, and what was injected since. Facts about the thread itself
 * (name, folder, settings) stay.
 */
export function withoutReverted(history: readonly StoredEvent[]): StoredEvent[] {
  let kept: StoredEvent[] = [];
  for (const event of history) {
    const { body } = event;
    if (body.type === "thread.reverted") {
      const from = kept.findIndex(
        ({ body: earlier }) => earlier.type === "turn.admitted" && earlier.turnId === body.beforeTurnId,
      );
      const ofThread = kept.slice(from).filter(({ body: later }) => later.type.startsWith("thread."));
      if (from !== -1) kept = [...kept.slice(0, from), ...ofThread];
    }
    kept.push(event);
  }
  return kept;
}

export async function readParts(journal: ReadJournal, parts: readonly ExportPart[]): Promise<StoredEvent[]> {
  return (await Promise.all(parts.map(({ stream, ...range }) => readStream(journal, stream, range)))).flat();
}

/** The streams of a thread's history, oldest first; the last is its own, whole. */
export async function lineage(journal: ReadJournal, threadId: string): Promise<readonly ExportPart[]> {
  return [...(await ancestry(journal, await readForkPoint(journal, threadId))), { stream: threadId }];
}

/** The streams that a thread forked there inherits, oldest first. */
export async function ancestry(journal: ReadJournal, forkedFrom: ForkPoint | undefined): Promise<ExportPart[]> {
  const parts: ExportPart[] = [];
  for (let point = forkedFrom; point !== undefined; point = await readForkPoint(journal, point.threadId)) {
    const { threadId, version } = point;
    if (parts.some(({ stream }) => stream === threadId)) {
      throw new HeddleError("store.damaged", `thread ${threadId} is forked from itself`);
    }
    if (parts.length === MAX_FORK_DEPTH) {
      throw new HeddleError("limit.reached", `forks of forks are followed ${MAX_FORK_DEPTH} times at most`);
    }
    parts.unshift({ stream: threadId, upTo: version });
  }
  return parts;
}

export async function readForkPoint(journal: ReadJournal, threadId: string): Promise<ForkPoint | undefined> {
  const body = (await eventAt(journal, threadId, 1))?.body;
  return body?.type === "thread.created" ? body.forkedFrom : undefined;
}
