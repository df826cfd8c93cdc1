/** Entries from their rows and events, alone and by their replies. Chains are walked in a loop: they may be as long as they like. */
import { isTaskEvent, NOTE_STREAM, type EvidenceChain, type EvidenceEntry, type StoredEvent } from "@heddle/protocol";
import { entryFacts } from "../../projections/evidence-entry.ts";
import { wordsOf } from "../../projections/words.ts";
import type { EvidenceRecord } from "../../queries/evidence.ts";
import { EVENT_COLUMNS, integer, optionalText, text, toEvent, type Row } from "../../record/rows.ts";
import type { Connection } from "../driver.ts";
import { LAST_ID } from "./threads.ts";

const COLUMNS = EVENT_COLUMNS.split(", ")
  .map((name) => `v.${name}`)
  .join(", ");
const ALIVE = "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)";
const ENTRY = `SELECT ${COLUMNS}, e.task, e.envelope FROM evidence e CROSS JOIN events v ON v.position = e.position`;
const AT = `${ENTRY} WHERE e.position = ? AND ${ALIVE}`;
const BY_ID = `SELECT position FROM events WHERE id = ?`;
const BEGINNING_WITH = `SELECT v.id FROM events v CROSS JOIN evidence e ON e.position = v.position
  WHERE v.id >= ? AND v.id < ? AND v.body IS NOT NULL AND ${ALIVE} ORDER BY v.id LIMIT ?`;
const CORRECTION = `SELECT v.id FROM evidence e INDEXED BY evidence_by_reply CROSS JOIN events v ON v.position = e.position
  WHERE e.reply_to = ? AND e.claim = 'correction' AND ${ALIVE} ORDER BY e.position DESC LIMIT 1`;
const REPLIES = `SELECT e.position FROM evidence e INDEXED BY evidence_by_reply
  WHERE e.reply_to = ? AND ${ALIVE} ORDER BY e.position LIMIT ?`;

const DEFAULT_CHAIN = 1_000;

/** undefined: purged meanwhile. */
export function readEntry(connection: Connection, position: number): EvidenceEntry | undefined {
  const row = connection.get(AT, position);
  return row === undefined || row["body"] === null ? undefined : toEntry(connection, row, toEvent(row));
}

export function idsBeginningWith(connection: Connection, prefix: string, limit: number): readonly string[] {
  return connection.all(BEGINNING_WITH, prefix, `${prefix}${LAST_ID}`, limit).map((row) => text(row, "id"));
}

export function readRecord(connection: Connection, id: string): EvidenceRecord | undefined {
  const found = connection.get(BY_ID, id);
  const row = found && connection.get(AT, integer(found, "position"));
  if (row === undefined || row["body"] === null) return undefined;
  const event = toEvent(row);
  return { ...toEntry(connection, row, event), body: event.body };
}

/** By the text of the entry itself, as it was indexed. */
export function hasWords(connection: Connection, position: number, words: readonly string[]): boolean {
  const row = connection.get(AT, position);
  const facts = row === undefined || row["body"] === null ? undefined : entryFacts(toEvent(row));
  const own = new Set(facts === undefined ? [] : wordsOf(facts.text));
  return words.every((word) => own.has(word));
}

function toEntry(connection: Connection, row: Row, event: StoredEvent): EvidenceEntry {
  const { id, position, stream, version, at, author, body, hash } = event;
  const facts = entryFacts(event);
  if (facts === undefined) throw new TypeError(`${body.type} is not an entry of the evidence`);
  const { claim, subject, refs, tags, turn, replyTo } = facts;
  const [task, envelope] = [optionalText(row, "task"), optionalText(row, "envelope")];
  const corrected = connection.get(CORRECTION, id);
  return {
    id,
    position,
    stream,
    version,
    ...(isTaskEvent(body) || body.type === "evidence.imported" || stream.startsWith(NOTE_STREAM)
      ? {}
      : { thread: stream }),
    ...(turn === undefined ? {} : { turn }),
    ...(task === undefined ? {} : { task }),
    at,
    author,
    type: body.type,
    claim,
    subject,
    refs: [...refs],
    tags: [...tags],
    ...(envelope === undefined ? {} : { envelope }),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(corrected === undefined ? {} : { correctedBy: text(corrected, "id") }),
    text: facts.text,
    hash,
    ...(body.type === "evidence.imported" ? { imported: body.origin } : {}),
  };
}

export function ancestorsOf(connection: Connection, id: string, limit = DEFAULT_CHAIN): EvidenceChain {
  const entries: EvidenceEntry[] = [];
  let next = readRecord(connection, id)?.replyTo;
  while (next !== undefined && entries.length < limit) {
    const record = readRecord(connection, next);
    if (record === undefined) return { entries, isCut: false };
    const { body: _body, ...entry } = record;
    entries.push(entry);
    next = entry.replyTo;
  }
  return { entries, isCut: next !== undefined };
}

export function descendantsOf(connection: Connection, id: string, limit = DEFAULT_CHAIN): EvidenceChain {
  const positions: number[] = [];
  const waiting = [id];
  for (let index = 0; index < waiting.length && positions.length <= limit; index += 1) {
    for (const row of connection.all(REPLIES, waiting[index] ?? "", limit + 1 - positions.length)) {
      const position = integer(row, "position");
      positions.push(position);
      waiting.push(text(connection.get("SELECT id FROM events WHERE position = ?", position), "id"));
    }
  }
  const kept = positions.slice(0, limit).toSorted((a, b) => a - b);
  const entries = kept.flatMap((position) => readEntry(connection, position) ?? []);
  return { entries, isCut: positions.length > limit };
}
