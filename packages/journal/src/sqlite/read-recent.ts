/** Reads a stream or the whole journal from memory where possible, from the database otherwise. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection } from "./driver.ts";
import { breathe, LONG_CHARS, type LongEvents } from "../record/breathe.ts";
import type { ReadOptions } from "../journal.ts";
import { BATCH_EVENTS, readBatch, type Batch } from "./read.ts";
import type { RecentEvents } from "../record/recent-events.ts";

interface From {
  readonly reading: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly recent: RecentEvents;
  readonly long: LongEvents;
}

/** A page of a stream or of the whole journal. Long pages are read in turns with everything else. */
export async function readPage(options: ReadOptions, { reading, recent, long }: From): Promise<readonly StoredEvent[]> {
  const { stream, after, limit, types } = options;
  if (long.isAhead(options)) await breathe();
  const cursor = stream === undefined || types !== undefined ? undefined : { stream, after, limit };
  const page: Page = { events: [], chars: 0, isWhole: false, epoch: 0 };
  for (let isFirst = true; !page.isWhole; isFirst = false) {
    if (!isFirst) await breathe();
    const known = await reading((connection) => {
      const found = cursor !== undefined && isFirst ? recent.take(cursor) : undefined;
      if (found !== undefined) return found;
      if (isFirst) page.epoch = recent.epoch;
      readMore(connection, page, options);
      // Nothing was awaited since the last batch, and nothing of the first was purged meanwhile.
      if (cursor !== undefined && page.isWhole && page.epoch === recent.epoch) {
        recent.keep(cursor, page.events, page.chars);
      }
      return undefined;
    });
    if (known !== undefined) return known;
  }
  long.met(page.events);
  // It took its time; the caller continues in a turn of its own.
  if (page.chars > LONG_CHARS) await breathe();
  return page.events;
}

interface Page {
  readonly events: StoredEvent[];
  chars: number;
  isWhole: boolean;
  epoch: number;
}

function readMore(connection: Connection, page: Page, options: ReadOptions): void {
  const { stream, after, limit = Infinity } = options;
  const last = page.events.at(-1);
  const from = last === undefined ? after : stream === undefined ? last.position : last.version;
  const batch = readBatch(connection, { ...options, after: from, limit: limit - page.events.length });
  for (const event of batch.events) page.events.push(event);
  page.chars += batch.chars;
  page.isWhole = !batch.isCut || page.events.length >= limit;
}

/**
 * The next events for a follower, which is woken when others write. Not cached: a batch that is cut for its size looks
 * like the end of the stream.
 */
export function nextBatch(
  connection: Connection,
  recent: RecentEvents,
  { stream, after }: { readonly stream: string | undefined; readonly after: number },
): Pick<Batch, "events" | "isCut"> {
  const limit = BATCH_EVENTS;
  const known = stream === undefined ? recent.knownOfAll(after, limit) : recent.known({ stream, after, limit });
  if (known !== undefined) return { events: known, isCut: known.length === limit };
  return readBatch(connection, { ...(stream === undefined ? {} : { stream }), after, limit });
}
