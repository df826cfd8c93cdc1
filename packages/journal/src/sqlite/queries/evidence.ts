/** Questions to the evidence, answered in steps between which others work, until a deadline. */
import { clockMs, EvidenceQuery, HeddleError, PLAIN, reasonOf, type EvidenceEntry } from "@heddle/protocol";
import type { TailOptions } from "../../journal.ts";
import type { EvidenceQueries, EvidenceRecord, QueryLimits } from "../../queries/evidence.ts";
import { breathe } from "../../record/breathe.ts";
import { integer, text } from "../../record/rows.ts";
import type { Connection, Read, Value } from "../driver.ts";
import { ancestorsOf, descendantsOf, hasWords, idsBeginningWith, readEntry, readRecord } from "./evidence-entries.ts";
import { cursorAt, DEFAULT_LIMIT, planOf, type Plan, type Range } from "./evidence-plan.ts";
import { counting, FILTERS, walk } from "./evidence-sql.ts";

const DEADLINE_MS = 10_000;
/** Positions of the first step; it grows while steps are fast and shrinks when they are not. */
const FIRST_WIDTH = 20_000;
const FAST_MS = 5;
const SLOW_MS = 25;
const GROWTH = 4;
/** Entries whose words are compared at a time: a few milliseconds. */
const LOOKED_AT = 64;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
/** Of a subscription, read at once. */
const BATCH = 256;

export interface EvidenceStore {
  readonly read: Read;
  tail(options: TailOptions): AsyncIterable<{ readonly position: number }>;
  position(): Promise<number>;
}

export function evidenceQueries(store: EvidenceStore): EvidenceQueries {
  const { read } = store;
  return {
    async query(given, limits = {}) {
      const query = parse(given);
      const { limit = DEFAULT_LIMIT } = query;
      const watch = watchOf(limits);
      const plan = await read((connection) => planOf(connection, query, "list"));
      const positions = plan === undefined ? [] : await find(read, plan, { query, limit, watch });
      const entries = await entriesAt(read, positions);
      const last = positions.at(-1);
      return positions.length < limit || last === undefined ? { entries } : { entries, next: cursorAt(last) };
    },
    async count(given, limits = {}) {
      const { cursor: _cursor, ...query } = parse(given);
      const watch = watchOf(limits);
      const plan = await read((connection) => planOf(connection, query, "count"));
      if (plan === undefined) return 0;
      if (plan.sought.length > 0) return (await find(read, plan, { query, limit: Infinity, watch })).length;
      let sum = 0;
      await inSteps(plan, { isNewestFirst: true, watch }, async (range) => {
        const values = valuesOf(plan, range, 0);
        sum += await read((connection) =>
          plan.keys.reduce(
            (all, key) => all + integer(connection.get(counting(plan.driver), ...values, ...key), "found"),
            0,
          ),
        );
        return true;
      });
      return sum;
    },
    get: (id) => read((connection): EvidenceRecord | undefined => readRecord(connection, id)),
    beginningWith: (prefix, { limit }) => read((connection) => idsBeginningWith(connection, prefix, limit)),
    ancestors: (id, limit) => read((connection) => ancestorsOf(connection, id, limit)),
    descendants: (id, limit) => read((connection) => descendantsOf(connection, id, limit)),
    forks: (id) =>
      read((connection) => {
        const { stream, version } = requireEntry(readRecord(connection, id), id);
        const rows = connection.all(
          `SELECT id, forked_version FROM threads
           WHERE forked_from = ? AND forked_version >= ? AND deleted_at IS NULL ORDER BY last_position LIMIT 1000`,
          stream,
          version,
        );
        return rows.map((row) => ({ threadId: text(row, "id"), version: integer(row, "forked_version") }));
      }),
    subscribe: (given, options) => subscribe(store, given, options),
  };
}

async function* subscribe(
  store: EvidenceStore,
  given: EvidenceQuery,
  { after, signal }: { readonly after?: number; readonly signal: AbortSignal },
): AsyncIterable<EvidenceEntry> {
  const { cursor: _cursor, limit: _limit, ...filters } = parse(given);
  const query: EvidenceQuery = { ...filters, order: "oldest" };
  let seen = after ?? (await store.position());
  // What is committed between the first page and the first wait is in the tail.
  const tail = store.tail({ after: seen, signal })[Symbol.asyncIterator]();
  while (!signal.aborted) {
    const upTo = await store.position();
    for (let isMore = seen < upTo; isMore;) {
      const plan = await store.read((connection) => planOf(connection, { ...query, cursor: cursorAt(seen) }, "list"));
      const bounded = plan && { ...plan, high: Math.min(plan.high, upTo + 1) };
      const watch = watchOf({ signal });
      const positions = bounded === undefined ? [] : await find(store.read, bounded, { query, limit: BATCH, watch });
      for (const entry of await entriesAt(store.read, positions)) {
        if (signal.aborted) return;
        yield entry;
      }
      isMore = positions.length === BATCH;
      seen = isMore ? (positions.at(-1) ?? upTo) : upTo;
    }
    for (let isOld = true; isOld;) {
      const { done, value } = await tail.next();
      if (done === true) return;
      isOld = value.position <= seen;
    }
  }
}

function parse(given: EvidenceQuery): EvidenceQuery {
  const parsed = EvidenceQuery.safeParse(given, PLAIN);
  if (parsed.success) return parsed.data;
  throw new HeddleError("usage.invalid", `evidence query: ${reasonOf(parsed.error)}`, { cause: parsed.error });
}

function requireEntry<T>(entry: T | undefined, id: string): T {
  if (entry !== undefined) return entry;
  throw new HeddleError("evidence.not-found", `there is no entry ${id} in the evidence`, { details: { id } });
}

type Watch = () => void;

/** Throws when nobody waits any more, or for too long: half an answer would look like a whole one. */
function watchOf({ signal, timeoutMs = DEADLINE_MS }: QueryLimits): Watch {
  const deadline = clockMs() + timeoutMs;
  return () => {
    signal?.throwIfAborted();
    if (clockMs() < deadline) return;
    const message = `the query was not answered in ${timeoutMs} ms; narrow it by thread, time, type or subject`;
    throw new HeddleError("evidence.timeout", message, { details: { timeoutMs } });
  };
}

interface Finding {
  readonly query: EvidenceQuery;
  readonly limit: number;
  readonly watch: Watch;
}

async function find(read: Read, plan: Plan, { query, limit, watch }: Finding): Promise<readonly number[]> {
  const isNewestFirst = query.order !== "oldest";
  const sql = walk(plan.driver, isNewestFirst ? "DESC" : "ASC");
  const found: number[] = [];
  /** The first of a range, at most so many. */
  const first = (connection: Connection, range: Range, most: number): readonly number[] => {
    const values = valuesOf(plan, range, most);
    const positions = plan.keys.flatMap((key) =>
      connection.all(sql, ...values, ...key).map((row) => integer(row, "position")),
    );
    return [...new Set(positions)].toSorted((a, b) => (isNewestFirst ? b - a : a - b)).slice(0, most);
  };
  await inSteps(plan, { isNewestFirst, watch }, async (range) => {
    if (plan.sought.length === 0) {
      found.push(...(await read((connection) => first(connection, range, Math.min(limit - found.length, NO_LIMIT)))));
      return found.length < limit;
    }
    for (let rest = range; ;) {
      const here = rest;
      const looked = await read((connection) => {
        const positions = first(connection, here, LOOKED_AT);
        return positions.map((position) => ({ position, hasAll: hasWords(connection, position, plan.sought) }));
      });
      found.push(
        ...looked
          .filter(({ hasAll }) => hasAll)
          .map(({ position }) => position)
          .slice(0, limit - found.length),
      );
      const last = looked.at(-1)?.position;
      if (found.length >= limit) return false;
      if (last === undefined || looked.length < LOOKED_AT) return true;
      rest = isNewestFirst ? { ...rest, high: last } : { ...rest, low: last + 1 };
      watch();
      await breathe();
    }
  });
  return found;
}

function valuesOf({ filters }: Plan, { high, low }: Range, limit: number): Value[] {
  return [high, low, limit, ...FILTERS.map((name) => filters[name] ?? null)];
}

/** Goes through a range in steps that others can wait for; the step says whether to go on. */
async function inSteps(
  { low, high }: Range,
  { isNewestFirst, watch }: { readonly isNewestFirst: boolean; readonly watch: Watch },
  step: (range: Range) => Promise<boolean>,
): Promise<void> {
  let width = FIRST_WIDTH;
  let [from, to] = [low, high];
  while (from < to) {
    watch();
    const startedAt = clockMs();
    const edge = isNewestFirst ? Math.max(from, to - width) : Math.min(to, from + width);
    if (!(await step(isNewestFirst ? { low: edge, high: to } : { low: from, high: edge }))) return;
    if (isNewestFirst) to = edge;
    else from = edge;
    const took = clockMs() - startedAt;
    if (took < FAST_MS) width *= GROWTH;
    else if (took > SLOW_MS) width = Math.max(1, Math.ceil(width / GROWTH));
    if (from < to) await breathe();
  }
}

async function entriesAt(read: Read, positions: readonly number[]): Promise<readonly EvidenceEntry[]> {
  return read((connection) => positions.flatMap((position) => readEntry(connection, position) ?? []));
}
