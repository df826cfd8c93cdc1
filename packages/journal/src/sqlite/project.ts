/** Applies in SQLite what events change in the query tables. */
import type { StoredEvent } from "@heddle/protocol";
import type { Found, RowChange } from "../projections/changes.ts";
import { PROJECTIONS } from "../projections/projections.ts";
import { EVENT_COLUMNS, toEvent } from "../record/rows.ts";
import { PROJECTION_TABLES } from "../sql/projection-tables.ts";
import { lookAt, statementOf } from "../sql/statements.ts";
import type { Connection } from "./driver.ts";

/**
 * Words of entries, found newest first. Only which entry has a word is kept: positions in the text and the text itself would
 * make an append dearer. What is purged is taken out of the pages at once.
 */
const WORDS_TABLE_SQL = `
DROP TABLE IF EXISTS evidence_words;
CREATE VIRTUAL TABLE evidence_words USING fts5 (words, content = '', detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO evidence_words (evidence_words, rank) VALUES ('secure-delete', 1);
`;

const NOTHING: Found = [];

/** Inside the transaction that stores the event. */
export function project(connection: Connection, event: StoredEvent): void {
  for (const projection of PROJECTIONS) {
    const looks = projection.needs?.(event) ?? [];
    const found =
      looks.length === 0
        ? NOTHING
        : looks.map((look) => {
            const { sql, values } = lookAt(look);
            return connection.all(sql, ...values);
          });
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

function carryOut(connection: Connection, change: RowChange): void {
  if (change.kind === "words") {
    const { table, position, words } = change;
    connection.run(`INSERT INTO ${table} (rowid, words) VALUES (?, ?)`, position, words.join(" "));
    return;
  }
  const { sql, values } = statementOf(change);
  connection.run(sql, ...values);
}
