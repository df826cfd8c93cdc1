/**
 * Removes the bodies of a deleted thread, in the database and in the copy of an earlier migration; its hashes stay, so
 * that chain, checkpoints and witness still match. The freed bytes are overwritten, and the room is given back in
 * slices, between which others append.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { HeddleError, reasonOf, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { prepare } from "../record/prepare.ts";
import { store } from "./append.ts";
import { answer, connect, untilFree, type Connection } from "./driver.ts";
import { sizeOf } from "../home.ts";
import type { Purge } from "../journal.ts";
import type { LeaseTime } from "../sql/leases.ts";
import { copiesOf } from "./migration-copy.ts";
import { all, type Asking } from "../sql/ask.ts";
import { deletionOf, FORGET_BODIES, forgetEvidence, nextSlice, type Forgotten } from "../sql/purge.ts";
import type { Redactor } from "../redaction/redact.ts";
import { integer } from "../record/rows.ts";

export interface Purging extends Purge {
  readonly redactor: Redactor;
  readonly time: LeaseTime;
}

/** Inside the write transaction: ends the thread. Its last event keeps the thread's usage. */
export function purge(connection: Connection, { stream, author, reason, redactor, time }: Purging): StoredEvent {
  const deletion = answer(connection, deletionOf(stream, reason));
  const prepared = prepare({ stream, author, events: [deletion] }, redactor);
  const [deleted] = store(connection, prepared, time).events;
  if (deleted === undefined) throw new HeddleError("internal", `the end of ${stream} was not stored`);
  return deleted;
}

/**
 * Inside a write transaction of its own: removes some bodies after a version; returns the last one, undefined: none is
 * left.
 */
export function forgetSome(
  connection: Connection,
  { isCopy = false, ...purged }: Forgotten & { readonly isCopy?: boolean },
  after: number,
): number | undefined {
  const { stream } = purged;
  const last = answer(connection, nextSlice(purged, after));
  if (last === undefined) return undefined;
  overwriting(connection, () => {
    if (!isCopy) answer(connection, forgetEvidence({ stream, after, upTo: last }, forgetWords));
    connection.run(FORGET_BODIES, stream, after, last);
  });
  failpoint("purge.after-slice");
  return last;
}

/** The index has no texts: it is told which words to remove. */
function forgetWords(position: number, words: readonly string[]): Asking<unknown> {
  const sql = "INSERT INTO evidence_words (evidence_words, rowid, words) VALUES ('delete', ?, ?)";
  return all(sql, position, words.join(" "));
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

const EVIDENCE = ["evidence", "evidence_tag", "evidence_ref", "evidence_spans", "evidence_state", "evidence_words"];

/** What the entries of an earlier migration came from may have had another form. */
function dropEvidence(connection: Connection): void {
  for (const table of EVIDENCE) connection.exec(`DROP TABLE IF EXISTS ${table}`);
}
