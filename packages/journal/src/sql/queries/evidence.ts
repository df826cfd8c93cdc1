/** Questions to the evidence, answered in steps between which others work, until a deadline. */
import { clockMs, EvidenceQuery, HeddleError, PLAIN, reasonOf, type EvidenceEntry } from "@heddle/protocol";
import type { TailOptions } from "../../journal.ts";
import type { EvidenceQueries, EvidenceRecord, QueryLimits } from "../../queries/evidence.ts";
import { breathe } from "../../record/breathe.ts";
import { integer, text } from "../../record/rows.ts";
import { get, NO_LIMIT, rowsAs, type Ask, type Asking, type Value } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import {
  ancestorsOf,
  descendantsOf,
  havingWords,
  idsBeginningWith,
  readEntries,
  readRecord,
} from "./evidence-entries.ts";
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
/** Of a subscription, read at once. */
const BATCH = 256;

export interface EvidenceStore {
  readonly ask: Ask;
  readonly dialect: Dialect;
  tail(options: TailOptions): AsyncIterable<{ readonly position: number }>;
  position(): Promise<number>;
}

export function evidenceQueries(store: EvidenceStore): EvidenceQueries {
  const { ask, dialect } = store;
  return {
    async query(given, limits = {}) {
      const query = parse(given);
      const { limit = DEFAULT_LIMIT } = query;
      const watch = watchOf(limits);
      const plan = await ask(() => planOf(query, "list", dialect));
      const positions = plan === undefined ? [] : await find(store, plan, { query, limit, watch });
      const entries = await ask(() => readEntries(positions, dialect));
      const last = positions.at(-1);
      return positions.length < limit || last === undefined ? { entries } : { entries, next: cursorAt(last) };
    },
    async count(given, limits = {}) {
      const { cursor: _cursor, ...query } = parse(given);
      const watch = watchOf(limits);
      const plan = await ask(() => planOf(query, "count", dialect));
      if (plan === undefined) return 0;
      if (plan.sought.length > 0) return (await find(store, plan, { query, limit: Infinity, watch })).length;
      let sum = 0;
      await inSteps(plan, { isNewestFirst: true, watch }, async (range) => {
        const values = valuesOf(plan, range, 0);
        sum += await ask(function* () {
          let here = 0;
          for (const key of plan.keys)
            here += integer(yield* get(counting(plan.driver, dialect), ...values, ...key), "found");
          return here;
        });
        return true;
      });
      return sum;
    },
    get: (id) => ask((): Asking<EvidenceRecord | undefined> => readRecord(id, dialect)),
    beginningWith: (prefix, { limit }) => ask(() => idsBeginningWith(prefix, limit, dialect)),
    ancestors: (id, limit) => ask(() => ancestorsOf(id, { limit, dialect })),
    descendants: (id, limit) => ask(() => descendantsOf(id, { limit, dialect })),
    forks: (id) =>
      ask(function* () {
        const { stream, version } = requireEntry(yield* readRecord(id, dialect), id);
        return yield* rowsAs(
          `SELECT id, forked_version FROM threads
           WHERE forked_from = ? AND forked_version >= ? AND deleted_at IS NULL ORDER BY last_position LIMIT 1000`,
          (row) => ({ threadId: text(row, "id"), version: integer(row, "forked_version") }),
          stream,
          version,
        );
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
      const plan = await store.ask(() => planOf({ ...query, cursor: cursorAt(seen) }, "list", store.dialect));
      const bounded = plan && { ...plan, high: Math.min(plan.high, upTo + 1) };
      const watch = watchOf({ signal });
      const positions = bounded === undefined ? [] : await find(store, bounded, { query, limit: BATCH, watch });
      for (const entry of await store.ask(() => readEntries(positions, store.dialect))) {
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

async function find(
  { ask, dialect }: Pick<EvidenceStore, "ask" | "dialect">,
  plan: Plan,
  { query, limit, watch }: Finding,
): Promise<readonly number[]> {
  const isNewestFirst = query.order !== "oldest";
  const sql = walk(plan.driver, isNewestFirst ? "DESC" : "ASC", dialect);
  const found: number[] = [];
  /** The first of a range, at most so many. */
  function* first(range: Range, most: number): Asking<readonly number[]> {
    const values = valuesOf(plan, range, most);
    const positions = new Set<number>();
    for (const key of plan.keys)
      for (const position of yield* rowsAs(sql, (row) => integer(row, "position"), ...values, ...key))
        positions.add(position);
    return [...positions].toSorted((a, b) => (isNewestFirst ? b - a : a - b)).slice(0, most);
  }
  await inSteps(plan, { isNewestFirst, watch }, async (range) => {
    if (plan.sought.length === 0) {
      found.push(...(await ask(() => first(range, Math.min(limit - found.length, NO_LIMIT)))));
      return found.length < limit;
    }
    for (let rest = range; ;) {
      const here = rest;
      const looked = await ask(function* () {
        const positions = yield* first(here, LOOKED_AT);
        return { positions, having: yield* havingWords(positions, plan.sought, dialect) };
      });
      found.push(...looked.having.slice(0, limit - found.length));
      const last = looked.positions.at(-1);
      if (found.length >= limit) return false;
      if (last === undefined || looked.positions.length < LOOKED_AT) return true;
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
