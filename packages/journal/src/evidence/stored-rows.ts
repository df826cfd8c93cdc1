/** What evidence needs of any store: rows of events by position or version. */
import type { Damage } from "../journal.ts";
import type { Checkpoint } from "./checkpoints.ts";
import type { Verifier } from "./keys.ts";
import type { Row } from "../record/rows.ts";

/** Of versions where a stream is named, of positions otherwise. */
export interface RowRange {
  readonly after: number;
  /** Absent: to the end at the time of reading. */
  readonly upTo?: number;
  readonly stream?: string | undefined;
}

export interface SharedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** undefined: of a key that the store does not know. */
  readonly verifier: Verifier | undefined;
}

export interface StoredRows {
  lastPosition(): Promise<number>;
  lastVersion(stream: string): Promise<number>;
  /** Whole rows, in order. */
  page(range: RowRange, limit: number): Promise<readonly Row[]>;
  /** Whole rows of a stream, as many as are sensible to hold at once. */
  pageOf(range: { readonly stream: string; readonly after: number; readonly upTo: number }): Promise<readonly Row[]>;
  at(position: number): Promise<Row | undefined>;
  of(stream: string, version: number): Promise<Row | undefined>;
  lastOf(stream: string, position?: number): Promise<Row | undefined>;
  /** Where several machines share the store: what each of them has signed, with its key. */
  readonly shared?: (stream: string | undefined) => AsyncIterable<SharedCheckpoint>;
  /** The damage that a failed read shows; throws the error again when it shows none. */
  damageOf(error: unknown): Damage;
}
