/**
 * The past of a thread. A fork begins with the events of its parent up to where it was forked, and theirs with their
 * parent's; nothing is copied. Versions belong to the stream an event is in: the last event of a history is always one of
 * the thread's own, so its version is the thread's.
 */
import { HeddleError, type EventOf, type StoredEvent } from "@heddle/protocol";
import type { ExportPart } from "@heddle/journal";
import { readStream, type ReadJournal } from "./stored-events.ts";

/** Forks of forks of forks: far more than anybody makes by hand, few enough to read. */
const MAX_FORK_DEPTH = 100;

export type ForkPoint = NonNullable<EventOf<"thread.created">["forkedFrom"]>;

/** What the thread has seen, oldest first. Empty when it does not exist. */
export async function readHistory(journal: ReadJournal, threadId: string): Promise<StoredEvent[]> {
  const own = await readStream(journal, threadId);
  return [...(await readInherited(journal, await ancestry(journal, forkPointOf(own[0])))), ...own];
}

/** What of it still counts for the thread: all but the turns it was reverted from. */
export async function readPast(journal: ReadJournal, threadId: string): Promise<StoredEvent[]> {
  return withoutReverted(await readHistory(journal, threadId));
}

/**
 * A revert takes back every turn from the one it names on, and what was put into the conversation since. Facts about the
 * thread itself (its name, its folder, its settings) stand.
 */
export function withoutReverted(history: readonly StoredEvent[]): StoredEvent[] {
  let kept: StoredEvent[] = [];
  for (const event of history) {
    const { body } = event;
    if (body.type === "thread.reverted") {
      const from = kept.findIndex(
        ({ body: earlier }) => earlier.type === "turn.admitted" && earlier.turnId === body.beforeTurnId,
      );
      if (from !== -1) kept = [...kept.slice(0, from), ...kept.slice(from).filter(isOfThread)];
    }
    kept.push(event);
  }
  return kept;
}

function isOfThread({ body }: StoredEvent): boolean {
  return body.type.startsWith("thread.");
}

/** What a thread begins with that was forked behind these. */
export async function readInherited(journal: ReadJournal, parts: readonly ExportPart[]): Promise<StoredEvent[]> {
  const inherited: StoredEvent[] = [];
  for (const { stream, ...range } of parts) {
    inherited.push(...(await readStream(journal, stream, range)));
  }
  return inherited;
}

/** The streams a thread's history is made of, oldest first; the last is its own, whole. */
export async function lineage(journal: ReadJournal, threadId: string): Promise<readonly ExportPart[]> {
  return [...(await ancestry(journal, await readForkPoint(journal, threadId))), { stream: threadId }];
}

/** The beginnings of streams that a thread forked there has seen, oldest first. */
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
  const [first] = await journal.read({ stream: threadId, after: 0, limit: 1 });
  return forkPointOf(first);
}

function forkPointOf(first: StoredEvent | undefined): ForkPoint | undefined {
  return first?.body.type === "thread.created" ? first.body.forkedFrom : undefined;
}
