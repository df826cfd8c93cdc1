/** The envelope a thread is in, as events: entered, left, and hops by name that were refused. */
import { z } from "zod";
import { Envelope, Gate, HopChannel, SandboxLevel } from "../envelopes/envelope.ts";
import { event, Failure, turnEvent } from "./event-parts.ts";

const EnvelopeCause = z.enum(["start", "settings", "hop", "back"]);

/** What a look at one guard found. */
export const GuardFinding = z.object({
  kind: z.string(),
  isMet: z.boolean(),
  found: z.string(),
  /** Ids of entries of the evidence that it looked at, the newest first. */
  entries: z.array(z.string()).optional(),
  /** Of a gate: where its proof is on record. */
  gateId: z.string().optional(),
});
export type GuardFinding = z.infer<typeof GuardFinding>;

/** The way through a gate: each guard that was looked at, up to the first that is not met. */
const GateProof = {
  gateId: z.string(),
  duringTurn: z.string().optional(),
  gate: Gate,
  gateHash: z.string(),
  path: z.array(GuardFinding),
  /** Of the envelope in whose sandbox it was looked at. */
  envelopeHash: z.string(),
  /** Absent: somebody ran the gate by itself. */
  hop: z.object({ to: z.string(), channel: HopChannel }).optional(),
};

/** A hop by name, as it was asked for and judged. */
const HopFacts = z.object({
  to: z.string(),
  channel: HopChannel,
  reason: z.string(),
  carry: z.record(z.string(), z.unknown()).optional(),
  guards: z.array(GuardFinding),
  callId: z.string().optional(),
  approvalId: z.string().optional(),
});
export type HopFacts = z.infer<typeof HopFacts>;

export const envelopeEvents = [
  /**
   * The thread is in this envelope from here on. `start`: its first turn; `settings`: its settings or the configuration give
   * another one; `hop` and `back`: it was left by an edge, in the same append as `envelope.left`.
   */
  event("envelope.entered", {
    duringTurn: z.string().optional(),
    cause: EnvelopeCause,
    envelope: Envelope,
    envelopeHash: z.string(),
    sandboxLevel: SandboxLevel,
    /** The widest envelope of the thread; absent: as before, or none. */
    ceiling: Envelope.optional(),
    /** How many envelopes `back` can go back through. */
    depth: z.int(),
    hop: HopFacts.optional(),
    /** Name of the list of files and hashes in the store of contents, where the envelope asks for one. */
    manifest: z.string().optional(),
  }),
  event("envelope.left", {
    duringTurn: z.string().optional(),
    cause: z.union([EnvelopeCause, z.literal("end")]),
    envelopeHash: z.string(),
    /** Tool calls since it was entered. */
    calls: z.int(),
    outcome: z.unknown().optional(),
    manifest: z.string().optional(),
  }),
  /** A hop by name that was not allowed: the thread stays where it is. */
  event("envelope.hop-refused", {
    duringTurn: z.string().optional(),
    from: z.string(),
    hop: HopFacts,
    failure: Failure,
  }),
  /**
   * Files of the workspace that differ between the first call of a turn and its end, or the hop before that, in an envelope
   * that may not write them. By what the file system says of each, not by content.
   */
  turnEvent("files.compared", {
    folder: z.string(),
    /** How many were there and were looked at, folders included. */
    files: z.int(),
    /** Absolute; the first ones. */
    changed: z.array(z.object({ path: z.string(), change: z.enum(["added", "removed", "changed"]) })),
    /** How many more changed. */
    more: z.int().optional(),
    /** Not all was looked at: there are too many files, it took too long, or a folder cannot be read. */
    notExamined: z.enum(["files", "time", "unreadable"]).optional(),
  }),
  event("gate.passed", GateProof),
  event("gate.refused", GateProof),
] as const;
