/**
 * Rows that were looked up for several events at once, and what earlier ones of these events have made of them: so a group of
 * events needs one round of look-ups. A look finds exactly what the store would find, if it was among those looked up.
 */
import type { Cells, Look, RowChange } from "../projections/changes.ts";
import type { Row } from "../record/rows.ts";
import { shapeOf } from "./table-shapes.ts";

type Cell = string | number | null;
type Known = Record<string, Cell>;

export interface KnownRows {
  /** Rows of a table, as they are in the store. */
  add(table: string, rows: readonly Row[]): void;
  find(look: Look): readonly Row[];
  apply(change: RowChange): void;
}

export function createKnownRows(): KnownRows {
  const tables = new Map<string, Map<string, Known>>();

  function matching(table: string, where: Cells): Known[] {
    const wanted = Object.entries(where);
    return [...(tables.get(table)?.values() ?? [])].filter((row) =>
      wanted.every(([column, value]) => value !== null && row[column] === value),
    );
  }

  function put({ table, key, values }: Extract<RowChange, { kind: "insert" | "put" | "add" }>, kind: string): void {
    const rows = tables.get(table);
    const known = rows?.get(keyOf(table, key));
    if (known === undefined) {
      rows?.set(keyOf(table, key), { ...shapeOf(table).empty, ...key, ...values });
    } else if (kind === "put") Object.assign(known, values);
    else if (kind === "add") addTo(known, values);
  }

  return {
    add(table, rows) {
      const known = tables.get(table) ?? new Map<string, Known>();
      tables.set(table, known);
      for (const row of rows) {
        const cells = Object.fromEntries(Object.entries(row).map(([column, value]) => [column, toCell(value)]));
        known.set(keyOf(table, cells), cells);
      }
    },
    find: ({ table, where }) => matching(table, where).map((row) => ({ ...row })),
    apply(change) {
      // Nobody looks at a table of which nothing was looked up.
      if (!tables.has(change.table)) return;
      switch (change.kind) {
        case "insert":
        case "put":
        case "add":
          return put(change, change.kind);
        case "update":
          for (const row of matching(change.table, change.where)) {
            addTo(row, change.add ?? {});
            Object.assign(row, change.set ?? {});
            for (const [column, value] of Object.entries(change.fill ?? {})) row[column] ??= value;
          }
          return;
        case "delete":
          for (const row of matching(change.table, change.where))
            tables.get(change.table)?.delete(keyOf(change.table, row));
          return;
        case "words":
      }
    },
  };
}

function addTo(row: Known, values: Cells): void {
  for (const [column, value] of Object.entries(values)) {
    const before = row[column];
    // As in SQL: nothing and something is nothing.
    row[column] = typeof before === "number" && typeof value === "number" ? before + value : null;
  }
}

function keyOf(table: string, cells: Cells): string {
  return JSON.stringify(shapeOf(table).key.map((column) => cells[column]));
}

function toCell(value: unknown): Cell {
  return typeof value === "string" || typeof value === "number" ? value : null;
}
