/**
 * Notes in the evidence: from tools, clients and the command line alike. The author is the caller's, never the note's; what a
 * note replies to exists; the same note again is stored once.
 */
import { createHash } from "node:crypto";
import {
  EvidenceNote,
  HeddleError,
  NOTE_STREAM,
  PLAIN,
  reasonOf,
  uuidv7,
  type By,
  type EvidenceEntry,
  type EvidenceRef,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { requireThread } from "../threads/threads.ts";

export interface GivenNote {
  /** Absent: beside any thread, about its subject. It is kept until its owner purges it. */
  readonly threadId?: string | undefined;
  readonly note: EvidenceNote;
  /** The turn whose agent notes it. */
  readonly duringTurn?: string | undefined;
}

/** The entry, once it is durable. `store.id-conflict`: another note has its id. */
export async function noteEvidence(
  journal: Journal,
  { threadId, note: given, duringTurn, by }: GivenNote & By,
): Promise<EvidenceEntry> {
  const parsed = EvidenceNote.safeParse(given, PLAIN);
  if (!parsed.success) {
    throw new HeddleError("usage.invalid", `evidence note: ${reasonOf(parsed.error)}`, { cause: parsed.error });
  }
  const { noteId = `note_${uuidv7()}`, claim, text, subject, refs = [], tags = [], replyTo } = parsed.data;
  if (threadId !== undefined) await requireThread(journal, threadId);
  else if (subject === undefined)
    throw new HeddleError("usage.invalid", "a note that is in no thread needs a subject: what it is about");
  if (replyTo !== undefined && (await journal.evidence.get(replyTo)) === undefined) {
    const message = `there is no entry ${replyTo} to reply to; ids are those that heddle evidence query shows`;
    throw new HeddleError("evidence.not-found", message, { details: { id: replyTo } });
  }
  const { events } = await journal.append({
    stream: threadId ?? noteStream(noteId),
    author: by,
    key: `evidence.noted:${noteId}`,
    events: [
      {
        type: "evidence.noted",
        v: 1,
        noteId,
        claim,
        text,
        ...(subject === undefined ? {} : { subject }),
        refs: unique(refs),
        tags: [...new Set(tags)].toSorted(),
        ...(replyTo === undefined ? {} : { replyTo }),
        ...(duringTurn === undefined ? {} : { duringTurn }),
      },
    ],
  });
  const record = await journal.evidence.get(events[0]?.id ?? "");
  if (record === undefined) throw new HeddleError("evidence.not-found", "the note has been purged in the meantime");
  const { body: _body, ...entry } = record;
  return entry;
}

/** A note beside threads has a stream of its own, so that it is purged alone; the same note has the same one. */
function noteStream(noteId: string): string {
  return `${NOTE_STREAM}${createHash("sha256").update(noteId).digest("hex").slice(0, 32)}`;
}

/** Removes what a note beside any thread says; that it was there, by whom and when, stays on record. */
export async function purgeNote(journal: Journal, { id, by }: { readonly id: string } & By): Promise<void> {
  const record = await journal.evidence.get(id);
  if (record === undefined) throw new HeddleError("evidence.not-found", `there is no entry ${id}`, { details: { id } });
  const { stream } = record;
  if (!stream.startsWith(NOTE_STREAM)) {
    const message = `${id} is in ${stream}, which is purged as a whole; only a note that is in no thread is purged by itself`;
    throw new HeddleError("usage.invalid", message);
  }
  await journal.purge({ stream, author: by, reason: "the note was purged" });
}

function unique(refs: readonly EvidenceRef[]): EvidenceRef[] {
  return [...new Map(refs.map((ref) => [`${ref.type} ${ref.id}`, ref])).values()];
}
