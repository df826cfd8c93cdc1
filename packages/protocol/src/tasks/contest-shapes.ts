/** What is stored and shown of a contest: several contestants at one task, of which the checks and a declared order pick one. */
import { z } from "zod";

const text = z.string().min(1);

/** Who carries out the turns of one contestant; what is absent is as the task says. */
export const TaskAgent = z.strictObject({
  /** In tables; made from the rest when absent. */
  name: text.max(60).optional(),
  runner: text.optional(),
  provider: text.optional(),
  model: text.optional(),
  effort: text.optional(),
});
export type TaskAgent = z.infer<typeof TaskAgent>;

/** As many run on one machine. */
export const MAX_CONTESTANTS = 16;

export const ContestPick = z.enum(["first-verified", "best"]);
export type ContestPick = z.infer<typeof ContestPick>;

export const ContestMeasure = z.enum(["score", "lines", "cost", "time"]);
export type ContestMeasure = z.infer<typeof ContestMeasure>;

/** A command that prints a number in its last line, run on the judged work of each verified contestant; the highest is best. */
export const TaskScore = z.strictObject({
  run: z.union([text, z.array(text).min(1)]),
  timeoutMs: z.number().int().positive().max(3_600_000).default(600_000),
});
export type TaskScore = z.infer<typeof TaskScore>;

/** Whose trees and branches stay when the contest has ended. */
export const ContestKeep = z.enum(["verified", "all", "winner", "none"]);
export type ContestKeep = z.infer<typeof ContestKeep>;

export const Contestant = z.object({
  /** From 1, in the order of the spec. */
  number: z.number().int().positive(),
  name: z.string(),
  /** Its task, whose parent is the contest. */
  taskId: z.string(),
  agent: TaskAgent,
});
export type Contestant = z.infer<typeof Contestant>;

export const ContestRow = z.object({
  number: z.number().int().positive(),
  name: z.string(),
  taskId: z.string(),
  /** Of its task. */
  state: z.string(),
  isVerified: z.boolean(),
  isPicked: z.boolean(),
  /** Why it was picked, or not. */
  why: z.string(),
  /** Among the verified, from 1. */
  rank: z.number().int().positive().optional(),
  /** What is known of it; absent: nothing is. */
  costUsd: z.number().optional(),
  /** A price was not known, or a turn has not been counted yet: it is more. */
  isCostPartial: z.boolean(),
  timeMs: z.number(),
  turns: z.number().int(),
  tokens: z.number().int(),
  /** Of the change that was judged; absent: none was measured. */
  size: z.object({ files: z.number().int(), added: z.number().int(), removed: z.number().int() }).optional(),
  score: z.number().optional(),
  /** Where its work was brought in the repository. */
  branch: z.string().optional(),
});
export type ContestRow = z.infer<typeof ContestRow>;

/** Of a task with agents. */
export const Contest = z.object({
  /** From 1; each retry by the user is another one, with contestants of its own. */
  generation: z.number().int().positive(),
  contestants: z.array(Contestant).readonly(),
  picked: z.object({ number: z.number().int().positive(), reason: z.string() }).optional(),
  /** Picked before, and refused when their work was judged once more. */
  refused: z.array(z.number().int().positive()).readonly(),
  /** As it stood when the contest picked or ended. */
  rows: z.array(ContestRow).readonly().optional(),
  hasEnded: z.boolean(),
});
export type Contest = z.infer<typeof Contest>;
