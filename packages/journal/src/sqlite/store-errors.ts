/** Faults of the store as Heddle's error codes, from SQLite and from the file system. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import type { Damage } from "../journal.ts";

/** With less than this, a failed write is a full disk, whatever SQLite calls it. */
export const FULL_BELOW_BYTES = 64 * 1024;

export type StoreFault = "busy" | "full" | "read-only" | "damaged" | "io" | "other";

const SQLITE_FAULTS: Readonly<Record<number, StoreFault>> = {
  3: "read-only", // PERM
  5: "busy", // BUSY
  6: "busy", // LOCKED
  8: "read-only", // READONLY
  10: "io", // IOERR
  11: "damaged", // CORRUPT
  13: "full", // FULL
  14: "io", // CANTOPEN: too many files, a folder that vanished
  26: "damaged", // NOTADB
};
const SQLITE_REASONS: Readonly<Record<number, string>> = {
  7: "not enough memory",
  10: "i/o error of the disk",
  11: "its pages do not fit together",
  14: "it cannot be opened",
  26: "it is not a database",
};
/** The database file was moved or deleted under an open connection; the file system is not read-only. */
const READONLY_DBMOVED = 1032;

const FILE_FAULTS: Readonly<Record<string, StoreFault>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  EIO: "io",
  // Of a number in a row that no writer writes.
  ERR_OUT_OF_RANGE: "damaged",
};

export function faultOf(error: unknown): StoreFault {
  if (!(error instanceof Error)) return "other";
  if ("errcode" in error && typeof error.errcode === "number") {
    if (error.errcode === READONLY_DBMOVED) return "io";
    return SQLITE_FAULTS[error.errcode & 0xff] ?? "other";
  }
  if ("code" in error && typeof error.code === "string") return FILE_FAULTS[error.code] ?? "other";
  return "other";
}

function storeReason(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ERR_OUT_OF_RANGE")
    return "it holds a number that is too large";
  if (!(error instanceof Error && "errcode" in error && typeof error.errcode === "number")) return reasonOf(error);
  return SQLITE_REASONS[error.errcode & 0xff] ?? `SQLite error ${error.errcode}`;
}

/** SQLite reports IOERR when its index cannot grow. */
export function writeFaultOf(error: unknown, file: string): StoreFault {
  const fault = faultOf(error);
  return fault === "io" && freeBytes(file) < FULL_BELOW_BYTES ? "full" : fault;
}

export function toStoreError(error: unknown, file: string): HeddleError {
  if (isHeddleError(error)) return error;
  const cause = error;
  const reason = storeReason(error);
  switch (writeFaultOf(error, file)) {
    case "busy":
      return new HeddleError("store.busy", `${file} is locked by another process; try again`, { cause });
    case "full":
      return fullError(file, cause);
    case "read-only":
      return readOnlyError(file, cause);
    case "damaged":
      return new HeddleError("store.damaged", `${file} is damaged: ${reason}`, { cause });
    case "io":
    case "other":
      return new HeddleError("store.failed", `${file}: ${reason}`, { cause });
  }
}

export function fullError(file: string, cause?: unknown): HeddleError {
  return new HeddleError("store.full", `no space left for ${file}; free some, nothing was lost`, {
    cause,
    details: { path: file },
  });
}

export function readOnlyError(file: string, cause?: unknown): HeddleError {
  return new HeddleError(
    "store.read-only",
    `${file} cannot be written; make it and its folder writable for you (owner, mode, mount), or set HEDDLE_HOME`,
    { cause, details: { path: file } },
  );
}

/** How much an ordinary user may still write; infinite where that is unknown. */
export function freeBytes(file: string): number {
  try {
    const stats = statfsSync(dirname(file));
    return stats.bavail * stats.bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** For a lock that SQLite reports as a result and not as an error. */
export function busyError(): Error {
  return Object.assign(new Error("database is locked"), { errcode: 5 });
}

/** A page that SQLite cannot read is damage to report, not a failure to verify. */
export function asDamage(error: unknown): Damage {
  const isDamage = faultOf(error) === "damaged" || (isHeddleError(error) && error.code === "store.damaged");
  if (!isDamage || !(error instanceof Error)) throw error;
  return { kind: "file-corrupt", message: `the database file is damaged: ${storeReason(error)}` };
}

/** For a long reading: its caller's reason where it was stopped, else what is wrong with the store. */
export function unlessStopped(database: string, signal: AbortSignal | undefined): (error: unknown) => never {
  return (error) => {
    signal?.throwIfAborted();
    throw toStoreError(error, database);
  };
}
