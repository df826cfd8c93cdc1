/**
 * The past of a thread. A fork begins with the events of its parent up to where it was forked, and theirs with their
 * parent's; nothing is copied. Versions belong to the stream an event is in: the last event of a history is always one of
 * the thread's own, so its version is the thread's.
 */
import { HeddleError, type EventOf, type StoredEvent, type TurnSettings } from "@heddle/protocol";
import type { ExportPart, Journal } from "@heddle/journal";
import { readStream } from "./stored-events.ts";

/** Forks of forks of forks: far more than anybody makes by hand, few enough to read. */
const MAX_FORK_DEPTH = 100;

/** The streams a thread's history is made of, oldest first; the last is its own, whole. */
export async function lineage(journal: Journal, threadId: string): Promise<readonly ExportPart[]> {
  const parts: ExportPart[] = [];
  let part: ExportPart | undefined = { stream: threadId };
  while (part !== undefined) {
    const { stream } = part;
    if (parts.length > MAX_FORK_DEPTH || parts.some((known) => known.stream === stream)) {
      throw new HeddleError("store.damaged", `thread ${threadId} is forked from itself, or too many times over`);
    }
    parts.unshift(part);
    part = await parentOf(journal, stream);
  }
  return parts;
}

async function parentOf(journal: Journal, threadId: string): Promise<ExportPart | undefined> {
  const [first] = await journal.read({ stream: threadId, after: 0, limit: 1 });
  if (first?.body.type !== "thread.created" || first.body.forkedFrom === undefined) return undefined;
  const { threadId: stream, version } = first.body.forkedFrom;
  return { stream, upTo: version };
}

/** What the thread has seen, oldest first. Empty when it does not exist. */
export async function readHistory(journal: Journal, threadId: string): Promise<StoredEvent[]> {
  const own = await readStream(journal, threadId);
  const first = own[0]?.body;
  const forkedFrom = first?.type === "thread.created" ? first.forkedFrom : undefined;
  return [...(await readInherited(journal, forkedFrom)), ...own];
}

type ForkPoint = NonNullable<EventOf<"thread.created">["forkedFrom"]>;

/** What a thread forked there begins with; nothing for a thread that is no fork. */
export async function readInherited(journal: Journal, forkedFrom: ForkPoint | undefined): Promise<StoredEvent[]> {
  if (forkedFrom === undefined) return [];
  const parts = (await lineage(journal, forkedFrom.threadId)).slice(0, -1);
  const inherited: StoredEvent[] = [];
  for (const { stream, ...range } of [...parts, { stream: forkedFrom.threadId, upTo: forkedFrom.version }]) {
    inherited.push(...(await readStream(journal, stream, range)));
  }
  return inherited;
}

/** With what the thread's last turn ran; undefined when it has had none. */
export function lastSettings(history: readonly StoredEvent[]): TurnSettings | undefined {
  const last = history.findLast(({ body }) => body.type === "turn.admitted")?.body;
  return last?.type === "turn.admitted" ? last.settings : undefined;
}
