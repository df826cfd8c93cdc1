/**
 * Recently read or written streams, decoded. A stored event never changes, and while no other connection has committed,
 * only this process can have added or purged anything. As soon as another one has, everything is forgotten.
 */
import type { StoredEvent } from "@heddle/protocol";

/** Of stored bodies; decoded they take a few times as much. */
const MAX_CHARS = 16 * 1024 * 1024;
/** Followers of the whole journal are rarely further behind. */
const MAX_NEWEST_EVENTS = 1024;
const MAX_NEWEST_CHARS = 1024 * 1024;

interface Recent {
  readonly events: StoredEvent[];
  chars: number;
  isWhole: boolean;
}

export interface Cursor {
  readonly stream: string;
  readonly after: number;
  readonly limit: number | undefined;
}

export class RecentEvents {
  readonly #streams = new Map<string, Recent>();
  /** The newest of the whole journal, as far back as only this process wrote them. */
  #newest: StoredEvent[] = [];
  #newestChars = 0;
  /** By stream: the version after which its chain was checked. */
  readonly #proven = new Map<string, number>();
  readonly #changeCount: () => number;
  #chars = 0;
  #seen: number | undefined;

  #epoch = 0;

  /** `changeCount`: a number that differs after each commit of another connection. */
  constructor(changeCount: () => number) {
    this.#changeCount = changeCount;
  }

  /** Changes when something was forgotten: what was read before may have been purged. */
  get epoch(): number {
    return this.#epoch;
  }

  take(cursor: Cursor): StoredEvent[] | undefined {
    this.forgetWhenChanged();
    return this.known(cursor);
  }

  /** The events after the cursor; undefined: ask the database. */
  known({ stream, after, limit }: Cursor): StoredEvent[] | undefined {
    const recent = this.#streams.get(stream);
    const first = recent?.events[0]?.version;
    if (recent === undefined || first === undefined || first > after + 1) return undefined;
    const from = after + 1 - first;
    const to = limit === undefined ? Infinity : from + limit;
    if (to > recent.events.length && !recent.isWhole) return undefined;
    this.#streams.delete(stream);
    this.#streams.set(stream, recent);
    return recent.events.slice(from, to);
  }

  /** The events of all streams after a position; undefined: ask the database. */
  knownOfAll(after: number, limit: number): StoredEvent[] | undefined {
    const first = this.#newest[0]?.position;
    if (first === undefined || first > after + 1) return undefined;
    return this.#newest.slice(after + 1 - first, after + 1 - first + limit);
  }

  /** What the database returned for a cursor. */
  keep({ stream, after, limit }: Cursor, events: readonly StoredEvent[], chars: number): void {
    const isWhole = limit === undefined || events.length < limit;
    const recent = this.#streams.get(stream);
    const last = recent?.events.at(-1)?.version;
    if (recent !== undefined && last === after) this.#extend(stream, recent, { events, chars, isWhole });
    else if (events.length > 0) this.#begin(stream, { events: [...events], chars, isWhole });
  }

  added(events: readonly StoredEvent[], chars: number): void {
    const [first] = events;
    if (first === undefined) return;
    this.#addNewest(events, chars);
    const recent = this.#streams.get(first.stream);
    const last = recent?.events.at(-1)?.version;
    if (recent?.isWhole === true && last === first.version - 1) {
      this.#extend(first.stream, recent, { events, chars, isWhole: true });
    } else if (first.version === 1) this.#begin(first.stream, { events: [...events], chars, isWhole: true });
    else this.#drop(first.stream);
  }

  clear(): void {
    this.#epoch += 1;
    this.#seen = undefined;
    this.#streams.clear();
    this.#newest = [];
    this.#proven.clear();
    this.#chars = 0;
  }

  forget(stream: string): void {
    this.#epoch += 1;
    this.#drop(stream);
    this.#newest = [];
    this.#proven.delete(stream);
  }

  /** Its chain was checked from there on; what this process adds keeps it whole. */
  proven(stream: string, after: number): void {
    this.#proven.set(stream, after);
  }

  isProven(stream: string, after: number): boolean {
    this.forgetWhenChanged();
    const from = this.#proven.get(stream);
    return from !== undefined && from <= after;
  }

  forgetWhenChanged(): void {
    const now = this.#changeCount();
    if (now === this.#seen) return;
    this.clear();
    this.#seen = now;
  }

  #addNewest(events: readonly StoredEvent[], chars: number): void {
    const follows = this.#newest.at(-1)?.position === (events[0]?.position ?? 0) - 1;
    const isFull = this.#newest.length >= MAX_NEWEST_EVENTS || this.#newestChars >= MAX_NEWEST_CHARS;
    if (!follows || isFull) [this.#newest, this.#newestChars] = [[], 0];
    this.#newest.push(...events);
    this.#newestChars += chars;
  }

  #begin(stream: string, recent: Recent): void {
    this.#drop(stream);
    this.#streams.set(stream, recent);
    this.#chars += recent.chars;
    this.#shrink();
  }

  #extend(
    stream: string,
    recent: Recent,
    more: { events: readonly StoredEvent[]; chars: number; isWhole: boolean },
  ): void {
    for (const event of more.events) recent.events.push(event);
    recent.chars += more.chars;
    recent.isWhole = more.isWhole;
    this.#chars += more.chars;
    this.#streams.delete(stream);
    this.#streams.set(stream, recent);
    this.#shrink();
  }

  #shrink(): void {
    for (const stream of this.#streams.keys()) {
      if (this.#chars <= MAX_CHARS) return;
      this.#drop(stream);
    }
  }

  #drop(stream: string): void {
    const recent = this.#streams.get(stream);
    if (recent === undefined) return;
    this.#streams.delete(stream);
    this.#chars -= recent.chars;
  }
}
