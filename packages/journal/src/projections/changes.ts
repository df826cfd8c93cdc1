/**
 * What an event changes in the tables that answer questions, as data that any store can carry out. A projection is a pure
 * function: what it has to know of the tables it asks for first (`needs`), and tells by that what becomes of them.
 */
import type { StoredEvent } from "@heddle/protocol";
import type { Row } from "../record/rows.ts";

export type Cells = Readonly<Record<string, string | number | null>>;

/** Rows that have these values. */
export interface Look {
  readonly table: string;
  readonly columns: readonly string[];
  readonly where: Cells;
}

export type RowChange =
  /** A new row; nothing where the key is taken. */
  | { readonly kind: "insert"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** The row of that key has these values from now on. */
  | { readonly kind: "put"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** Added to the row of that key; a new row where there is none. */
  | { readonly kind: "add"; readonly table: string; readonly key: Cells; readonly values: Cells }
  /** Every row that has the values of `where`: `set`, `add` to a number, `fill` what is null. */
  | {
      readonly kind: "update";
      readonly table: string;
      readonly where: Cells;
      readonly set?: Cells;
      readonly add?: Cells;
      readonly fill?: Cells;
    }
  | { readonly kind: "delete"; readonly table: string; readonly where: Cells };

/** The rows of each look, in the order of the looks. */
export type Found = readonly (readonly Row[])[];

export interface Projection {
  readonly table: string;
  needs?(event: StoredEvent): readonly Look[];
  changes(event: StoredEvent, found: Found): readonly RowChange[];
}

export const NO_CHANGES: readonly RowChange[] = [];
export const NO_LOOKS: readonly Look[] = [];
