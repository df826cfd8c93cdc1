/** One entry of the evidence: a stored event, as what it says for whoever looks for it later. */
import { z } from "zod";
import { ImportOrigin } from "../events/evidence-events.ts";
import { EvidenceClaim, EvidenceRef } from "./evidence-query.ts";

export const EvidenceEntry = z.object({
  /** Of the event. */
  id: z.string(),
  /** In the whole journal; entries are ordered by it. */
  position: z.int(),
  /** A thread or a task, and the version in it. */
  stream: z.string(),
  version: z.int(),
  thread: z.string().optional(),
  turn: z.string().optional(),
  /** The task itself, or the one that the thread worked on. */
  task: z.string().optional(),
  at: z.int(),
  author: z.string(),
  type: z.string(),
  claim: EvidenceClaim,
  subject: EvidenceRef,
  refs: z.array(EvidenceRef),
  tags: z.array(z.string()),
  /** Hash of the envelope in force. */
  envelope: z.string().optional(),
  replyTo: z.string().optional(),
  /** The newest correction that replied to it. */
  correctedBy: z.string().optional(),
  /** What can be found by its words: the beginning, and the end where it is long. */
  text: z.string(),
  hash: z.string(),
  /** It was said in another home, and imported here by `author`. What it says there may have been corrected since. */
  imported: ImportOrigin.optional(),
});
export type EvidenceEntry = z.infer<typeof EvidenceEntry>;

export interface EvidencePage {
  readonly entries: readonly EvidenceEntry[];
  /** Asks for what follows; absent: there is no more. */
  readonly next?: string;
}

/** Entries that reply to one another; `isCut`: there are more than were asked for. */
export interface EvidenceChain {
  readonly entries: readonly EvidenceEntry[];
  readonly isCut: boolean;
}
