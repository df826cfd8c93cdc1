/**
 * Questions in SQL as data: what is asked, and what is made of the rows. Who carries them out decides whether that is at once
 * (SQLite) or over a network (Postgres), so each question is written down once.
 */
import type { Row } from "../record/rows.ts";

export type Value = string | number | null;

export interface Statement {
  /** Parameters are `?`, or `?1`, `?2`, …; never both. */
  readonly sql: string;
  readonly values: readonly Value[];
}

export type Asking<T> = Generator<Statement, T, readonly Row[]>;

/** Carries a question out; called again where the store was busy. */
export type Ask = <T>(asking: () => Asking<T>) => Promise<T>;

export function* all(sql: string, ...values: Value[]): Asking<readonly Row[]> {
  return yield { sql, values };
}

export function* get(sql: string, ...values: Value[]): Asking<Row | undefined> {
  return (yield { sql, values })[0];
}

/** One statement whose rows are read one by one. */
export function* rowsAs<T>(sql: string, read: (row: Row) => T, ...values: Value[]): Asking<readonly T[]> {
  return (yield { sql, values }).map(read);
}

/** No limit, in every dialect. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER;
