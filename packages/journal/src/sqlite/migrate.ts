/**
 * Brings a store to the current schema. `PRAGMA user_version` has its version; released steps never change. All steps
 * run in one transaction, so that a crash leaves the old schema or the new one; before them the database is copied.
 */
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { untilFree, type Connection } from "./driver.ts";
import { dropOlderCopies, keepCopy } from "./migration-copy.ts";
import { EVENTS_TABLE } from "./events-table.ts";
import { LEASE_OWNERS_TABLE } from "./leases.ts";
import { loadProjections } from "../projections/projections.ts";
import { createProjections, rebuildAll } from "./project.ts";
import { integer } from "../record/rows.ts";

/**
 * The first makes the tables that only grow; the others change projections, which are rebuilt after the last step: 2
 * names, previews and forks of threads, 3 moved and ephemeral ones, 4 archived ones, 5 settings and queued input, 6 git
 * info, 7 tasks and notifications, 8 sinks, 9 the ledger, 10 marks and the folders of tasks, 11 leases (whose owners
 * are in a table that is not a projection), 12 marks of tasks, 13 providers of threads, 14 envelopes of threads, evidence
 * and child threads, 15 messages and names of agents, 16 usage of threads at the ends of their turns, and marks of queues,
 * 17 running items and open questions, and why and since when tasks are paused or stalled.
 */
const MIGRATIONS: readonly string[] = [
  EVENTS_TABLE,
  ...Array.from({ length: 9 }, () => ""),
  LEASE_OWNERS_TABLE,
  "",
  "",
  "",
  "",
  "",
  "",
];
const NEWEST = MIGRATIONS.length;

/** "hedl": distinguishes a Heddle store from any other SQLite file. */
const APPLICATION_ID = 0x6865646c;

export function schemaVersion(connection: Connection): number {
  return integer(connection.get("PRAGMA user_version"), "user_version");
}

export function isCurrent(version: number, file: string): boolean {
  if (version > NEWEST) {
    throw new HeddleError(
      "store.newer",
      `${file} was written by a newer Heddle (schema ${version}, this one knows ${NEWEST}); update Heddle`,
      { details: { path: file, found: version, known: NEWEST } },
    );
  }
  return version === NEWEST;
}

/** The file has tables of another program. Tables first: Heddle's own appear together with its id. */
export function isForeign(connection: Connection): boolean {
  if (connection.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined) return false;
  return integer(connection.get("PRAGMA application_id"), "application_id") !== APPLICATION_ID;
}

/**
 * Several processes may open a new home at once: the first through the lock migrates, the others find it done.
 * `mayCreate` is called inside the lock, when nobody else can be creating the store.
 */
export async function migrate(connection: Connection, file: string, mayCreate: () => boolean): Promise<void> {
  // Only for an empty file; any other would be written to, whether it is whole or not.
  await untilFree(() => {
    if (integer(connection.get("PRAGMA page_count"), "page_count") === 0)
      connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
  });
  await untilFree(() => connection.exec("PRAGMA journal_mode = WAL"));
  if ((await untilFree(() => schemaVersion(connection))) > 0) await loadProjections();
  const migratedFrom = await untilFree(() =>
    connection.transaction("full", () => {
      const from = schemaVersion(connection);
      if (isCurrent(from, file)) return undefined;
      if (from === 0 && !mayCreate()) return undefined;
      if (from > 0) keepCopy(connection, file, from);
      for (const sql of MIGRATIONS.slice(from)) connection.exec(sql);
      createProjections(connection);
      if (from > 0) rebuildAll(connection);
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      connection.exec(`PRAGMA user_version = ${NEWEST}`);
      failpoint("journal.migrate.before-commit");
      return from;
    }),
  );
  if (migratedFrom !== undefined && migratedFrom > 0) dropOlderCopies(file, migratedFrom);
}

export function createSchema(connection: Connection): void {
  for (const sql of MIGRATIONS) connection.exec(sql);
  createProjections(connection);
}
