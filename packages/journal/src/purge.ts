/**
 * Removing what a deleted thread said. Its bodies go, in the database and in the copy an earlier migration left; its
 * hashes stay, so that chain, checkpoints and witness still fit. The freed bytes are overwritten.
 */
import { HeddleError, type StoredEvent } from "@heddle/protocol";
import { store, type PreparedAppend } from "./append.ts";
import { connect, untilFree, type Connection } from "./driver.ts";
import { copiesOf } from "./migration-copy.ts";
import { queries as threads } from "./projections/threads.ts";
import { queries as turns } from "./projections/turns.ts";
import { integer, text } from "./rows.ts";

/** Named in a refusal; who has more forks than this finds the rest by deleting these. */
const MAX_NAMED_FORKS = 20;

const FORGET = "UPDATE events SET body = NULL WHERE stream = ? AND version < ? AND body IS NOT NULL";

/** Inside the write transaction. `prepared` holds the one event that says so. */
export function purge(connection: Connection, prepared: PreparedAppend, now: number): StoredEvent {
  const { stream } = prepared.append;
  refuseWhileNeeded(connection, stream);
  const [deleted] = store(connection, prepared, now).events;
  if (deleted === undefined) throw new HeddleError("internal", `the end of ${stream} was not stored`);
  forget(connection, stream, deleted.version);
  return deleted;
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

function forget(connection: Connection, stream: string, before: number): void {
  // Otherwise SQLite leaves the bytes where they are until it needs their place.
  connection.exec("PRAGMA secure_delete = ON");
  try {
    connection.run(FORGET, stream, before);
  } finally {
    connection.exec("PRAGMA secure_delete = OFF");
  }
}

/** Brings the emptied pages into the database file. False while a reader still needs the old ones from the WAL. */
export function settle(connection: Connection): boolean {
  return integer(connection.get("PRAGMA wal_checkpoint(TRUNCATE)"), "busy") === 0;
}

/** The copy that was taken before the last migration forgets as well. */
export async function purgeCopies(database: string, stream: string, before: number): Promise<void> {
  for (const path of copiesOf(database)) {
    const connection = await connect(path, "read-write");
    try {
      await untilFree(() => connection.transaction("full", () => forget(connection, stream, before)));
    } finally {
      connection.close();
    }
  }
}
