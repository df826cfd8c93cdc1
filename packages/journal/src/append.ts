/**
 * Writing. An append is prepared outside the lock (redacted, put in canonical form, hashed), then stored with its
 * projections in one short transaction. Only the places in chain and journal are decided inside it. A long one is prepared
 * in turns with everything else, see `preparing.ts`.
 */
import { canonical, HeddleError, isUser, newEventId, upcast, type EventBody, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { LONG_CHARS, measured } from "./breathe.ts";
import { genesisOf, hashOf, sha256 } from "./chain.ts";
import type { Connection, Row } from "./driver.ts";
import type { Append, Appended } from "./journal.ts";
import { project } from "./projections/projections.ts";
import { readVersions } from "./read.ts";
import type { Redactor } from "./redact.ts";
import { integer, text } from "./rows.ts";
import { atOnce, type Steps } from "./steps.ts";

export interface PreparedAppend {
  readonly append: Append;
  readonly bodies: readonly PreparedBody[];
  readonly contentHash: string;
}

interface PreparedBody {
  readonly body: EventBody;
  readonly stored: string;
  readonly hash: string;
}

export function prepare(append: Append, redactor: Redactor): PreparedAppend {
  return atOnce(prepareInSteps(append, redactor));
}

export function* prepareInSteps(append: Append, redactor: Redactor): Steps<PreparedAppend> {
  const bodies: PreparedBody[] = [];
  for (const event of append.events) {
    bodies.push(yield* prepareBody(event, redactor));
    yield;
  }
  const { stream } = append;
  // The same words of another user under the same key are the same act, and so is a resend of what an older Heddle stored.
  const author = isUser(append.author) ? "user" : append.author;
  const contentHash = sha256(canonical({ stream, author, bodies: bodies.map((body) => body.hash) }));
  return { append, bodies, contentHash };
}

function* prepareBody(event: EventBody, redactor: Redactor): Steps<PreparedBody> {
  const given = canonical(event);
  yield;
  const redacted = yield* redactor.bodyInSteps(event, given);
  yield;
  const stored = redacted === event ? given : canonical(redacted);
  yield;
  const hash = sha256(stored);
  yield;
  // Read back from the text, so that whoever appends sees what every later reader sees, to the order of its keys.
  return { body: measured(upcast(JSON.parse(stored)), stored.length), stored, hash };
}

/** Inside the write transaction. */
export function store(connection: Connection, prepared: PreparedAppend, now: number): Appended {
  const { append, bodies, contentHash } = prepared;
  const repeat = append.key === undefined ? undefined : findRepeat(connection, append.key, contentHash);
  if (repeat !== undefined) return repeat;
  const head = headOf(connection, append.stream);
  refuseDeleted(connection, prepared, head);
  if (append.expectedVersion !== undefined && append.expectedVersion !== head.version) {
    throw new HeddleError(
      "store.version-conflict",
      `${append.stream} is at version ${head.version}, not ${append.expectedVersion}`,
      { details: { stream: append.stream, expected: append.expectedVersion, actual: head.version } },
    );
  }
  const events: StoredEvent[] = [];
  let { version, hash: prevHash } = head;
  // The wall clock may jump back; within a stream time stands still then.
  const at = Math.max(Math.trunc(now), head.at);
  for (const body of bodies) {
    failpoint("journal.append.before-insert");
    version += 1;
    const event = insert(connection, { append, body, version, at, prevHash });
    project(connection, event);
    prevHash = event.hash;
    events.push(event);
  }
  if (append.key !== undefined) {
    connection.run(
      "INSERT INTO append_keys (key, content_hash, stream, first_version, last_version) VALUES (?, ?, ?, ?, ?)",
      append.key,
      contentHash,
      append.stream,
      head.version + 1,
      version,
    );
  }
  failpoint("journal.append.before-commit");
  return { events, isRepeat: false };
}

interface Head {
  readonly version: number;
  readonly hash: string;
  readonly at: number;
  readonly type: string;
}

/** Nothing follows the end of a thread, and nothing new may have its past there. */
function refuseDeleted(connection: Connection, { append }: PreparedAppend, head: Head): void {
  if (head.type === "thread.deleted") throw deletedError(append.stream);
  for (const body of append.events) {
    if (body.type !== "thread.created" || body.forkedFrom === undefined) continue;
    const { threadId } = body.forkedFrom;
    if (headOf(connection, threadId).type === "thread.deleted") throw deletedError(threadId);
  }
}

function deletedError(threadId: string): HeddleError {
  return new HeddleError("thread.not-found", `thread ${threadId} was deleted`, { details: { threadId } });
}

function headOf(connection: Connection, stream: string): Head {
  const row = connection.get(
    "SELECT version, hash, at, type FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1",
    stream,
  );
  if (row === undefined) return { version: 0, hash: genesisOf(stream), at: 0, type: "" };
  return {
    version: integer(row, "version"),
    hash: text(row, "hash"),
    at: integer(row, "at"),
    type: text(row, "type"),
  };
}

function findRepeat(connection: Connection, key: string, contentHash: string): Appended | undefined {
  const row: Row | undefined = connection.get(
    "SELECT content_hash, stream, first_version, last_version FROM append_keys WHERE key = ?",
    key,
  );
  if (row === undefined) return undefined;
  if (text(row, "content_hash") !== contentHash) {
    throw new HeddleError("store.id-conflict", `the key ${key} was used before with other content`, {
      details: { key, stream: text(row, "stream") },
    });
  }
  const range = { first: integer(row, "first_version"), last: integer(row, "last_version") };
  return { events: readVersions(connection, text(row, "stream"), range), isRepeat: true };
}

interface Insertion {
  readonly append: Append;
  readonly body: PreparedBody;
  readonly version: number;
  readonly at: number;
  readonly prevHash: string;
}

function insert(connection: Connection, insertion: Insertion): StoredEvent {
  const { append, body, version, at, prevHash } = insertion;
  const { stream, author } = append;
  const { type, v } = body.body;
  const id = newEventId();
  const hash = hashOf({ id, stream, version, at, author, type, v, bodyHash: body.hash, prevHash });
  const row = connection.get(
    `INSERT INTO events (stream, version, id, at, author, type, v, body, body_hash, prev_hash, hash)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING position`,
    stream,
    version,
    id,
    at,
    author,
    type,
    v,
    body.stored,
    body.hash,
    prevHash,
    hash,
  );
  return { position: integer(row, "position"), stream, version, id, at, author, body: body.body, hash };
}

export interface WriteKind {
  readonly durability: "full" | "relaxed";
  /** A full disk must not keep a turn open: room that was kept for its end is given up. */
  readonly endsTurn: boolean;
}

/** It makes room, so it may take what is kept for ends. */
export const MAKES_ROOM: WriteKind = { durability: "full", endsTurn: true };
export const PLAIN: WriteKind = { durability: "full", endsTurn: false };

export function durabilityOf({ append }: PreparedAppend): "full" | "relaxed" {
  return append.durability ?? "full";
}

export function charsOf({ bodies }: PreparedAppend): number {
  return bodies.reduce((sum, { stored }) => sum + stored.length, 0);
}

export function isLongAppend(prepared: PreparedAppend): boolean {
  return charsOf(prepared) > LONG_CHARS;
}

export function endsTurn(prepared: PreparedAppend): boolean {
  return prepared.append.events.some((event) => event.type === "turn.completed");
}
