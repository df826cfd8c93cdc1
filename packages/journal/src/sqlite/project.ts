/** Applies in SQLite what events change in the query tables. */
import type { StoredEvent } from "@heddle/protocol";
import type { Cells, Found, Look, RowChange } from "../projections/changes.ts";
import { PROJECTIONS } from "../projections/projections.ts";
import { EVENT_COLUMNS, toEvent } from "../record/rows.ts";
import type { Connection } from "./driver.ts";
import { PROJECTION_TABLES, WORDS_TABLE_SQL } from "./projection-tables.ts";

const NOTHING: Found = [];

/** Inside the transaction that stores the event. */
export function project(connection: Connection, event: StoredEvent): void {
  for (const projection of PROJECTIONS) {
    const looks = projection.needs?.(event) ?? [];
    const found = looks.length === 0 ? NOTHING : looks.map((look) => find(connection, look));
    for (const change of projection.changes(event, found)) carryOut(connection, change);
  }
}

export function createProjections(connection: Connection): void {
  for (const { table } of PROJECTIONS) connection.exec(`DROP TABLE IF EXISTS ${table}`);
  connection.exec(PROJECTION_TABLES);
  connection.exec(WORDS_TABLE_SQL);
}

/** Inside a transaction: readers see the old tables until the new ones are complete. */
export function rebuildAll(connection: Connection): void {
  createProjections(connection);
  const rows = connection.iterate(`SELECT ${EVENT_COLUMNS} FROM events WHERE body IS NOT NULL ORDER BY position`);
  for (const row of rows) project(connection, toEvent(row));
}

function find(connection: Connection, { table, columns, where }: Look): Found[number] {
  const sql = `SELECT ${columns.join(", ")} FROM ${table} WHERE ${equal(where)}`;
  return connection.all(sql, ...Object.values(where));
}

function carryOut(connection: Connection, change: RowChange): void {
  const { table } = change;
  switch (change.kind) {
    case "insert":
    case "put":
    case "add": {
      const { key, values } = change;
      const columns = [...Object.keys(key), ...Object.keys(values)];
      const into = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
      const sql = `${into} ON CONFLICT (${Object.keys(key).join(", ")}) DO ${WHEN_THERE[change.kind](table, values)}`;
      connection.run(sql, ...Object.values(key), ...Object.values(values));
      return;
    }
    case "update": {
      const { where, set = {}, add = {}, fill = {} } = change;
      const parts = [
        ...Object.keys(set).map((column) => `${column} = ?`),
        ...Object.keys(add).map((column) => `${column} = ${column} + ?`),
        ...Object.keys(fill).map((column) => `${column} = coalesce(${column}, ?)`),
      ];
      const sql = `UPDATE ${table} SET ${parts.join(", ")} WHERE ${equal(where)}`;
      connection.run(sql, ...[set, add, fill, where].flatMap((cells) => Object.values(cells)));
      return;
    }
    case "words":
      connection.run(`INSERT INTO ${table} (rowid, words) VALUES (?, ?)`, change.position, change.words.join(" "));
      return;
    case "delete":
      connection.run(`DELETE FROM ${table} WHERE ${equal(change.where)}`, ...Object.values(change.where));
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
