/**
 * What an event changes in the query tables, as data that any store can apply. A projection is a pure function: rows
 * that it needs are read first (`needs`).
 */
import type { EventBody, StoredEvent } from "@heddle/protocol";
import type { Row } from "../record/rows.ts";

export type Cells = Readonly<Record<string, string | number | null>>;

export interface Look {
  readonly table: string;
  readonly columns: readonly string[];
  readonly where: Cells;
}

export type RowChange =
  /** A new row; nothing where the key exists. */
  | { readonly kind: "insert"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** Replaces the values of the row with that key. */
  | { readonly kind: "put"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** Added to the row of that key; a new row where there is none. */
  | { readonly kind: "add"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** All matching rows: `set`, `add` to a number, `fill` what is null. */
  | {
      readonly kind: "update";
      readonly table: string;
      readonly where: Cells;
      readonly set?: Cells;
      readonly add?: Cells;
      readonly fill?: Cells;
    }
  | { readonly kind: "delete"; readonly table: string; readonly where: Cells }
  /** Words of an entry, for searches in full text. */
  | { readonly kind: "words"; readonly table: string; readonly position: number; readonly words: readonly string[] };

export type Found = readonly (readonly Row[])[];

export interface Projection {
  readonly table: string;
  /** What a plain run never stores is loaded before the first event of its kind. Absent: everything is there. */
  readonly later?: {
    readonly isMissing: (body: EventBody) => boolean;
    /** Never rejects: what is still missing fails the change. */
    readonly load: () => Promise<void>;
  };
  needs?(event: StoredEvent): readonly Look[];
  changes(event: StoredEvent, found: Found): readonly RowChange[];
}

export const NO_CHANGES: readonly RowChange[] = [];
export const NO_LOOKS: readonly Look[] = [];
