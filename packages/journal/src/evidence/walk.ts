/**
 * Walks the chains of a range of positions, of all streams at once, and joins ranges. Where a range begins in the
 * middle of a stream, the event before it is looked up, so that ranges can be walked in any order and in parallel: a
 * chain is whole exactly when it is whole in every range.
 */
import { checkLink, type Head } from "./check-link.ts";
import { genesisOf } from "../record/chain.ts";
import type { Damage } from "../journal.ts";
import { integer, text, toEvent, type Row } from "../record/rows.ts";
import type { RowRange, StoredRows } from "./stored-rows.ts";

/** Read at a time; others may run between two chunks. */
export const CHUNK = 256;
/** The first ones matter; a rewritten store would fill memory with the rest. */
export const MAX_REPORTED = 100;
const MAX_VIOLATIONS = 1000;

export interface WalkedRange {
  readonly events: number;
  readonly streams: number;
  readonly damage: readonly Damage[];
  /** The first position of the range that no event has, where all streams are walked. */
  readonly unheld?: Damage | undefined;
  readonly purged: readonly PurgedBodies[];
  readonly violations: readonly string[];
  readonly turnEnds: readonly TurnEnds[];
}

/** Where the newest two finished turns of a stream end; 0: none. */
export interface TurnEnds {
  readonly stream: string;
  readonly newest: number;
  readonly before: number;
}

interface Missing {
  readonly version: number;
  readonly position: number;
  readonly count: number;
}

/** Purged bodies of one stream within a range: `explained` with a deletion after them, `open` with none yet. */
interface PurgedBodies {
  readonly stream: string;
  readonly hasDeletion: boolean;
  readonly explained: number;
  readonly open: Missing | undefined;
}

export async function* walkRange(stored: StoredRows, range: RowRange): AsyncGenerator<number, WalkedRange> {
  const { after: first } = range;
  const heads = new Map<string, Head>();
  const purged = new Map<string, PurgedBodies>();
  const damage: Damage[] = [];
  const violations: string[] = [];
  const turnEnds = new Map<string, TurnEnds>();
  let [events, streams, after] = [0, 0, first];
  let unheld: Damage | undefined;
  for (;;) {
    const rows = await stored.page({ ...range, after }, CHUNK);
    for (const row of rows) {
      const name = text(row, "stream");
      if (range.stream === undefined) unheld ??= unheldBefore(integer(row, "position"), after + 1);
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
      after = integer(row, range.stream === undefined ? "position" : "version");
    }
    events += rows.length;
    if (rows.length < CHUNK) {
      if (range.stream === undefined && range.upTo !== undefined) unheld ??= unheldBefore(range.upTo + 1, after + 1);
      const ends = { purged: [...purged.values()], turnEnds: [...turnEnds.values()] };
      return { events, streams, damage, unheld, violations, ...ends };
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

/** Positions are given one after the other, and none is ever free again. */
function unheldBefore(found: number, position: number): Damage | undefined {
  if (found === position) return undefined;
  return { kind: "version-gap", message: `no event has position ${position}, and later ones are there`, position };
}

/** The event before this one, of a stream that begins before the range; undefined: the stream begins here. */
async function headBefore(stored: StoredRows, row: Row, first: number): Promise<Head | undefined> {
  if (first === 0) return undefined;
  const [stream, version] = [text(row, "stream"), integer(row, "version")];
  const next = version > 1 ? await stored.of(stream, version - 1) : undefined;
  // Not where it should be: whatever is there instead.
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
  readonly purged: number;
}

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
  // Where an event is missing its stream tells as much.
  const unheld = ranges
    .flatMap((range) => range.unheld ?? [])
    .toSorted((a, b) => (a.position ?? 0) - (b.position ?? 0));
  if (damage.length === 0) damage.push(...unheld.slice(0, 1));
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

/** A body may be missing only in a deleted thread; it may have been deleted during the walk. */
async function isDeletedBehind(stored: StoredRows, stream: string, version: number): Promise<boolean> {
  const last = await stored.lastOf(stream);
  return last !== undefined && text(last, "type") === "thread.deleted" && integer(last, "version") > version;
}
