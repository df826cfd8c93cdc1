/**
 * Brings a store to today's schema. `PRAGMA user_version` says where it is; the steps are numbered files that never
 * change once released. All steps run in one transaction, so a crash leaves the old schema or the new one; before
 * the first of them a copy of the database is put aside.
 */
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { untilFree, type Connection } from "./driver.ts";
import { dropOlderCopies, keepCopy } from "./migration-copy.ts";
import { events } from "./migrations/0001-events.ts";
import { threads } from "./migrations/0002-threads.ts";
import { movedAndEphemeral } from "./migrations/0003-moved-and-ephemeral.ts";
import { archived } from "./migrations/0004-archived.ts";
import { settingsAndQueue } from "./migrations/0005-settings-and-queue.ts";
import { gitInfo } from "./migrations/0006-git-info.ts";
import { tasks } from "./migrations/0007-tasks.ts";
import { sinks } from "./migrations/0008-sinks.ts";
import { usage } from "./migrations/0009-usage.ts";
import { createProjections, rebuildAll } from "./projections/projections.ts";
import { integer } from "./rows.ts";

const MIGRATIONS: readonly string[] = [
  events,
  threads,
  movedAndEphemeral,
  archived,
  settingsAndQueue,
  gitInfo,
  tasks,
  sinks,
  usage,
];
const NEWEST = MIGRATIONS.length;

/** "hedl": tells a Heddle store from any other SQLite file. */
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

/** True when the file holds tables of another program. Tables first: Heddle's own appear together with its id. */
export function isForeign(connection: Connection): boolean {
  if (connection.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined) return false;
  return integer(connection.get("PRAGMA application_id"), "application_id") !== APPLICATION_ID;
}

/**
 * Several processes may open a new home at once: the first through the lock migrates, the others find it done.
 * `mayCreate` is asked inside the lock, when nobody else can be creating the store.
 */
export async function migrate(connection: Connection, file: string, mayCreate: () => boolean): Promise<void> {
  // Only an empty file can be told; any other would be written to, whether it is whole or not.
  await untilFree(() => {
    if (integer(connection.get("PRAGMA page_count"), "page_count") === 0)
      connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
  });
  await untilFree(() => connection.exec("PRAGMA journal_mode = WAL"));
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

/** The tables of today, for a connection that has none. */
export function createSchema(connection: Connection): void {
  for (const sql of MIGRATIONS) connection.exec(sql);
  createProjections(connection);
}
