/** What evidence asks of any store: events as they are stored, by their places. */
import type { Damage } from "../journal.ts";
import type { Row } from "../record/rows.ts";

export interface RowRange {
  /** The position before the first one. */
  readonly after: number;
  /** Absent: to the end, however far that has come by then. */
  readonly upTo?: number;
  /** Of this stream alone, in the order of its versions. */
  readonly stream?: string | undefined;
}

export interface StoredRows {
  lastPosition(): Promise<number>;
  lastVersion(stream: string): Promise<number>;
  /** Whole rows, in order, at most so many. */
  page(range: RowRange, limit: number): Promise<readonly Row[]>;
  /** Whole rows of a stream, as many as are wise to hold at once. */
  pageOf(range: { readonly stream: string; readonly after: number; readonly upTo: number }): Promise<readonly Row[]>;
  /** Position, stream, version, type, time and hash of one event. */
  at(position: number): Promise<Row | undefined>;
  of(stream: string, version: number): Promise<Row | undefined>;
  /** The newest of a stream, at or below a position. */
  lastOf(stream: string, position?: number): Promise<Row | undefined>;
  /** What the failure of a read says of the store; thrown again when it says nothing. */
  damageOf(error: unknown): Damage;
}
