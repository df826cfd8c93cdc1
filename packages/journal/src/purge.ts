/**
 * Removing what a deleted thread said. Its bodies go, in the database and in the copy an earlier migration left; its
 * hashes stay, so that chain, checkpoints and witness still fit. The freed bytes are overwritten.
 */
import { HeddleError, type StoredEvent } from "@heddle/protocol";
import { prepare, store } from "./append.ts";
import { connect, untilFree, type Connection } from "./driver.ts";
import { sizeOf } from "./home.ts";
import type { Purge } from "./journal.ts";
import { copiesOf } from "./migration-copy.ts";
import { queries as threads } from "./projections/threads.ts";
import { queries as turns } from "./projections/turns.ts";
import { takenBy } from "./projections/usage-days.ts";
import type { Redactor } from "./redact.ts";
import { integer, text } from "./rows.ts";

/** Named in a refusal; who has more forks than this finds the rest by deleting these. */
const MAX_NAMED_FORKS = 20;

const FORGET = "UPDATE events SET body = NULL WHERE stream = ? AND version < ? AND body IS NOT NULL";

export interface Purging extends Purge {
  readonly redactor: Redactor;
  readonly now: number;
}

/** Inside the write transaction. The one event that says so keeps what the thread took. */
export function purge(connection: Connection, { stream, author, reason, redactor, now }: Purging): StoredEvent {
  refuseWhileNeeded(connection, stream);
  const usage = [...takenBy(connection, stream)];
  const deletion = { type: "thread.deleted", v: 1, reason, ...(usage.length === 0 ? {} : { usage }) } as const;
  const prepared = prepare({ stream, author, events: [deletion] }, redactor);
  return overwriting(connection, () => {
    const [deleted] = store(connection, prepared, now).events;
    if (deleted === undefined) throw new HeddleError("internal", `the end of ${stream} was not stored`);
    connection.run(FORGET, stream, deleted.version);
    return deleted;
  });
}

function refuseWhileNeeded(connection: Connection, stream: string): void {
  if (connection.get(threads.get, stream) === undefined) {
    throw new HeddleError("thread.not-found", `there is no thread ${stream}`, { details: { threadId: stream } });
  }
  const open = connection.get(turns.openOfThread, stream);
  if (open !== undefined) {
    const turnId = text(open, "id");
    throw new HeddleError("turn.active", `thread ${stream} is busy with turn ${turnId}; interrupt it first`, {
      details: { threadId: stream, turnId },
    });
  }
  const forks = connection.all(threads.forksOf, stream, MAX_NAMED_FORKS).map((row) => text(row, "id"));
  if (forks.length === 0) return;
  const message = `thread ${stream} is the past of ${forks.join(", ")}; delete ${forks.length === 1 ? "that one" : "those"} first`;
  throw new HeddleError("thread.has-forks", message, { details: { threadId: stream, forks: forks.join(" ") } });
}

/** Otherwise SQLite leaves freed bytes where they are until it needs their place. */
function overwriting<T>(connection: Connection, work: () => T): T {
  connection.exec("PRAGMA secure_delete = ON");
  try {
    return work();
  } finally {
    connection.exec("PRAGMA secure_delete = OFF");
  }
}

/** Writing a larger database anew would hold up everybody for more than a few seconds. */
const MAX_REWRITTEN_BYTES = 256 * 1024 * 1024;

const SETTLE_DEADLINE_MS = 5000;

/**
 * Writes the database anew, because SQLite moves rows between pages and leaves fragments of them behind, also of rows it
 * overwrites; then empties the WAL. Answers what keeps old bytes from going, if anything does.
 */
export async function settle(connection: Connection, file: string): Promise<string | undefined> {
  if (sizeOf(file) > MAX_REWRITTEN_BYTES) return `fragments may stay in ${file}, which is too large to be written anew`;
  try {
    await untilFree(() => connection.exec("VACUUM"), SETTLE_DEADLINE_MS);
    const isDone = integer(connection.get("PRAGMA wal_checkpoint(TRUNCATE)"), "busy") === 0;
    return isDone ? undefined : `old pages stay in ${file}-wal until no reader needs them`;
  } catch (error) {
    return `fragments may stay in ${file}: ${reasonOf(error)}`;
  }
}

/** The copy that was taken before the last migration forgets as well; answers as `settle` does. */
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
    const forget = (): void => overwriting(connection, () => connection.run(FORGET, stream, before));
    await untilFree(() => connection.transaction("full", forget));
    return await settle(connection, path);
  } finally {
    connection.close();
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
