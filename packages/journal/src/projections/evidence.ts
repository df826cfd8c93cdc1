/**
 * One row per entry of the evidence, with its tags, references and words; rows of a purged thread are removed with its
 * bodies. Envelope and task come from what the stream said before.
 */
import { NOTE_STREAM, type EventBody, type StoredEvent } from "@heddle/protocol";
import { integer, optionalInteger, optionalText, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Cells, type Look, type Projection, type RowChange } from "./changes.ts";
import { entryFacts } from "./evidence-entry.ts";
import type { EntryFacts } from "./item-entry.ts";
import { wordsOf } from "./words.ts";

const table = "evidence";
const WORDS_TABLE = "evidence_words";
const STATE = "evidence_state";
/** No stream has this name: the row of the whole store. */
const STORE = "";
export const SPAN_MS = 300_000;

export const evidence: Projection = {
  table,
  needs(event) {
    const { stream, body } = event;
    if (body.type === "thread.deleted") return NO_LOOKS;
    const stateOf = (of: string): Look => ({
      table: STATE,
      columns: ["envelope", "task", "span"],
      where: { stream: of },
    });
    const isEntry = keepFacts(event) !== undefined;
    if (!isEntry && envelopeAfter(body) === undefined) return NO_LOOKS;
    const held: Look = {
      table: "tasks",
      columns: ["id", "created_position"],
      where: { thread_id: stream, is_held: 1 },
    };
    return [stateOf(stream), stateOf(STORE), ...(body.type === "turn.admitted" ? [held] : [])];
  },
  changes(event, [known = [], store = [], held = []]) {
    const { stream, body } = event;
    if (body.type === "thread.deleted") return [{ kind: "delete", table: STATE, where: { stream } }];
    const before = { envelope: cell(known[0], "envelope"), task: cell(known[0], "task") };
    const after = {
      envelope: envelopeAfter(body) ?? before.envelope,
      task: body.type === "turn.admitted" ? taskOf(held) : before.task,
    };
    const isMoved = after.envelope !== before.envelope || after.task !== before.task;
    const moved: readonly RowChange[] = isMoved
      ? [{ kind: "put", table: STATE, key: { stream }, values: after }]
      : NO_CHANGES;
    const facts = takeFacts(event);
    if (facts === undefined) return moved;
    return [...moved, ...entered(event, facts, after), ...spanOf(event, store[0])];
  },
};

/** Tables that are written with the entries. */
export const evidenceParts: readonly Projection[] = ["evidence_tag", "evidence_ref", "evidence_spans", STATE].map(
  (name) => ({ table: name, changes: () => NO_CHANGES }),
);

/** Between `needs` and `changes`, which are asked about the same event one after the other. */
let kept: { readonly event: StoredEvent; readonly facts: EntryFacts | undefined } | undefined;

function keepFacts(event: StoredEvent): EntryFacts | undefined {
  kept = { event, facts: entryFacts(event) };
  return kept.facts;
}

function takeFacts(event: StoredEvent): EntryFacts | undefined {
  const facts = kept?.event === event ? kept.facts : entryFacts(event);
  kept = undefined;
  return facts;
}

function entered(event: StoredEvent, facts: EntryFacts, { envelope, task }: State): readonly RowChange[] {
  const { position, stream, at, author, body } = event;
  const { claim, subject, turn = null, replyTo = null } = facts;
  const isOfTask = body.type.startsWith("task.");
  const values = {
    stream,
    at,
    author,
    type: body.type,
    claim,
    turn,
    task: isOfTask ? stream : (task ?? taskOfNote(event)),
    subject_type: subject.type,
    subject_id: subject.id,
    envelope: isOfTask ? null : envelope,
    reply_to: replyTo,
  };
  return [
    { kind: "insert", table, key: { position }, values },
    ...facts.tags.map((tag): RowChange => ({
      kind: "insert",
      table: "evidence_tag",
      key: { tag, position },
      values: {},
    })),
    ...facts.refs.map((ref): RowChange => {
      const key = { type: ref.type, id: ref.id, position };
      return { kind: "insert", table: "evidence_ref", key, values: {} };
    }),
    { kind: "words", table: WORDS_TABLE, position, words: wordsOf(facts.text) },
  ];
}

/** A note about a task, beside any thread, is found with the task. */
function taskOfNote({ stream, body }: StoredEvent): string | null {
  if (body.type !== "evidence.noted" || !stream.startsWith(NOTE_STREAM)) return null;
  return body.subject?.type === "task" ? body.subject.id : null;
}

/**
 * Where entries of another five minutes begin, so that a question about a time walks no more than its spans. Positions are never
 * ordered by the clock, which may jump.
 */
function spanOf({ position, at }: StoredEvent, store: Row | undefined): readonly RowChange[] {
  const span = Math.floor(at / SPAN_MS);
  if (store !== undefined && optionalInteger(store, "span") === span) return NO_CHANGES;
  return [
    { kind: "put", table: STATE, key: { stream: STORE }, values: { span } },
    { kind: "insert", table: "evidence_spans", key: { first_position: position }, values: { span } },
  ];
}

type State = Readonly<{ envelope: string | null; task: string | null }> & Cells;

/** The envelope in force from this event on; undefined: as before. */
function envelopeAfter(body: EventBody): string | undefined {
  if (body.type === "turn.started" || body.type === "envelope.entered") return body.envelopeHash;
  return body.type === "hop.taken" && body.scope !== "call" ? body.toHash : undefined;
}

function taskOf(held: readonly Row[]): string | null {
  const oldest = held.toSorted((a, b) => integer(a, "created_position") - integer(b, "created_position"))[0];
  return cell(oldest, "id");
}

function cell(row: Row | undefined, column: string): string | null {
  return row === undefined ? null : (optionalText(row, column) ?? null);
}
