/** Faults of Postgres and of the way to it as Heddle's error codes. */
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import type { Damage } from "../journal.ts";
import { get, type Asking } from "../sql/ask.ts";

/** `away`: the server or the connection is gone; it may come back. */
export type StoreFault = "busy" | "full" | "read-only" | "damaged" | "away" | "other";

/** By SQLSTATE, the longest beginning first. */
const FAULTS: readonly (readonly [string, StoreFault])[] = [
  ["53100", "full"], // disk_full
  ["53300", "busy"], // too_many_connections
  ["53400", "busy"], // configuration_limit_exceeded
  ["55P03", "busy"], // lock_not_available
  ["40", "busy"], // serialization failures and deadlocks
  ["25006", "read-only"], // read_only_sql_transaction
  ["42501", "read-only"], // insufficient_privilege
  ["25P03", "away"], // idle_in_transaction_session_timeout
  ["57P", "away"], // shut down, crashed, starting
  ["08", "away"], // connection exceptions
  ["XX001", "damaged"],
  ["XX002", "damaged"],
];

const SYSTEM = /^(E[A-Z]+|UND_.*)$/;

export function faultOf(error: unknown): StoreFault {
  if (!(error instanceof Error)) return "other";
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  if (code === undefined) return isLostConnection(error) ? "away" : "other";
  if (SYSTEM.test(code)) return "away";
  return FAULTS.find(([beginning]) => code.startsWith(beginning))?.[1] ?? "other";
}

/** The driver has no codes for these. */
function isLostConnection({ message }: Error): boolean {
  return /^(Connection terminated|Client has encountered|Client was closed|timeout expired|Query read timeout)/.test(
    message,
  );
}

export function toStoreError(error: unknown, name: string): HeddleError {
  if (isHeddleError(error)) return error;
  const cause = error;
  switch (faultOf(error)) {
    case "busy":
      return new HeddleError("store.busy", `${name} has no free connection or lock; try again`, { cause });
    case "full":
      return new HeddleError("store.full", `no space left for ${name}; free some, nothing was lost`, { cause });
    case "read-only":
      return readOnlyError(name, cause);
    case "damaged":
      return new HeddleError("store.damaged", `${name} is damaged: ${reasonOf(error)}`, { cause });
    case "away":
      return new HeddleError("store.failed", `cannot reach ${name}: ${reasonOf(error)}`, { cause });
    case "other":
      return new HeddleError("store.failed", `${name}: ${reasonOf(error)}`, { cause });
  }
}

/** Not of the server or the way to it: the same append would fail again, and others would not. */
export function isOfContent({ code, cause }: HeddleError): boolean {
  return code === "internal" || (code === "store.failed" && cause !== undefined && faultOf(cause) === "other");
}

/** A standby, or a user who may only read, would refuse the first row. */
export function* requireWritable(name: string): Asking<void> {
  const row = yield* get("SELECT current_setting('transaction_read_only') AS mode");
  if (row?.["mode"] === "on") throw readOnlyError(name);
}

function readOnlyError(name: string, cause?: unknown): HeddleError {
  return new HeddleError("store.read-only", `${name} cannot be written by this user, or is a standby`, { cause });
}

/** A page that Postgres cannot read is damage to report, not a failure to verify. */
export function asDamage(error: unknown): Damage {
  const isDamage = faultOf(error) === "damaged" || (isHeddleError(error) && error.code === "store.damaged");
  if (!isDamage) throw error;
  return { kind: "file-corrupt", message: `the database is damaged: ${reasonOf(error)}` };
}
