/** A question to the evidence: which entries. Closed, because a filter that is passed over answers another question. */
import { z } from "zod";

/** What an entry is for whoever reads it later. */
export const EvidenceClaim = z.enum(["goal", "step", "conclusion", "question", "correction"]);
export type EvidenceClaim = z.infer<typeof EvidenceClaim>;

/** Types are open: thread, turn, task, file, commit, url, agent, envelope, tool, check, evidence and whatever users name. */
export const EvidenceRef = z.strictObject({
  type: z.string().regex(/^[a-z][a-z0-9._-]{0,63}$/, "must be a short name in lower case"),
  id: z.string().min(1).max(1024),
});
export type EvidenceRef = z.infer<typeof EvidenceRef>;

export const EvidenceTag = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._:/-]{0,63}$/, "must be lower-case letters, digits and . _ : / -");

const name = z.string().min(1).max(256);
const oneOrMore = <T extends z.ZodType>(one: T) => z.union([one, z.array(one).min(1).max(100)]);

export const EvidenceQuery = z.strictObject({
  subject: z.strictObject({ type: EvidenceRef.shape.type, id: EvidenceRef.shape.id.optional() }).optional(),
  ref: EvidenceRef.optional(),
  /** All of them. */
  tags: z.array(EvidenceTag).min(1).max(32).optional(),
  anyTag: z.array(EvidenceTag).min(1).max(32).optional(),
  thread: oneOrMore(name).optional(),
  turn: name.optional(),
  task: oneOrMore(name).optional(),
  author: oneOrMore(name).optional(),
  /** The type of an event, or `tool.*` for all that begin so. */
  type: oneOrMore(z.string().regex(/^[a-z][a-z0-9-]*(\.[a-z0-9-]+)*(\.\*)?$/)).optional(),
  claim: oneOrMore(EvidenceClaim).optional(),
  /** The hash of the envelope that was in force. */
  envelope: name.optional(),
  /** Answers to this entry. */
  replyTo: name.optional(),
  /** Entries of threads that were forked from this one. */
  forkOf: name.optional(),
  /** Milliseconds since 1970: from, and before. */
  since: z.int().optional(),
  before: z.int().optional(),
  /** Words, all of them, as they are: nothing in it is an operator. */
  text: z.string().min(1).max(1000).optional(),
  /** Absent: `local`, unless threads are named. What was imported is in no answer that does not ask for it. */
  origin: z.enum(["local", "imported", "any"]).optional(),
  order: z.enum(["newest", "oldest"]).optional(),
  limit: z.int().min(1).max(1000).optional(),
  cursor: z.string().max(200).optional(),
});
export type EvidenceQuery = z.infer<typeof EvidenceQuery>;
