/** Entries from their rows and events, alone and by their replies. Chains are walked in a loop: they may be as long as they like. */
import { isTaskEvent, NOTE_STREAM, type EvidenceChain, type EvidenceEntry, type StoredEvent } from "@heddle/protocol";
import { entryFacts } from "../../projections/evidence-entry.ts";
import { wordsOf } from "../../projections/words.ts";
import type { EvidenceRecord } from "../../queries/evidence.ts";
import { EVENT_COLUMNS, integer, optionalText, text, toEvent, type Row } from "../../record/rows.ts";
import { all, get, rowsAs, type Asking } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import { LAST_ID } from "./threads.ts";

const COLUMNS = EVENT_COLUMNS.split(", ")
  .map((name) => `v.${name}`)
  .join(", ");
const ALIVE = "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)";
const ENTRY = `SELECT ${COLUMNS}, e.task, e.envelope FROM`;
const among = ({ each }: Dialect, type: "BIGINT" | "TEXT"): string =>
  `IN (SELECT CAST(value AS ${type}) FROM ${each("?", "asked")})`;
const at = (dialect: Dialect): string => `${ENTRY} evidence e ${dialect.join} events v ON v.position = e.position
  WHERE e.position ${among(dialect, "BIGINT")} AND ${ALIVE}`;
const byId = ({ join }: Dialect): string => `${ENTRY} events v ${join} evidence e ON e.position = v.position
  WHERE v.id = ? AND ${ALIVE}`;
const beginningWith = ({
  join,
}: Dialect): string => `SELECT v.id FROM events v ${join} evidence e ON e.position = v.position
  WHERE v.id >= ? AND v.id < ? AND v.body IS NOT NULL AND ${ALIVE} ORDER BY v.id LIMIT ?`;
/** The newest last. */
const corrections = (
  dialect: Dialect,
): string => `SELECT e.reply_to, v.id FROM evidence e${dialect.by("evidence_by_reply")}
  ${dialect.join} events v ON v.position = e.position
  WHERE e.reply_to ${among(dialect, "TEXT")} AND e.claim = 'correction' AND ${ALIVE} ORDER BY e.position`;
const replies = ({ by, join }: Dialect): string => `SELECT e.position, v.id FROM evidence e${by("evidence_by_reply")}
  ${join} events v ON v.position = e.position WHERE e.reply_to = ? AND ${ALIVE} ORDER BY e.position LIMIT ?`;

const DEFAULT_CHAIN = 1_000;

interface ChainOptions {
  readonly limit: number | undefined;
  readonly dialect: Dialect;
}

/** In the order of the positions; what was purged meanwhile is left out. */
export function* readEntries(positions: readonly number[], dialect: Dialect): Asking<readonly EvidenceEntry[]> {
  const rows = yield* rowsAt(positions, dialect);
  const events = positions.flatMap((position) => {
    const row = rows.get(position);
    return row === undefined ? [] : [{ row, event: toEvent(row) }];
  });
  const ids = events.map(({ event }) => event.id);
  const correctedBy = yield* correctionsOf(ids, dialect);
  return events.map(({ row, event }) => toEntry(row, event, correctedBy));
}

function* rowsAt(positions: readonly number[], dialect: Dialect): Asking<ReadonlyMap<number, Row>> {
  if (positions.length === 0) return new Map();
  const rows = yield* all(at(dialect), JSON.stringify(positions));
  return new Map(rows.filter((row) => row["body"] !== null).map((row) => [integer(row, "position"), row]));
}

/** By the id of what is corrected. */
function* correctionsOf(ids: readonly string[], dialect: Dialect): Asking<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const pair = (row: Row): readonly [string, string] => [text(row, "reply_to"), text(row, "id")];
  return new Map(yield* rowsAs(corrections(dialect), pair, JSON.stringify(ids)));
}

export function idsBeginningWith(prefix: string, limit: number, dialect: Dialect): Asking<readonly string[]> {
  const upTo = `${prefix}${LAST_ID}`;
  return rowsAs(beginningWith(dialect), (row) => text(row, "id"), prefix, upTo, limit);
}

export function* readRecord(id: string, dialect: Dialect): Asking<EvidenceRecord | undefined> {
  const row = yield* get(byId(dialect), id);
  if (row === undefined || row["body"] === null) return undefined;
  const event = toEvent(row);
  return { ...toEntry(row, event, yield* correctionsOf([id], dialect)), body: event.body };
}

/** Those that have all of the words, by the text of the entries themselves, as it was indexed. */
export function* havingWords(
  positions: readonly number[],
  words: readonly string[],
  dialect: Dialect,
): Asking<readonly number[]> {
  const rows = yield* rowsAt(positions, dialect);
  return positions.filter((position) => {
    const row = rows.get(position);
    const facts = row === undefined ? undefined : entryFacts(toEvent(row));
    const own = new Set(facts === undefined ? [] : wordsOf(facts.text));
    return words.every((word) => own.has(word));
  });
}

function toEntry(row: Row, event: StoredEvent, corrections: ReadonlyMap<string, string>): EvidenceEntry {
  const { id, position, stream, version, at, author, body, hash } = event;
  const facts = entryFacts(event);
  if (facts === undefined) throw new TypeError(`${body.type} is not an entry of the evidence`);
  const { claim, subject, refs, tags, turn, replyTo } = facts;
  const [task, envelope] = [optionalText(row, "task"), optionalText(row, "envelope")];
  const corrected = corrections.get(id);
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
    ...(corrected === undefined ? {} : { correctedBy: corrected }),
    text: facts.text,
    hash,
    ...(body.type === "evidence.imported" ? { imported: body.origin } : {}),
  };
}

export function* ancestorsOf(id: string, { limit = DEFAULT_CHAIN, dialect }: ChainOptions): Asking<EvidenceChain> {
  const entries: EvidenceEntry[] = [];
  let next = (yield* readRecord(id, dialect))?.replyTo;
  while (next !== undefined && entries.length < limit) {
    const record: EvidenceRecord | undefined = yield* readRecord(next, dialect);
    if (record === undefined) return { entries, isCut: false };
    const { body: _body, ...entry } = record;
    entries.push(entry);
    next = entry.replyTo;
  }
  return { entries, isCut: next !== undefined };
}

export function* descendantsOf(id: string, { limit = DEFAULT_CHAIN, dialect }: ChainOptions): Asking<EvidenceChain> {
  const positions: number[] = [];
  const waiting = [id];
  for (let index = 0; index < waiting.length && positions.length <= limit; index += 1) {
    const [of, most] = [waiting[index] ?? "", limit + 1 - positions.length];
    for (const row of yield* all(replies(dialect), of, most)) {
      positions.push(integer(row, "position"));
      waiting.push(text(row, "id"));
    }
  }
  const kept = positions.slice(0, limit).toSorted((a, b) => a - b);
  return { entries: yield* readEntries(kept, dialect), isCut: positions.length > limit };
}
