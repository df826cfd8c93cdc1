/**
 * Removes the bodies of a deleted thread, in the database and in the copy of an earlier migration; its hashes stay, so
 * that chain, checkpoints and witness still match. The freed bytes are overwritten, and the room is given back in
 * slices, between which others append.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { HeddleError, NOTE_STREAM, reasonOf, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { prepare } from "../record/prepare.ts";
import { store } from "./append.ts";
import { connect, untilFree, type Connection } from "./driver.ts";
import { isImport } from "../evidence/import-stream.ts";
import { sizeOf } from "../home.ts";
import type { Purge } from "../journal.ts";
import type { LeaseTime } from "./leases.ts";
import { dropEvidence, forgetEvidence } from "./forget-evidence.ts";
import { copiesOf } from "./migration-copy.ts";
import { THREADS, TURNS } from "./queries/thread-rows.ts";
import { usedBy } from "./queries/usage.ts";
import type { Redactor } from "../redaction/redact.ts";
import { integer, text } from "../record/rows.ts";

/** Named in a refusal; the rest shows after deleting these. */
const MAX_NAMED_FORKS = 20;

/** Bodies at a time: a few milliseconds, also where each is large, because a slice ends with the row that fills it. */
const SLICE_ROWS = 64;
const SLICE_BYTES = 1024 * 1024;

export interface Purging extends Purge {
  readonly redactor: Redactor;
  readonly time: LeaseTime;
}

/** Inside the write transaction: ends the thread. Its last event keeps the thread's usage. */
export function purge(connection: Connection, { stream, author, reason, redactor, time }: Purging): StoredEvent {
  refuseWhileNeeded(connection, stream);
  const usage = [...usedBy(connection, stream)];
  const deletion = { type: "thread.deleted", v: 1, reason, ...(usage.length === 0 ? {} : { usage }) } as const;
  const prepared = prepare({ stream, author, events: [deletion] }, redactor);
  const [deleted] = store(connection, prepared, time).events;
  if (deleted === undefined) throw new HeddleError("internal", `the end of ${stream} was not stored`);
  return deleted;
}

export interface Forgotten {
  readonly stream: string;
  readonly before: number;
}

/**
 * Inside a write transaction of its own: removes some bodies after a version; returns the last one, undefined: none is
 * left.
 */
export function forgetSome(
  connection: Connection,
  { stream, before, isCopy = false }: Forgotten & { readonly isCopy?: boolean },
  after: number,
): number | undefined {
  const rows = connection.all(
    `SELECT version, octet_length(body) AS bytes FROM events
     WHERE stream = ? AND version > ? AND version < ? AND body IS NOT NULL ORDER BY version LIMIT ${SLICE_ROWS}`,
    stream,
    after,
    before,
  );
  let bytes = 0;
  let last: number | undefined;
  for (const row of rows) {
    if (bytes >= SLICE_BYTES) break;
    bytes += integer(row, "bytes");
    last = integer(row, "version");
  }
  if (last === undefined) return undefined;
  const upTo = last;
  overwriting(connection, () => {
    if (!isCopy) forgetEvidence(connection, { stream, after, upTo });
    connection.run(
      "UPDATE events SET body = NULL WHERE stream = ? AND version > ? AND version <= ? AND body IS NOT NULL",
      stream,
      after,
      upTo,
    );
  });
  failpoint("purge.after-slice");
  return last;
}

function refuseWhileNeeded(connection: Connection, stream: string): void {
  if (isImport(stream)) {
    const found = connection.get("SELECT type FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1", stream);
    if (found !== undefined && text(found, "type") !== "thread.deleted") return;
    throw new HeddleError("evidence.not-found", `nothing was imported as ${stream}`, { details: { stream } });
  }
  if (stream.startsWith(NOTE_STREAM)) return requireNote(connection, stream);
  if (connection.get(THREADS.get, stream) === undefined) {
    throw new HeddleError("thread.not-found", `there is no thread ${stream}`, { details: { threadId: stream } });
  }
  const open = connection.get(TURNS.openOfThread, stream);
  if (open !== undefined) {
    const turnId = text(open, "id");
    throw new HeddleError("turn.active", `thread ${stream} is busy with turn ${turnId}; interrupt it first`, {
      details: { threadId: stream, turnId },
    });
  }
  const forks = connection.all(THREADS.forksOf, stream, MAX_NAMED_FORKS).map((row) => text(row, "id"));
  if (forks.length === 0) return;
  const message = `thread ${stream} was forked as ${forks.join(", ")}; delete ${forks.length === 1 ? "that one" : "those"} first`;
  throw new HeddleError("thread.has-forks", message, { details: { threadId: stream, forks: forks.join(" ") } });
}

/** A note beside any thread has no row, and nothing is forked from it; it is purged once. */
function requireNote(connection: Connection, stream: string): void {
  const row = connection.get("SELECT body FROM events WHERE stream = ? ORDER BY version LIMIT 1", stream);
  if (row === undefined || row["body"] === null)
    throw new HeddleError("evidence.not-found", `there is no note ${stream}`, { details: { id: stream } });
}

/** Otherwise SQLite leaves freed bytes until it needs their pages. */
function overwriting<T>(connection: Connection, work: () => T): T {
  connection.exec("PRAGMA secure_delete = ON");
  try {
    return work();
  } finally {
    connection.exec("PRAGMA secure_delete = OFF");
  }
}

/** Rewriting a larger database would block everybody for more than a moment. */
const MAX_REWRITTEN_BYTES = 32 * 1024 * 1024;
/** A few milliseconds at a time. */
const SLICE_PAGES = 256;
const SETTLE_DEADLINE_MS = 5000;

export function isSmall(file: string): boolean {
  return sizeOf(file) <= MAX_REWRITTEN_BYTES;
}

/** The thread is deleted at that version; a note whose transaction was lost names none. */
export function isEnded(connection: Connection, { stream, before }: Forgotten): boolean {
  const row = connection.get("SELECT type FROM events WHERE stream = ? AND version = ?", stream, before);
  return row !== undefined && text(row, "type") === "thread.deleted";
}

/** Runs work in its turn, so that appends come in between. */
export type InTurn = <T>(work: () => T | Promise<T>) => Promise<T>;

/**
 * Gives the room back and empties the WAL. A small database is rewritten, because SQLite leaves fragments of moved
 * rows; a large one is cut in slices. Returns what keeps old bytes or room.
 */
export async function settle(
  connection: Connection,
  file: string,
  { inTurn = async (work) => work(), signal }: { readonly inTurn?: InTurn; readonly signal?: AbortSignal } = {},
): Promise<string | undefined> {
  try {
    if (isSmall(file)) {
      await inTurn(() => untilFree(() => rewrite(connection), SETTLE_DEADLINE_MS));
      return await inTurn(() => emptied(connection, file));
    }
    if (!canBeCut(connection))
      return `${file} still uses the disk space of what was deleted; heddle store compact frees it`;
    while (signal?.aborted !== true && integer(connection.get("PRAGMA freelist_count"), "freelist_count") > 0) {
      await inTurn(() =>
        untilFree(() => connection.exec(`PRAGMA incremental_vacuum(${SLICE_PAGES})`), SETTLE_DEADLINE_MS),
      );
      await breathe();
    }
    await inTurn(() => emptied(connection, file));
    return `fragments of what was deleted may stay in ${file}; heddle store compact rewrites it`;
  } catch (error) {
    return `fragments may stay in ${file}: ${reasonOf(error)}`;
  }
}

/** From then on it can be cut. */
export function rewrite(connection: Connection): void {
  connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
  connection.exec("VACUUM");
}

/** Set when a database is made or rewritten. */
function canBeCut(connection: Connection): boolean {
  return integer(connection.get("PRAGMA auto_vacuum"), "auto_vacuum") === 2;
}

function emptied(connection: Connection, file: string): string | undefined {
  const isDone = integer(connection.get("PRAGMA wal_checkpoint(TRUNCATE)"), "busy") === 0;
  return isDone ? undefined : `old pages stay in ${file}-wal until no reader needs them`;
}

/** The same for the copy before the last migration; returns as `settle` does. */
export async function purgeCopies(database: string, stream: string, before: number): Promise<string | undefined> {
  const unsettled: string[] = [];
  for (const path of copiesOf(database)) {
    try {
      const left = await purgeCopy(path, stream, before);
      if (left !== undefined) unsettled.push(left);
    } catch (error) {
      unsettled.push(`${path} still holds the thread: ${reasonOf(error)}`);
    }
  }
  return unsettled[0];
}

async function purgeCopy(path: string, stream: string, before: number): Promise<string | undefined> {
  const connection = await connect(path, "read-write");
  try {
    await untilFree(() =>
      connection.transaction("full", () => overwriting(connection, () => dropEvidence(connection))),
    );
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after;
      const slice = (): number | undefined => forgetSome(connection, { stream, before, isCopy: true }, from);
      after = await untilFree(() => connection.transaction("full", slice));
      await breathe();
    }
    return await settle(connection, path);
  } finally {
    connection.close();
  }
}
