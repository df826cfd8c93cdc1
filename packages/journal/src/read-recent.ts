/** Reading a stream or the whole journal from memory as far as it is there, from the database otherwise. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection } from "./driver.ts";
import { BATCH_EVENTS, readBatch, readSized, type Batch } from "./read.ts";
import type { Cursor, RecentEvents } from "./recent-events.ts";

export function readStream(connection: Connection, recent: RecentEvents, cursor: Cursor): readonly StoredEvent[] {
  const known = recent.take(cursor);
  if (known !== undefined) return known;
  const { stream, after, limit } = cursor;
  const { events, chars } = readSized(connection, { stream, after, ...(limit === undefined ? {} : { limit }) });
  recent.keep(cursor, events, chars);
  return events;
}

/**
 * The next events for somebody who follows, and is told when others have written. Not remembered: a batch that is cut for its
 * size looks like the end of the stream.
 */
export function nextBatch(
  connection: Connection,
  recent: RecentEvents,
  { stream, after }: { readonly stream: string | undefined; readonly after: number },
): Batch {
  const limit = BATCH_EVENTS;
  const known = stream === undefined ? recent.knownOfAll(after, limit) : recent.known({ stream, after, limit });
  if (known !== undefined) return { events: known, isCut: known.length === limit };
  return readBatch(connection, stream === undefined ? { after } : { stream, after });
}
