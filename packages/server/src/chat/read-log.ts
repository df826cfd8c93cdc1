/**
 * The events of a chat after a number, and the log that stands at their end. Turns are read backwards from the newest one
 * until that number is reached, so the cost grows with what was missed, not with the chat.
 */
import { readStream } from "@heddle/agent";
import { ChatLog, type ChatEvent } from "@heddle/dialects/chat";
import type { Journal } from "@heddle/journal";
import { HeddleError, lessUsage, logEntryCount, type StoredEvent } from "@heddle/protocol";
import { usageOf } from "../followers/thread-state.ts";

export interface Past {
  /** Those after the number that was asked for. */
  readonly events: readonly ChatEvent[];
  readonly log: ChatLog;
}

export interface ReadLogOptions {
  readonly contextWindow: (model: string) => number | undefined;
  /** Absent: no events are needed, only the log. */
  readonly after?: number;
  /** Later events are left out. */
  readonly isTaken?: (event: StoredEvent) => boolean;
}

/** A thread that changes while it is read is read again, this often. */
const MAX_TRIES = 100;

/** undefined: there is no such thread, or it was deleted. */
export async function readLog(journal: Journal, threadId: string, options: ReadLogOptions): Promise<Past | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const version = await journal.version(threadId);
    const past = await readOnce(journal, { threadId, version }, options);
    if ((await journal.version(threadId)) === version) return past;
  }
  throw new HeddleError("store.busy", `thread ${threadId} changes faster than it can be read; try again`);
}

async function readOnce(
  journal: Journal,
  { threadId, version }: { readonly threadId: string; readonly version: number },
  { contextWindow, after = Infinity, isTaken = () => true }: ReadLogOptions,
): Promise<Past | undefined> {
  const row = await journal.threads.get(threadId);
  if (row === undefined) return undefined;
  const read: StoredEvent[] = [];
  let seq = row.logEntries;
  let first = version + 1;
  do {
    const turn = await journal.threads.lastTurn(threadId, first - 1);
    const from = turn?.admittedVersion ?? 1;
    const events = await readStream(journal, threadId, { after: from - 1, upTo: first - 1 });
    for (const { body } of events) seq -= logEntryCount(body);
    read.unshift(...events);
    first = from;
  } while (first > 1 && (seq > after || read[0] === undefined || !isTaken(read[0])));
  const look = { stream: threadId, kinds: ["thread.settings-changed"], upTo: first - 1 } as const;
  const changes = (await journal.marks.events(look)).flatMap(({ body }) =>
    body.type === "thread.settings-changed" ? [body.changes] : [],
  );
  const start = { seq, version: first - 1, usage: lessUsage(row.usage, usageOf(read)), changes };
  const log = new ChatLog({ threadId, contextWindow, start });
  const events = read.filter(isTaken).flatMap((event) => log.event(event));
  return { events: events.filter(({ params }) => params.seq > after), log };
}
