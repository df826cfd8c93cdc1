/** What must be true before a thread is deleted, and what goes with its bodies; the same for every store in SQL. */
import { HeddleError, NOTE_STREAM, type EventOf } from "@heddle/protocol";
import { isImport } from "../evidence/import-stream.ts";
import { entryFacts } from "../projections/evidence-entry.ts";
import type { EntryFacts } from "../projections/item-entry.ts";
import { wordsOf } from "../projections/words.ts";
import { EVENT_COLUMNS, integer, text, toEvent, type Row } from "../record/rows.ts";
import { all, get, rowsAs, type Asking } from "./ask.ts";
import { THREADS, TURNS } from "./queries/thread-rows.ts";
import { usedBy } from "./queries/usage.ts";

/** Named in a refusal; the rest shows after deleting these. */
const MAX_NAMED_FORKS = 20;

/** Bodies at a time: a few milliseconds, also where each is large, because a slice ends with the row that fills it. */
const SLICE_ROWS = 64;
const SLICE_BYTES = 1024 * 1024;

export interface Forgotten {
  readonly stream: string;
  readonly before: number;
}

/** The event that ends a thread, with the thread's usage; refused while something needs the thread. */
export function* deletionOf(stream: string, reason: string): Asking<EventOf<"thread.deleted">> {
  yield* refuseWhileNeeded(stream);
  const usage = [...(yield* usedBy(stream))];
  return { type: "thread.deleted", v: 1, reason, ...(usage.length === 0 ? {} : { usage }) };
}

function* refuseWhileNeeded(stream: string): Asking<void> {
  if (isImport(stream)) {
    const found = yield* get("SELECT type FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1", stream);
    if (found !== undefined && text(found, "type") !== "thread.deleted") return;
    throw new HeddleError("evidence.not-found", `nothing was imported as ${stream}`, { details: { stream } });
  }
  if (stream.startsWith(NOTE_STREAM)) return yield* requireNote(stream);
  if ((yield* get(THREADS.get, stream)) === undefined) {
    throw new HeddleError("thread.not-found", `there is no thread ${stream}`, { details: { threadId: stream } });
  }
  const open = yield* get(TURNS.openOfThread, stream);
  if (open !== undefined) {
    const turnId = text(open, "id");
    throw new HeddleError("turn.active", `thread ${stream} is busy with turn ${turnId}; interrupt it first`, {
      details: { threadId: stream, turnId },
    });
  }
  const forks = yield* rowsAs(THREADS.forksOf, (row) => text(row, "id"), stream, MAX_NAMED_FORKS);
  if (forks.length === 0) return;
  const message = `thread ${stream} was forked as ${forks.join(", ")}; delete ${forks.length === 1 ? "that one" : "those"} first`;
  throw new HeddleError("thread.has-forks", message, { details: { threadId: stream, forks: forks.join(" ") } });
}

/** A note beside any thread has no row, and nothing is forked from it; it is purged once. */
function* requireNote(stream: string): Asking<void> {
  const row = yield* get("SELECT body FROM events WHERE stream = ? ORDER BY version LIMIT 1", stream);
  if (row === undefined || row["body"] === null)
    throw new HeddleError("evidence.not-found", `there is no note ${stream}`, { details: { id: stream } });
}

/** The last version of the next slice of bodies after a version; undefined: none is left. */
export function* nextSlice({ stream, before }: Forgotten, after: number): Asking<number | undefined> {
  const rows = yield* all(
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
  return last;
}

export const FORGET_BODIES =
  "UPDATE events SET body = NULL WHERE stream = ? AND version > ? AND version <= ? AND body IS NOT NULL";

const COLUMNS = EVENT_COLUMNS.split(", ")
  .map((name) => `v.${name}`)
  .join(", ");
const ENTRIES = `SELECT ${COLUMNS} FROM events v JOIN evidence e ON e.position = v.position
  WHERE v.stream = ? AND v.version > ? AND v.version <= ? AND v.body IS NOT NULL`;

export interface Slice {
  readonly stream: string;
  readonly after: number;
  readonly upTo: number;
}

/** Entries of the evidence, with their tags and references. Words are kept as each store likes: `forget` is asked for each. */
export function* forgetEvidence(
  { stream, after, upTo }: Slice,
  forget: (position: number, words: readonly string[]) => Asking<unknown>,
): Asking<void> {
  for (const row of yield* all(ENTRIES, stream, after, upTo)) {
    const position = integer(row, "position");
    const facts = factsOf(row);
    yield* all("DELETE FROM evidence WHERE position = ?", position);
    for (const tag of facts?.tags ?? [])
      yield* all("DELETE FROM evidence_tag WHERE tag = ? AND position = ?", tag, position);
    for (const { type, id } of facts?.refs ?? [])
      yield* all("DELETE FROM evidence_ref WHERE type = ? AND id = ? AND position = ?", type, id, position);
    if (facts !== undefined) yield* forget(position, wordsOf(facts.text));
  }
}

/** undefined: the body was altered, and what was indexed of it is not known; its row is removed all the same. */
function factsOf(row: Row): EntryFacts | undefined {
  try {
    return entryFacts(toEvent(row));
  } catch {
    return undefined;
  }
}

/** The thread is deleted at that version; a note whose transaction was lost names none. */
export function* isEnded({ stream, before }: Forgotten): Asking<boolean> {
  const row = yield* get("SELECT type FROM events WHERE stream = ? AND version = ?", stream, before);
  return row !== undefined && text(row, "type") === "thread.deleted";
}
