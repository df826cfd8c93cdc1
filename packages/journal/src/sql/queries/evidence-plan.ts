/** What a question means for the tables: the filters' values, the range of positions, and the index to walk. */
import { EVENT_VERSIONS, HeddleError, type EvidenceQuery } from "@heddle/protocol";
import { SPAN_MS } from "../../projections/evidence.ts";
import { wordsOf } from "../../projections/words.ts";
import { integer, optionalInteger, text } from "../../record/rows.ts";
import { get, rowsAs, type Asking, type Value } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import { probe, type DriverName, type FilterName } from "./evidence-sql.ts";

/** Entries of a page, where none is said. */
export const DEFAULT_LIMIT = 100;

export interface Range {
  readonly low: number;
  /** Not included. */
  readonly high: number;
}

export interface Plan extends Range {
  readonly filters: Readonly<Partial<Record<FilterName, string | number>>>;
  readonly driver: DriverName;
  /** The driver is walked once for each. */
  readonly keys: readonly Key[];
  /** Words that what is found must have besides. */
  readonly sought: readonly string[];
}

type Key = readonly [Value, Value];

/** Lists that a query comes to. */
interface Asked {
  readonly query: EvidenceQuery;
  readonly types: readonly string[] | undefined;
  readonly forks: readonly string[] | undefined;
  /** Words that the index finds together. */
  readonly walked: readonly string[] | undefined;
}

/** undefined: nothing can match. */
export function* planOf(query: EvidenceQuery, purpose: "list" | "count", dialect: Dialect): Asking<Plan | undefined> {
  const wanted = query.text === undefined ? undefined : wordsIn(query.text);
  const types = query.type === undefined ? undefined : typesOf(list(query.type));
  const forks = query.forkOf === undefined ? undefined : yield* forksOf(query.forkOf);
  const range = yield* rangeOf(query);
  if (range === undefined || types?.length === 0 || forks?.length === 0) return undefined;
  const walked = wanted === undefined ? undefined : yield* wordsToWalk(wanted, range, dialect);
  const asked: Asked = { query, types, forks, walked };
  const choice: Choice = { ...range, dialect, purpose, limit: query.limit ?? DEFAULT_LIMIT };
  const { driver, keys } = yield* cheapest(driversOf(asked, { purpose, dialect }), choice);
  const sought = (wanted ?? []).filter((word) => driver !== "words" || walked?.includes(word) !== true);
  return { ...range, driver, keys, sought, filters: filtersOf(asked) };
}

function filtersOf({ query, types, forks }: Asked): Plan["filters"] {
  const { thread, task, author, claim, subject, ref, tags, anyTag } = query;
  const lists = { streams: thread, tasks: task, authors: author, claims: claim, types, forks, tags, anyTag };
  const single = {
    turn: query.turn,
    subjectType: subject?.type,
    subjectId: subject?.id,
    envelope: query.envelope,
    replyTo: query.replyTo,
    since: query.since,
    before: query.before,
    refType: ref?.type,
    refId: ref?.id,
    origin: query.origin ?? (thread === undefined ? "local" : "any"),
  };
  const filters: Partial<Record<FilterName, string | number>> = {};
  for (const name of Object.keys(lists) as (keyof typeof lists)[]) {
    const values = lists[name];
    if (values !== undefined) filters[name] = JSON.stringify(list(values));
  }
  for (const name of Object.keys(single) as (keyof typeof single)[]) {
    const value = single[name];
    if (value !== undefined) filters[name] = value;
  }
  return filters;
}

/** What was not said or done here. */
const IMPORTED = ["evidence.imported", "item.imported"] as const;

interface Candidate {
  readonly driver: DriverName;
  readonly keys: readonly Key[];
}

function driversOf(
  { query, types, forks, walked }: Asked,
  { purpose, dialect }: Pick<Choice, "purpose" | "dialect">,
): readonly Candidate[] {
  const { subject, ref, tags = [], anyTag = [] } = query;
  const found: Candidate[] = [];
  const add = (driver: DriverName, values: string | readonly string[] | undefined): void => {
    if (values !== undefined) found.push({ driver, keys: [...new Set(list(values))].map((value) => [value, null]) });
  };
  add("words", walked && dialect.words.match(walked));
  add("reply", query.replyTo);
  add("turn", query.turn);
  add("stream", query.thread);
  add("task", query.task);
  add("envelope", query.envelope);
  add("claim", query.claim);
  add("type", types);
  if (query.origin === "imported") add("type", IMPORTED);
  add("author", query.author);
  if (forks !== undefined && forks.length <= MAX_WALKS) add("stream", forks);
  for (const tag of tags) add("tag", tag);
  // An entry with two of the tags would be counted twice.
  if (anyTag.length === 1 || (anyTag.length > 0 && purpose === "list")) add("tag", anyTag);
  if (ref !== undefined) found.push({ driver: "ref", keys: [[ref.type, ref.id]] });
  if (subject?.id !== undefined) found.push({ driver: "subject", keys: [[subject.type, subject.id]] });
  else add("subjectType", subject?.type);
  return found;
}

/** So many are looked at to tell how frequent something is. */
const PROBED = 1_000;
/** To look for words in one entry takes as long as to walk this many that have them. */
const ENTRIES_PER_WORDS = 30;
/** Of several words the rarest is walked alone where it has no more entries than this. */
const RARE = 300;
/** A driver is walked for each value; with more of them another one is better. */
const MAX_WALKS = 100;

const EVERYTHING: Candidate = { driver: "all", keys: [[null, null]] };

interface Choice extends Range {
  readonly purpose: "list" | "count";
  readonly limit: number;
  readonly dialect: Dialect;
}

/**
 * The candidate that is walked in the fewest steps to the end, or to as many entries as are asked for, if the others occur in
 * it as often as elsewhere.
 */
function* cheapest(candidates: readonly Candidate[], choice: Choice): Asking<Candidate> {
  const [only] = candidates;
  if (only === undefined) return EVERYTHING;
  if (candidates.length === 1) return only;
  const hasWords = candidates.some(({ driver }) => driver === "words");
  const width = choice.high - choice.low;
  const known: { readonly candidate: Candidate; readonly density: number }[] = [];
  for (const candidate of candidates) known.push({ candidate, density: yield* densityOf(candidate, choice) });
  const together = known.reduce((product, { density }) => product * density, 1);
  const priced = known.map(({ candidate, density }) => {
    const untilEnough = choice.purpose === "count" ? Infinity : choice.limit / (together / density);
    const steps = Math.min(density * width, untilEnough);
    return { candidate, price: hasWords && candidate.driver !== "words" ? steps * ENTRIES_PER_WORDS : steps };
  });
  return priced.reduce((best, one) => (one.price < best.price ? one : best)).candidate;
}

/** Entries of a candidate for each position, by the newest of them; never 0. */
function* densityOf({ driver, keys }: Candidate, choice: Choice): Asking<number> {
  let sum = 0;
  for (const key of keys) {
    const { found, span } = yield* newestOf(driver, key, choice);
    sum += found / span;
  }
  return Math.min(1, Math.max(sum, 1 / (choice.high - choice.low)));
}

function* newestOf(
  driver: DriverName,
  [first, second]: Key,
  { low, high, dialect }: Range & { readonly dialect: Dialect },
): Asking<{ readonly found: number; readonly span: number }> {
  const row = yield* get(probe(driver, dialect), high, low, PROBED, first, second);
  const found = integer(row, "found");
  const lowest = found < PROBED ? low : integer(row, "lowest");
  return { found, span: Math.max(1, high - lowest) };
}

/** All of them together, or a rare one alone: an index walks the entries of a frequent word one by one. */
function* wordsToWalk(words: readonly string[], range: Range, dialect: Dialect): Asking<readonly string[]> {
  if (words.length < 2) return words;
  const counted: { readonly word: string; readonly found: number }[] = [];
  for (const word of words.slice(0, MAX_WALKS)) {
    const { found } = yield* newestOf("words", [dialect.words.match([word]), null], { ...range, dialect });
    counted.push({ word, found });
  }
  const rarest = counted.reduce((best, one) => (one.found < best.found ? one : best));
  return rarest.found > RARE ? words : [rarest.word];
}

/** Positions that the cursor and the times leave. */
function* rangeOf(query: EvidenceQuery): Asking<Range | undefined> {
  const newest = yield* get("SELECT max(position) AS newest FROM evidence");
  let [low, high] = [0, ((newest && optionalInteger(newest, "newest")) ?? 0) + 1];
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor);
  if (cursor !== undefined && query.order === "oldest") low = cursor + 1;
  if (cursor !== undefined && query.order !== "oldest") high = Math.min(high, cursor);
  if (query.since !== undefined) {
    const row = yield* get(
      "SELECT min(first_position) AS first FROM evidence_spans WHERE span >= ?",
      Math.floor(query.since / SPAN_MS),
    );
    low = Math.max(low, (row && optionalInteger(row, "first")) ?? high);
  }
  if (query.before !== undefined) {
    const row = yield* get(
      `SELECT max(first_position) AS last, (SELECT min(n.first_position) FROM evidence_spans n WHERE n.first_position >
         (SELECT max(first_position) FROM evidence_spans WHERE span <= ?1)) AS next FROM evidence_spans WHERE span <= ?1`,
      Math.floor(query.before / SPAN_MS),
    );
    if (row === undefined || optionalInteger(row, "last") === undefined) return undefined;
    high = Math.min(high, optionalInteger(row, "next") ?? high);
  }
  return low < high ? { low, high } : undefined;
}

const CURSOR = /^e1\.([0-9a-z]{1,11})$/;
const CURSOR_BASE = 36;

export function cursorAt(position: number): string {
  return `e1.${position.toString(CURSOR_BASE)}`;
}

function readCursor(cursor: string): number {
  const [, digits] = CURSOR.exec(cursor) ?? [];
  if (digits === undefined)
    throw new HeddleError("usage.invalid", "cursor: pass the next of an earlier answer as it is");
  return Number.parseInt(digits, CURSOR_BASE);
}

function typesOf(asked: readonly string[]): readonly string[] {
  const known = Object.keys(EVENT_VERSIONS);
  return asked.flatMap((type) =>
    type.endsWith(".*") ? known.filter((name) => name.startsWith(type.slice(0, -1))) : [type],
  );
}

function wordsIn(asked: string): readonly string[] {
  const words = wordsOf(asked);
  if (words.length > 0) return words;
  throw new HeddleError("usage.invalid", "text: there is no word in it; words are of letters, digits and symbols");
}

const MAX_FORKS = 10_000;

function* forksOf(threadId: string): Asking<readonly string[]> {
  const sql = "SELECT id FROM threads WHERE forked_from = ? LIMIT ?";
  return yield* rowsAs(sql, (row) => text(row, "id"), threadId, MAX_FORKS);
}

function list<T>(values: T | readonly T[]): readonly T[] {
  return isList(values) ? values : [values];
}

function isList<T>(values: T | readonly T[]): values is readonly T[] {
  return Array.isArray(values);
}
