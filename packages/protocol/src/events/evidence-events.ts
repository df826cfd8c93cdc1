/** What an agent or a user notes for whoever reads the record later; part of the union in events.ts. */
import { z } from "zod";
import { event } from "./event-parts.ts";
import { EvidenceClaim, EvidenceRef, EvidenceTag } from "../evidence/evidence-query.ts";

/** Longer findings belong in a file, with a reference to it. */
export const MAX_NOTE_CHARS = 4_000;
const MAX_NOTE_REFS = 32;
const MAX_NOTE_TAGS = 32;

/** A note as it is given. Its author is whoever gives it, and its thread is where it is given. */
export const EvidenceNote = z.strictObject({
  /** Of the writer: a note that is sent again under its id is stored once. Absent: a new one. */
  noteId: z
    .string()
    .regex(/^[A-Za-z0-9._:-]{1,128}$/, "must be of letters, digits and . _ : -")
    .optional(),
  claim: EvidenceClaim,
  text: z.string().min(1).max(MAX_NOTE_CHARS),
  /** Absent: the thread. */
  subject: EvidenceRef.optional(),
  refs: z.array(EvidenceRef).max(MAX_NOTE_REFS).optional(),
  tags: z.array(EvidenceTag).max(MAX_NOTE_TAGS).optional(),
  /** The id of an entry; it must exist. */
  replyTo: z.string().min(1).max(256).optional(),
});
export type EvidenceNote = z.infer<typeof EvidenceNote>;

/** Where an imported entry was stored first: an event of a home whose key signed it. */
export const ImportOrigin = z.object({
  /** Of the key that signed the bundle. */
  keyId: z.string(),
  stream: z.string(),
  version: z.int(),
  id: z.string(),
  at: z.int(),
  author: z.string(),
  type: z.string(),
  hash: z.string(),
});

export const evidenceEvents = [
  event("evidence.noted", {
    noteId: z.string(),
    claim: EvidenceClaim,
    text: z.string(),
    subject: EvidenceRef.optional(),
    refs: z.array(EvidenceRef),
    tags: z.array(z.string()),
    replyTo: z.string().optional(),
    /** The turn whose agent noted it; absent: noted from outside. */
    duringTurn: z.string().optional(),
  }),
  /** Whole outputs that this stream names and the home keeps no longer, by the owner's rule; stored before they are removed. */
  event("evidence.collected", {
    blobs: z.array(z.object({ sha256: z.string(), bytes: z.number(), why: z.enum(["age", "size"]) })),
  }),
  /** An entry of another home, as that home signed it. Its stream holds nothing else, and no thread can run there. */
  event("evidence.imported", {
    origin: ImportOrigin,
    claim: EvidenceClaim,
    subject: EvidenceRef,
    refs: z.array(EvidenceRef),
    tags: z.array(z.string()),
    text: z.string(),
    /** The whole event; absent where it was too long to take over. */
    body: z.unknown().optional(),
  }),
] as const;
