/** Removes entries of the evidence, with their tags, references and words, before the bodies they came from are purged. */
import { entryFacts } from "../projections/evidence-entry.ts";
import type { EntryFacts } from "../projections/item-entry.ts";
import { wordsOf } from "../projections/words.ts";
import { EVENT_COLUMNS, integer, toEvent, type Row } from "../record/rows.ts";
import type { Connection } from "./driver.ts";

const COLUMNS = EVENT_COLUMNS.split(", ")
  .map((name) => `v.${name}`)
  .join(", ");

/** Of one stream, after one version and up to another. */
export function forgetEvidence(
  connection: Connection,
  { stream, after, upTo }: { readonly stream: string; readonly after: number; readonly upTo: number },
): void {
  const rows = connection.all(
    `SELECT ${COLUMNS} FROM events v CROSS JOIN evidence e ON e.position = v.position
     WHERE v.stream = ? AND v.version > ? AND v.version <= ? AND v.body IS NOT NULL`,
    stream,
    after,
    upTo,
  );
  for (const row of rows) forgetEntry(connection, integer(row, "position"), factsOf(row));
}

function forgetEntry(connection: Connection, position: number, facts: EntryFacts | undefined): void {
  connection.run("DELETE FROM evidence WHERE position = ?", position);
  for (const tag of facts?.tags ?? []) {
    connection.run("DELETE FROM evidence_tag WHERE tag = ? AND position = ?", tag, position);
  }
  for (const { type, id } of facts?.refs ?? []) {
    connection.run("DELETE FROM evidence_ref WHERE type = ? AND id = ? AND position = ?", type, id, position);
  }
  if (facts === undefined) return;
  // The index has no texts: it is told which words to remove.
  connection.run(
    "INSERT INTO evidence_words (evidence_words, rowid, words) VALUES ('delete', ?, ?)",
    position,
    wordsOf(facts.text).join(" "),
  );
}

/** undefined: the body was altered, and what was indexed of it is not known; its row is removed all the same. */
function factsOf(row: Row): EntryFacts | undefined {
  try {
    return entryFacts(toEvent(row));
  } catch {
    return undefined;
  }
}

const TABLES = ["evidence", "evidence_tag", "evidence_ref", "evidence_spans", "evidence_state", "evidence_words"];

/** For the copy of an earlier migration: what its entries came from may have had another form. */
export function dropEvidence(connection: Connection): void {
  for (const table of TABLES) connection.exec(`DROP TABLE IF EXISTS ${table}`);
}
