/** The shapes of the evidence over HTTP. A query is one of words: lists are separated by commas, pairs by a colon. */
import { z } from "zod";
import { GuardFinding } from "../events/envelope-events.ts";
import { Gate, GateName } from "../envelopes/envelope.ts";
import { EventBody } from "../events/events.ts";
import { EvidenceEntry } from "../evidence/evidence-entry.ts";
import { EvidenceNote } from "../events/evidence-events.ts";
import { EvidenceQuery, EvidenceRef } from "../evidence/evidence-query.ts";
import { flag, Id, time, wholeNumber } from "./http-parts.ts";

const words = z
  .string()
  .min(1)
  .max(4_000)
  .transform((text) => text.split(","));
const pair = z
  .string()
  .regex(/^[^:]+:./s, "is TYPE:ID")
  .max(1_200)
  .transform((text) => ({ type: text.slice(0, text.indexOf(":")), id: text.slice(text.indexOf(":") + 1) }));
const subject = z
  .string()
  .min(1)
  .max(1_200)
  .transform((text) => {
    const at = text.indexOf(":");
    return at < 0 ? { type: text } : { type: text.slice(0, at), id: text.slice(at + 1) };
  });

const FILTERS = {
  text: z.string().max(1000).optional().describe("Words that the entry must have, all of them"),
  thread: words.optional(),
  turn: Id.optional(),
  task: words.optional(),
  author: words.optional(),
  type: words.optional().describe("Types of events; `tool.*` for all that begin so"),
  claim: words.optional().describe("goal, step, conclusion, question, correction"),
  subject: subject.optional().describe("`TYPE` or `TYPE:ID`"),
  ref: pair.optional().describe("`TYPE:ID`"),
  tags: words.optional().describe("All of them"),
  anyTag: words.optional(),
  envelope: Id.optional().describe("Hash of the envelope in force"),
  replyTo: Id.optional(),
  forkOf: Id.optional(),
  since: wholeNumber("since").optional().describe("Milliseconds since 1970"),
  before: wholeNumber("before").optional(),
  origin: EvidenceQuery.shape.origin.describe("`local` when absent, unless threads are named"),
};

export const EvidenceFilters = z.strictObject(FILTERS);
export const EvidenceListQuery = z.strictObject({
  ...FILTERS,
  order: EvidenceQuery.shape.order,
  limit: wholeNumber("limit").optional().describe("1 to 1000; 100 when absent"),
  cursor: z.string().max(200).optional().describe("`next` of the page before"),
});
export const EvidenceStreamQuery = z.strictObject({
  ...FILTERS,
  after: wholeNumber("after").optional().describe("The position to continue after; `Last-Event-ID` says the same"),
  follow: z
    .enum(["true", "false"])
    .transform((word) => word === "true")
    .optional()
    .describe("false: end when everything stored has been sent"),
});
export const EvidenceParams = z.strictObject({ entryId: Id });
export const EvidenceList = z.object({ data: z.array(EvidenceEntry), nextCursor: z.string().nullable() });
export const EvidenceCount = z.object({ count: z.int() });
export const EvidenceDetail = EvidenceEntry.extend({ body: EventBody });
export const EvidenceChainAnswer = z.object({
  ancestors: z.array(EvidenceEntry).describe("Nearest first"),
  entry: EvidenceEntry,
  descendants: z.array(EvidenceEntry),
  isCut: z.boolean().describe("There are more than these"),
  forks: z.array(z.object({ threadId: z.string(), version: z.int() })).describe("Threads whose past holds the entry"),
});
export const NoteBody = EvidenceNote;
/** Levels that read; the checks of a task are run again by its own method. */
export const VerifyBody = z.strictObject({
  subject: Id.optional().describe("A thread or a task; absent: the whole record"),
  level: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4), z.literal(5)]).optional(),
});
const LevelNumber = z.int().min(1).max(6);
export const VerdictAnswer = z.object({
  result: z.enum(["clean", "violation", "tampered", "cannotVerify"]),
  reason: z.string().optional(),
  report: z
    .looseObject({ events: z.int(), streams: z.int(), checkpoints: z.int(), claims: z.int() })
    .optional()
    .describe("What levels 1 and 2 found, with all their damage"),
  levels: z.array(z.object({ level: LevelNumber, name: z.string(), examined: z.int(), what: z.string() })),
  findings: z.array(
    z.object({
      level: LevelNumber,
      code: z.string(),
      weight: z.enum(["tampered", "violation", "unproven", "warning"]),
      message: z.string(),
      stream: z.string().optional(),
      version: z.int().optional(),
    }),
  ),
  running: z.array(z.string()).describe("What had not ended; what is stored of it was verified"),
  violations: z.array(z.string()).describe("Protected paths that were written"),
  at: time.describe("When it began"),
  upTo: z.int().describe("Position of the last event that was there then; what came later was not verified"),
});
export const LastVerdictQuery = z.strictObject({ subject: Id.optional().describe("As it was verified; absent: all") });
export const LastVerdict = z.object({
  verdict: VerdictAnswer.nullable().describe("Of the last verification through this server; null: there was none"),
  position: z.int().describe("Of the newest event now"),
});
export type LastVerdict = z.output<typeof LastVerdict>;
export type VerdictAnswer = z.output<typeof VerdictAnswer>;
export const CheckpointList = z.object({
  data: z.array(
    z.object({
      seq: z.int().describe("Of the event that it signs, and with it all before"),
      hash: z.string().describe("Of that event"),
      at: time,
      keyId: z.string(),
      signature: z.string(),
    }),
  ),
});
export type CheckpointList = z.output<typeof CheckpointList>;
export const PurgeBody = z.strictObject({
  id: Id.describe("A thread, an import (`import_…`), or a note in no thread"),
});
export const PurgeAnswer = z.object({ kind: z.enum(["thread", "import", "note"]), id: z.string() });
export type PurgeAnswer = z.output<typeof PurgeAnswer>;
export const BundleQuery = z.strictObject({
  outputs: flag.optional().describe("With the whole outputs that the thread names"),
});
export const ImportQuery = z.strictObject({
  trustKey: z.string().max(200).optional().describe("The id of the key that is trusted from now on"),
});
export const ImportAnswer = z.object({
  keyId: z.string(),
  streams: z.array(z.string()).describe("Where the entries are now"),
  imported: z.int(),
  known: z.int().describe("Imported before"),
  unread: z.int(),
  outputs: z.int(),
});
export type ImportAnswer = z.output<typeof ImportAnswer>;
export const NoteAboutBody = EvidenceNote.extend({ subject: EvidenceRef });
export const GateParams = z.strictObject({ threadId: Id, name: GateName });
export const GateAnswer = z.object({
  isPassed: z.boolean(),
  entryId: z.string().describe("The proof, as an entry of the evidence"),
  proof: z.object({
    gateId: z.string(),
    gate: Gate,
    gateHash: z.string(),
    path: z.array(GuardFinding).describe("Each guard up to the first that is not met"),
    envelopeHash: z.string(),
  }),
});
export type GateAnswer = z.output<typeof GateAnswer>;
export { EvidenceEntry };

export type EvidenceList = z.output<typeof EvidenceList>;
export type EvidenceDetail = z.output<typeof EvidenceDetail>;
export type EvidenceChainAnswer = z.output<typeof EvidenceChainAnswer>;
