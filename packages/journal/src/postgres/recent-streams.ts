/**
 * Streams that were read from their beginning, decoded, so that a long thread is not carried over the network for each model
 * request. Every reading asks for what follows the newest event that is kept, and for that event: another process may have
 * added to the stream, deleted it, or a restored server may not have it any more. A deletion is always the last event.
 */
import type { StoredEvent } from "@heddle/protocol";
import type { ReadOptions } from "../journal.ts";
import type { Ask } from "../sql/ask.ts";
import { readAll } from "./read.ts";

/** Of stored bodies, as far as they are known; decoded they take a few times as much. */
const MAX_BYTES = 16 * 1024 * 1024;

interface Kept {
  readonly events: StoredEvent[];
  bytes: number;
}

export interface RecentStreams {
  read(options: ReadOptions): Promise<readonly StoredEvent[]>;
  /** By this process. */
  added(events: readonly StoredEvent[], bytes: number): void;
}

export function createRecentStreams(ask: Ask): RecentStreams {
  /** The one that was used last is the last. */
  const streams = new Map<string, Kept>();
  let bytes = 0;

  function drop(stream: string): void {
    bytes -= streams.get(stream)?.bytes ?? 0;
    streams.delete(stream);
  }

  function keep(stream: string, kept: Kept): void {
    drop(stream);
    if (kept.events.at(-1)?.body.type === "thread.deleted") return;
    streams.set(stream, kept);
    bytes += kept.bytes;
    for (const oldest of streams.keys()) {
      if (bytes <= MAX_BYTES) return;
      drop(oldest);
    }
  }

  async function whole(stream: string): Promise<readonly StoredEvent[]> {
    const kept = streams.get(stream);
    const last = kept?.events.at(-1);
    if (kept !== undefined && last !== undefined) {
      const news = await readAll(ask, { stream, after: last.version - 1 });
      const [same, ...more] = news.events;
      const isSame = same?.hash === last.hash && !more.some(({ body }) => body.type === "thread.deleted");
      if (isSame) {
        // Another reading may have been faster.
        for (const event of more) if (event.version === kept.events.length + 1) kept.events.push(event);
        keep(stream, { events: kept.events, bytes: kept.bytes + news.bytes });
        return kept.events;
      }
      drop(stream);
    }
    const read = await readAll(ask, { stream, after: 0 });
    if (read.events.length > 0) keep(stream, { events: [...read.events], bytes: read.bytes });
    return read.events;
  }

  return {
    async read(options) {
      const { stream, after, limit, types } = options;
      // From the beginning, or from within what is kept.
      const isKept = stream !== undefined && types === undefined && (after === 0 || streams.has(stream));
      if (!isKept || limit !== undefined) return (await readAll(ask, options)).events;
      return (await whole(stream)).slice(after);
    },
    added(events, added) {
      const [first] = events;
      const kept = first && streams.get(first.stream);
      if (first === undefined) return;
      if (kept === undefined && first.version === 1) keep(first.stream, { events: [...events], bytes: added });
      else if (kept !== undefined && kept.events.length + 1 === first.version) {
        for (const event of events) kept.events.push(event);
        keep(first.stream, { events: kept.events, bytes: kept.bytes + added });
      }
    },
  };
}
