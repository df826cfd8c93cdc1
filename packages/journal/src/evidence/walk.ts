/**
 * Walks the chains of a range of positions, of all streams at once, and puts ranges together again. Where a range begins in
 * the middle of a stream, the event before it is looked up, so that ranges can be walked in any order and side by side: a
 * chain that is whole is whole in every range, and one that is not is broken in at least one.
 */
import { checkLink, type Head } from "./check-link.ts";
import { genesisOf } from "../record/chain.ts";
import type { Damage } from "../journal.ts";
import { integer, text, toEvent, type Row } from "../record/rows.ts";
import type { RowRange, StoredRows } from "./stored-rows.ts";

/** Read at a time; between two of them others may run. */
export const CHUNK = 256;
/** The first ones matter; a rewritten store would fill memory with the rest. */
export const MAX_REPORTED = 100;
const MAX_VIOLATIONS = 1000;

export interface WalkedRange {
  readonly events: number;
  /** Those that begin here. */
  readonly streams: number;
  readonly damage: readonly Damage[];
  readonly purged: readonly PurgedBodies[];
  /** Protected paths that were written, as the record tells. */
  readonly violations: readonly string[];
  readonly turnEnds: readonly TurnEnds[];
}

/** Where the newest two finished turns of a stream end; 0: there is none. */
export interface TurnEnds {
  readonly stream: string;
  readonly newest: number;
  readonly before: number;
}

interface Missing {
  /** The first of them. */
  readonly version: number;
  readonly position: number;
  readonly count: number;
}

/** Bodies of one stream that are gone, within a range. */
interface PurgedBodies {
  readonly stream: string;
  readonly hasDeletion: boolean;
  /** With a deletion behind them. */
  readonly explained: number;
  /** With none behind them yet. */
  readonly open: Missing | undefined;
}

/** Yields after each chunk how many events it had. */
export async function* walkRange(stored: StoredRows, range: RowRange): AsyncGenerator<number, WalkedRange> {
  const { after: first } = range;
  const heads = new Map<string, Head>();
  const purged = new Map<string, PurgedBodies>();
  const damage: Damage[] = [];
  const violations: string[] = [];
  const turnEnds = new Map<string, TurnEnds>();
  let [events, streams, after] = [0, 0, first];
  for (;;) {
    const rows = await stored.page({ ...range, after }, CHUNK);
    for (const row of rows) {
      const name = text(row, "stream");
      let head = heads.get(name) ?? (await headBefore(stored, row, first));
      if (head === undefined) {
        streams += 1;
        head = { version: 0, hash: genesisOf(name) };
      }
      const found = checkLink(row, head);
      if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
      notePurged(purged, row);
      if (text(row, "type") === "turn.completed") noteEnds(turnEnds, name, [integer(row, "version")]);
      if (found === undefined && violations.length < MAX_VIOLATIONS) violations.push(...violationIn(row));
      heads.set(name, { version: integer(row, "version"), hash: text(row, "hash") });
      after = integer(row, "position");
    }
    events += rows.length;
    if (rows.length < CHUNK) {
      return { events, streams, damage, purged: [...purged.values()], violations, turnEnds: [...turnEnds.values()] };
    }
    yield rows.length;
  }
}

export const NOTHING_WALKED: WalkedRange = {
  events: 0,
  streams: 0,
  damage: [],
  purged: [],
  violations: [],
  turnEnds: [],
};

/** What stands before an event of a stream that begins before the range; undefined: the stream begins with this event. */
async function headBefore(stored: StoredRows, row: Row, first: number): Promise<Head | undefined> {
  if (first === 0) return undefined;
  const [stream, version] = [text(row, "stream"), integer(row, "version")];
  const next = version > 1 ? await stored.of(stream, version - 1) : undefined;
  // Not where it belongs: whatever is there instead.
  const isThere = next !== undefined && integer(next, "position") <= first;
  const found = isThere ? next : await stored.lastOf(stream, first);
  return found === undefined ? undefined : { version: integer(found, "version"), hash: text(found, "hash") };
}

function noteEnds(all: Map<string, TurnEnds>, stream: string, versions: readonly number[]): void {
  const known = all.get(stream);
  const [newest = 0, before = 0] = [...versions, known?.newest ?? 0, known?.before ?? 0].toSorted((a, b) => b - a);
  all.set(stream, { stream, newest, before });
}

function notePurged(purged: Map<string, PurgedBodies>, row: Row): void {
  const isDeletion = row["body"] !== null && text(row, "type") === "thread.deleted";
  if (row["body"] !== null && !isDeletion) return;
  const stream = text(row, "stream");
  const known = purged.get(stream) ?? { stream, hasDeletion: false, explained: 0, open: undefined };
  if (isDeletion) {
    const explained = known.explained + (known.open?.count ?? 0);
    purged.set(stream, { stream, hasDeletion: true, explained, open: undefined });
    return;
  }
  const here = { version: integer(row, "version"), position: integer(row, "position"), count: 1 };
  purged.set(stream, { ...known, open: joined(known.open, here) });
}

function joined(earlier: Missing | undefined, later: Missing): Missing {
  return earlier === undefined ? later : { ...earlier, count: earlier.count + later.count };
}

function violationIn(row: Row): string[] {
  if (row["body"] === null || text(row, "type") !== "path.violated") return [];
  const { body } = toEvent(row);
  return body.type === "path.violated" ? [body.path] : [];
}

export interface Walk extends Pick<WalkedRange, "events" | "streams" | "damage" | "violations" | "turnEnds"> {
  /** Bodies of deleted threads. */
  readonly purged: number;
}

/** Ranges in the order of their positions. */
export async function joinRanges(stored: StoredRows, ranges: readonly WalkedRange[]): Promise<Walk> {
  const missing = new Map<string, Missing>();
  let purged = 0;
  for (const { stream, hasDeletion, explained, open } of ranges.flatMap((range) => range.purged)) {
    const earlier = missing.get(stream);
    if (hasDeletion) {
      purged += explained + (earlier?.count ?? 0);
      missing.delete(stream);
    }
    if (open !== undefined) missing.set(stream, joined(missing.get(stream), open));
  }
  const damage = ranges.flatMap((range) => range.damage);
  for (const [stream, { version, position, count }] of missing) {
    if (await isDeletedBehind(stored, stream, version)) purged += count;
    else {
      damage.push(bodyGone({ stream, version, position }));
    }
  }
  const sum = (of: "events" | "streams"): number => ranges.reduce((total, range) => total + range[of], 0);
  const violations = ranges.flatMap((range) => range.violations).slice(0, MAX_VIOLATIONS);
  const ends = new Map<string, TurnEnds>();
  for (const { stream, newest, before } of ranges.flatMap((range) => range.turnEnds)) {
    noteEnds(ends, stream, [newest, before]);
  }
  const turnEnds = [...ends.values()];
  return { events: sum("events"), streams: sum("streams"), damage, violations, purged, turnEnds };
}

export function bodyGone(where: Required<Pick<Damage, "stream" | "version" | "position">>): Damage {
  const message = `the content of event ${where.version} of ${where.stream} is missing, and no deletion is recorded`;
  return { kind: "body-altered", message, ...where };
}

/** A body may be missing only in a thread whose last event says that it was deleted: by now, because one is while others are walked. */
async function isDeletedBehind(stored: StoredRows, stream: string, version: number): Promise<boolean> {
  const last = await stored.lastOf(stream);
  return last !== undefined && text(last, "type") === "thread.deleted" && integer(last, "version") > version;
}
