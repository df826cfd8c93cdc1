/**
 * Opens the files of a store in the strongest way they allow: for writing, for reading, or not at all with the reason.
 * A damaged or lost store is never recreated and never written again.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { connect, connectToNothing, untilFree, type Connection } from "./driver.ts";
import { makePrivateFile, makePrivateFolder, sizeOf, type HomePaths } from "../home.ts";
import type { Damage, Notice } from "../journal.ts";
import { createSchema, isCurrent, isForeign, migrate, schemaVersion } from "./migrate.ts";
import { checkOnOpen, isEmpty, proofOfLoss } from "./open-check.ts";
import type { Redactor } from "../redaction/redact.ts";
import { asDamage, faultOf, readOnlyError, toStoreError } from "./store-errors.ts";

export interface OpenJournalOptions {
  readonly home: string;
  readonly now?: () => number;
  /** How long a process may leave its leases unrenewed before another host may take them; absent: twelve seconds. */
  readonly leaseMs?: number | undefined;
  /** Exact values never to be stored, such as provider keys. */
  readonly secrets?: readonly string[];
  /** Shared with whatever learns of secrets while the journal is open; it learns `secrets` too. */
  readonly redactor?: Redactor | undefined;
}

export interface OpenStore {
  readonly connection: Connection;
  readonly damage: Damage | undefined;
  readonly notices: readonly Notice[];
  /** Set when it is open for reading only: the error for writers. */
  readonly refusal?: HeddleError;
}

export async function openStore(paths: HomePaths): Promise<OpenStore> {
  try {
    if (!isWritable(paths)) return await openForReading(paths, readOnlyError(paths.database));
    return await openForWriting(paths).catch(async (error: unknown) => {
      const refusal = toStoreError(error, paths.database);
      // A writer needs room for SQLite's index at once; reading works without it.
      if (refusal.code === "store.full" && !isEmpty(paths)) return await openForReading(paths, refusal);
      throw refusal;
    });
  } catch (error) {
    throw toStoreError(error, paths.database);
  }
}

function isWritable(paths: HomePaths): boolean {
  try {
    makePrivateFolder(paths.home);
    if (!statSync(paths.home).isDirectory()) throw new HeddleError("store.failed", `${paths.home} is not a folder`);
    accessSync(paths.home, constants.W_OK | constants.X_OK);
    if (existsSync(paths.database)) accessSync(paths.database, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    if (faultOf(error) === "read-only") return false;
    throw error;
  }
}

async function openForWriting(paths: HomePaths): Promise<OpenStore> {
  if (isEmpty(paths)) {
    const loss = proofOfLoss(paths);
    // Checked again: another process may have created the store, and written events, in between.
    if (loss !== undefined && isEmpty(paths)) return openNothing(loss);
    makePrivateFile(paths.database);
  }
  const connection = await connect(paths.database, "read-write");
  let damage: Damage | undefined;
  let notices: readonly Notice[] = [];
  try {
    damage = await bringUpToDate(connection, paths);
    if (damage === undefined) ({ damage, notices } = await untilFree(() => checkOnOpen(connection, paths)));
  } catch (error) {
    if (faultOf(error) !== "damaged") {
      connection.close();
      throw error;
    }
    damage = asDamage(error);
  }
  return damage === undefined ? { connection, damage, notices } : openDamaged(connection, paths, damage);
}

async function bringUpToDate(connection: Connection, paths: HomePaths): Promise<Damage | undefined> {
  const version = await untilFree(() => schemaVersion(connection));
  if (isCurrent(version, paths.database)) return undefined;
  if (await untilFree(() => isForeign(connection))) {
    return { kind: "file-corrupt", message: `${paths.database} is the database of another program` };
  }
  let loss: Damage | undefined;
  await migrate(connection, paths.database, () => {
    loss = proofOfLoss(paths);
    return loss === undefined;
  });
  return loss;
}

/**
 * The last writing connection that closes folds the WAL into the database and deletes it; in a damaged store that would
 * destroy evidence. So a reading connection is opened first.
 */
async function openDamaged(writing: Connection, paths: HomePaths, damage: Damage): Promise<OpenStore> {
  try {
    const connection = await connect(paths.database, "read-only");
    connection.get("SELECT count(*) FROM sqlite_schema");
    if (schemaVersion(connection) > 0 && !isForeign(connection)) return { connection, damage, notices: [] };
    return await openNothing(damage);
  } catch (error) {
    if (faultOf(error) !== "damaged") throw error;
    return await openNothing(damage);
  } finally {
    writing.close();
  }
}

/** Nothing can be read of it; `damage` has the reason. */
async function openNothing(damage: Damage): Promise<OpenStore> {
  return { connection: await connectToNothing(createSchema), damage, notices: [] };
}

async function openForReading(paths: HomePaths, refusal: HeddleError): Promise<OpenStore> {
  if (isEmpty(paths)) throw refusal;
  const connection = await connectForReading(paths, refusal);
  const version = await untilFree(() => schemaVersion(connection));
  if (!isCurrent(version, paths.database)) throw refusal;
  const { damage, notices } = await untilFree(() => checkOnOpen(connection, paths));
  return { connection, damage, notices: [{ kind: "read-only", message: refusal.message }, ...notices], refusal };
}

async function connectForReading(paths: HomePaths, refusal: HeddleError): Promise<Connection> {
  const connection = await connect(paths.database, "read-only");
  try {
    await untilFree(() => schemaVersion(connection));
    return connection;
  } catch (error) {
    connection.close();
    // Without a WAL the file itself is complete, and nobody can write to it here.
    if (sizeOf(`${paths.database}-wal`) > 0) throw new HeddleError(refusal.code, refusal.message, { cause: error });
    return await connect(paths.database, "immutable");
  }
}
