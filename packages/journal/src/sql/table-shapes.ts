/** What the tables of the projections say of themselves: the columns of their keys, and what stands where nothing was set. */
import type { Cells } from "../projections/changes.ts";
import { PROJECTION_TABLES } from "./projection-tables.ts";

export interface TableShape {
  readonly key: readonly string[];
  /** Of every column. */
  readonly empty: Cells;
}

let shapes: ReadonlyMap<string, TableShape> | undefined;

export function shapeOf(table: string): TableShape {
  shapes ??= new Map([...PROJECTION_TABLES.matchAll(/CREATE TABLE (\w+) \(\n([^;]*)\n\)/g)].map(toShape));
  const shape = shapes.get(table);
  if (shape === undefined) throw new TypeError(`${table} is not the table of a projection`);
  return shape;
}

function toShape([, table = "", text = ""]: RegExpExecArray): readonly [string, TableShape] {
  const empty: Record<string, string | number | null> = {};
  let key: readonly string[] = [];
  for (const line of text.split("\n")) {
    const together = /^ {2}PRIMARY KEY \((.*)\)/.exec(line)?.[1];
    const [, column, rest = ""] = /^ {2}(\w+) (.*)$/.exec(line) ?? [];
    if (together !== undefined) key = together.split(", ");
    else if (column !== undefined) {
      if (rest.includes("PRIMARY KEY")) key = [column];
      empty[column] = rest.includes("DEFAULT 0") ? 0 : null;
    }
  }
  return [table, { key, empty }];
}
