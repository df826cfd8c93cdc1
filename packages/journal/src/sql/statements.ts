/** Looks of projections and row changes as statements. */
import type { Cells, Look, RowChange } from "../projections/changes.ts";
import type { Statement } from "./ask.ts";

export function lookAt({ table, columns, where }: Look): Statement {
  return { sql: `SELECT ${columns.join(", ")} FROM ${table} WHERE ${equal(where)}`, values: Object.values(where) };
}

/** Words are kept as each store likes. */
export function statementOf(change: Exclude<RowChange, { kind: "words" }>): Statement {
  const { table } = change;
  switch (change.kind) {
    case "insert":
    case "put":
    case "add": {
      const { key, values } = change;
      const columns = [...Object.keys(key), ...Object.keys(values)];
      const into = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
      const sql = `${into} ON CONFLICT (${Object.keys(key).join(", ")}) DO ${WHEN_THERE[change.kind](table, values)}`;
      return { sql, values: [...Object.values(key), ...Object.values(values)] };
    }
    case "update": {
      const { where, set = {}, add = {}, fill = {} } = change;
      const parts = [
        ...Object.keys(set).map((column) => `${column} = ?`),
        ...Object.keys(add).map((column) => `${column} = ${column} + ?`),
        ...Object.keys(fill).map((column) => `${column} = coalesce(${column}, ?)`),
      ];
      const sql = `UPDATE ${table} SET ${parts.join(", ")} WHERE ${equal(where)}`;
      return { sql, values: [set, add, fill, where].flatMap((cells) => Object.values(cells)) };
    }
    case "delete":
      return { sql: `DELETE FROM ${table} WHERE ${equal(change.where)}`, values: Object.values(change.where) };
  }
}

const WHEN_THERE = {
  insert: () => "NOTHING",
  put: (_table: string, values: Cells) =>
    `UPDATE SET ${Object.keys(values)
      .map((column) => `${column} = excluded.${column}`)
      .join(", ")}`,
  add: (table: string, values: Cells) =>
    `UPDATE SET ${Object.keys(values)
      .map((column) => `${column} = ${table}.${column} + excluded.${column}`)
      .join(", ")}`,
} as const;

function equal(where: Cells): string {
  return Object.keys(where)
    .map((column) => `${column} = ?`)
    .join(" AND ");
}
