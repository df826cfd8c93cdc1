/**
 * Stores appends: events with their projections and keys in one short transaction. `record/prepare.ts` decides what an
 * append becomes; here are its look-ups and statements.
 */
import { isHeddleError, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Appended } from "../journal.ts";
import type { Member, Outcome } from "../record/append-group.ts";
import {
  chain,
  emptyHead,
  parentsOf,
  refuseDeleted,
  refuseOtherContent,
  type ChainedEvent,
  type Head,
  type PreparedAppend,
} from "../record/prepare.ts";
import { refuseBusyFolder, type AppendGuard } from "../record/guard.ts";
import { integer, text } from "../record/rows.ts";
import type { Connection } from "./driver.ts";
import type { LeaseTime } from "../sql/leases.ts";
import { recordOwners, refuseLost } from "./leases.ts";
import { project } from "./project.ts";
import { readVersions } from "./read.ts";

export function store(connection: Connection, prepared: PreparedAppend, time: LeaseTime): Appended {
  const { append, contentHash } = prepared;
  const { stream, key, lease, guard } = append;
  const repeat = key === undefined ? undefined : findRepeat(connection, key, prepared);
  if (repeat !== undefined) return repeat;
  if (lease !== undefined) refuseLost(connection, lease);
  if (guard !== undefined) refuseGuarded(connection, stream, guard);
  for (const parent of parentsOf(append)) refuseDeleted(parent, headOf(connection, parent));
  const head = headOf(connection, stream);
  const events = chain(prepared, head, time.now).map((chained): StoredEvent => {
    failpoint("journal.append.before-insert");
    const event = insert(connection, chained);
    project(connection, event);
    return event;
  });
  recordOwners(connection, append.events, time);
  if (key !== undefined) {
    connection.run(
      "INSERT INTO append_keys (key, content_hash, stream, first_version, last_version) VALUES (?, ?, ?, ?, ?)",
      key,
      contentHash,
      stream,
      head.version + 1,
      head.version + events.length,
    );
  }
  failpoint("journal.append.before-commit");
  return { events, isRepeat: false };
}

/** Inside the write transaction: a refused append is undone alone. */
export function storeAll(connection: Connection, members: readonly Member[], time: () => LeaseTime): Outcome[] {
  return members.map(({ prepared }): Outcome => {
    connection.run("SAVEPOINT member");
    try {
      const appended = store(connection, prepared, time());
      connection.run("RELEASE member");
      return { appended };
    } catch (error) {
      // Anything else is a fault of the disk or the database, and fails all.
      if (!isHeddleError(error)) throw error;
      connection.run("ROLLBACK TO member");
      connection.run("RELEASE member");
      return { error };
    }
  });
}

function refuseGuarded(connection: Connection, stream: string, guard: AppendGuard): void {
  const row = connection.get(
    "SELECT id FROM tasks WHERE is_held = 1 AND folder = ? AND is_exclusive >= ? AND id <> ? LIMIT 1",
    guard.folder,
    guard.isExclusive ? 0 : 1,
    stream,
  );
  if (row !== undefined) refuseBusyFolder(guard, text(row, "id"));
}

function headOf(connection: Connection, stream: string): Head {
  const row = connection.get(
    "SELECT version, hash, at, type FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1",
    stream,
  );
  if (row === undefined) return emptyHead(stream);
  return {
    version: integer(row, "version"),
    hash: text(row, "hash"),
    at: integer(row, "at"),
    type: text(row, "type"),
  };
}

function findRepeat(
  connection: Connection,
  key: string,
  { append, contentHash }: PreparedAppend,
): Appended | undefined {
  const row = connection.get(
    "SELECT content_hash, stream, first_version, last_version FROM append_keys WHERE key = ?",
    key,
  );
  if (row === undefined) return undefined;
  const stream = text(row, "stream");
  if (text(row, "content_hash") !== contentHash) {
    // The one who used the key has the lease now, which is what the caller must know.
    if (append.lease !== undefined) refuseLost(connection, append.lease);
    refuseOtherContent(key, stream);
  }
  const range = { first: integer(row, "first_version"), last: integer(row, "last_version") };
  return { events: readVersions(connection, stream, range), isRepeat: true };
}

function insert(connection: Connection, { event, stored, bodyHash, prevHash }: ChainedEvent): StoredEvent {
  const { stream, version, id, at, author, body, hash } = event;
  const row = connection.get(
    `INSERT INTO events (stream, version, id, at, author, type, v, body, body_hash, prev_hash, hash)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING position`,
    stream,
    version,
    id,
    at,
    author,
    body.type,
    body.v,
    stored,
    bodyHash,
    prevHash,
    hash,
  );
  return { position: integer(row, "position"), ...event, prevHash };
}
