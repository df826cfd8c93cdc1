/**
 * The only file that knows node:sqlite: cached statements, transactions that never stay open, and short waits for other
 * processes, so that a lock blocks neither the event loop nor a user.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { setTimeout as delay } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";
import type { Asking } from "../sql/ask.ts";
import { busyError, faultOf } from "./store-errors.ts";

export type Row = Readonly<Record<string, SQLOutputValue>>;
export type Value = SQLInputValue;
export type Durability = "full" | "relaxed";

/** SQLite's own wait blocks the event loop, so it is short; the long wait is `untilFree`. */
const BUSY_TIMEOUT_MS = 5;
const BUSY_DEADLINE_MS = 30_000;
const MAX_BUSY_PAUSE_MS = 20;
/** What a checkpoint leaves of a large WAL. */
const WAL_KEPT_BYTES = 16 * 1024 * 1024;

/** Uses the current connection; waits while another process holds the lock. */
export type Read = <T>(work: (connection: Connection) => T) => Promise<T>;

/** Carries a question out at once: nothing else of this process comes between its statements. */
export function answer<T>(connection: Connection, asking: Asking<T>): T {
  let step = asking.next();
  while (step.done !== true) step = asking.next(connection.all(step.value.sql, ...step.value.values));
  return step.value;
}

export interface Connection {
  readonly isReadOnly: boolean;
  all(sql: string, ...values: Value[]): Row[];
  get(sql: string, ...values: Value[]): Row | undefined;
  iterate(sql: string, ...values: Value[]): Iterable<Row>;
  run(sql: string, ...values: Value[]): void;
  exec(sql: string): void;
  /** All or nothing. The work must be synchronous. */
  transaction<T>(durability: Durability, work: () => T): T;
  /** Copies what is committed, WAL included, into an empty file; also while this connection holds the write lock. */
  copyTo(file: string): void;
  close(): void;
}

/** Writes all of the WAL into the database; busy while anyone reads from it. */
export function foldWal(connection: Connection): void {
  if (connection.get("PRAGMA wal_checkpoint(TRUNCATE)")?.["busy"] !== 0) throw busyError();
}

/** Changes whenever another connection has committed. */
export function changeCount(connection: Connection): number {
  return Number(connection.get("PRAGMA data_version")?.["data_version"]);
}

export type Access = "read-write" | "read-only" | "immutable";

export async function connect(file: string, access: Access): Promise<Connection> {
  const { DatabaseSync } = await import("node:sqlite");
  const isReadOnly = access !== "read-write";
  const location = access === "immutable" ? new URL(`${pathToFileURL(file).href}?immutable=1`) : file;
  const db = new DatabaseSync(location, { readOnly: isReadOnly, timeout: BUSY_TIMEOUT_MS });
  if (!isReadOnly) db.exec(`PRAGMA journal_size_limit = ${WAL_KEPT_BYTES}`);
  const copyTo = (copy: string): void => {
    using reading = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    reading.prepare("VACUUM INTO ?").run(copy);
  };
  return connectionOf(db, isReadOnly, copyTo);
}

/** An empty store, for reading what is left of a lost one. */
export async function connectToNothing(createSchema: (connection: Connection) => void): Promise<Connection> {
  const { DatabaseSync } = await import("node:sqlite");
  const connection = connectionOf(new DatabaseSync(":memory:"), true, () => undefined);
  createSchema(connection);
  return connection;
}

function connectionOf(db: DatabaseSync, isReadOnly: boolean, copyTo: (file: string) => void): Connection {
  const statements = new Map<string, StatementSync>();
  let durability: Durability = "full";

  function prepare(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  return {
    isReadOnly,
    all: (sql, ...values) => prepare(sql).all(...values),
    get: (sql, ...values) => prepare(sql).get(...values),
    iterate: (sql, ...values) => prepare(sql).iterate(...values),
    run: (sql, ...values) => {
      prepare(sql).run(...values);
    },
    exec: (sql) => db.exec(sql),
    copyTo,
    transaction(wanted, work) {
      if (wanted !== durability) {
        db.exec(`PRAGMA synchronous = ${wanted === "full" ? "FULL" : "NORMAL"}`);
        durability = wanted;
      }
      prepare("BEGIN IMMEDIATE").run();
      try {
        const result = work();
        prepare("COMMIT").run();
        return result;
      } catch (error) {
        // SQLite ends the transaction itself on some failures, such as a full disk.
        if (db.isTransaction) db.exec("ROLLBACK");
        throw error;
      }
    },
    close() {
      if (!db.isOpen) return;
      statements.clear();
      db.close();
    },
  };
}

/** Repeats the work while another process holds the lock, with growing, random pauses, up to a deadline. */
export async function untilFree<T>(work: () => T | Promise<T>, deadlineMs = BUSY_DEADLINE_MS): Promise<T> {
  const deadline = clockMs() + deadlineMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (faultOf(error) !== "busy" || clockMs() > deadline) throw error;
      await delay(Math.random() * Math.min(MAX_BUSY_PAUSE_MS, 2 * attempt));
    }
  }
}
