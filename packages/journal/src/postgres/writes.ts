/** What a group of events looks up and writes, in as few statements as keep its meaning. */
import type { Cells, Look, RowChange } from "../projections/changes.ts";
import type { ChainedEvent } from "../record/prepare.ts";
import { EVENT_COLUMNS } from "../record/rows.ts";
import type { Statement, Value } from "../sql/ask.ts";
import { statementOf } from "../sql/statements.ts";

/** Rows of one statement: each number of them is a statement of its own, and those are kept prepared. */
const MAX_ROWS = 32;

export interface Lookup {
  readonly table: string;
  readonly statement: Statement;
}

/** One statement for each table and each set of columns that is asked by; whole rows, because later events may ask for others. */
export function lookups(looks: readonly Look[]): readonly Lookup[] {
  const grouped = Map.groupBy(looks, ({ table, where }) => `${table} ${Object.keys(where).join(" ")}`);
  return [...grouped.values()].flatMap((same) => {
    const [first] = same;
    return first === undefined ? [] : [{ table: first.table, statement: lookup(first, distinct(same)) }];
  });
}

function lookup({ table, where }: Look, asked: readonly Cells[]): Statement {
  const columns = Object.keys(where);
  const lists = columns.map((column) => `?::${typeof where[column] === "number" ? "bigint" : "text"}[]`);
  const values = columns.map((column) => listOf(asked.map((cells) => cells[column] ?? null)));
  return {
    sql: `SELECT * FROM ${table} WHERE (${columns.join(", ")}) IN (SELECT * FROM unnest(${lists.join(", ")}))`,
    values,
  };
}

function distinct(looks: readonly Look[]): readonly Cells[] {
  return [...new Map(looks.map(({ where }) => [JSON.stringify(Object.values(where)), where])).values()];
}

/** As Postgres reads an array. A NUL is in no row. */
function listOf(values: readonly Value[]): Value {
  const texts = values.map((value) => (value === null ? "NULL" : `"${plain(value).replaceAll(/["\\]/g, "\\$&")}"`));
  return `{${texts.join(",")}}`;
}

export function insertsOf(
  inserted: readonly { readonly position: number; readonly chained: ChainedEvent }[],
): readonly Statement[] {
  const rows = inserted.map(({ position, chained }): readonly Value[] => {
    const { event, stored, bodyHash, prevHash } = chained;
    const { stream, version, id, at, author, body, hash } = event;
    return [position, stream, version, id, at, author, body.type, body.v, stored, bodyHash, prevHash, hash];
  });
  return chunks(rows).map((some) => ({
    sql: `INSERT INTO events (${EVENT_COLUMNS}) VALUES ${some.map((row) => placesFor(row)).join(", ")}`,
    values: some.flat(),
  }));
}

/** In their order within each table; tables do not know of each other. */
export function statementsOf(changes: readonly RowChange[]): readonly Statement[] {
  const tables = Map.groupBy(changes, ({ table }) => table);
  return [...tables.values()].flatMap((ofTable) => runsOf(ofTable).flatMap((run) => statementsOfRun(run)));
}

type Run = readonly [RowChange, ...RowChange[]];

/** Rows that are inserted one after the other, in the same columns, are one statement. */
function runsOf(changes: readonly RowChange[]): readonly Run[] {
  const runs: [RowChange, ...RowChange[]][] = [];
  let last = "";
  for (const change of changes) {
    const shape = change.kind === "insert" ? Object.keys({ ...change.key, ...change.values }).join() : change.kind;
    const run = runs.at(-1);
    const isSame = (change.kind === "insert" || change.kind === "words") && shape === last;
    if (run !== undefined && isSame && run.length < MAX_ROWS) run.push(change);
    else runs.push([change]);
    last = shape;
  }
  return runs;
}

function statementsOfRun(run: Run): readonly Statement[] {
  const [first] = run;
  if (first.kind === "words") {
    const rows = run.flatMap((change) => (change.kind === "words" ? [[change.position, listOf(change.words)]] : []));
    const places = rows.map(() => "(?, ?::text[])").join(", ");
    return [{ sql: `INSERT INTO ${first.table} (position, words) VALUES ${places}`, values: rows.flat() }];
  }
  if (run.length === 1) return [cleaned(statementOf(first))];
  const rows = run.flatMap((change) =>
    change.kind === "insert" ? [[...Object.values(change.key), ...Object.values(change.values)]] : [],
  );
  const { sql } = statementOf(first);
  const places = `VALUES ${rows.map((row) => placesFor(row)).join(", ")}`;
  return [cleaned({ sql: sql.replace(/VALUES \([^)]*\)/, places), values: rows.flat() })];
}

function placesFor(row: readonly Value[]): string {
  return `(${row.map(() => "?").join(", ")})`;
}

function chunks<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / MAX_ROWS) }, (_, index) =>
    all.slice(index * MAX_ROWS, (index + 1) * MAX_ROWS),
  );
}

function cleaned({ sql, values }: Statement): Statement {
  return { sql, values: values.map((value) => (typeof value === "string" ? plain(value) : value)) };
}

/** Postgres has no text with a NUL in it. What an event says is kept in its body, where a NUL is written out. */
function plain(value: string | number): string {
  return String(value).replaceAll("\0", "\uFFFD");
}
