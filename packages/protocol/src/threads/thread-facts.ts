/** What a thread has besides its turns: a goal, git information, tools of clients, and text added to its conversation. */
import { z } from "zod";
import { Envelope } from "../envelopes/envelope.ts";
import { InputPart } from "./items.ts";
import { ModelOutputPart } from "./model-output.ts";

/** The thread that started this one, by a call in one of its turns. */
export const ThreadParent = z.object({
  threadId: z.string(),
  turnId: z.string(),
  itemId: z.string(),
  /** 1: its parent has none. */
  depth: z.int().min(1),
  /** The parent's envelope at that time: no turn of this thread is ever allowed more. */
  envelope: Envelope,
});
export type ThreadParent = z.infer<typeof ThreadParent>;

export const GoalStatus = z.enum(["active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"]);
export type GoalStatus = z.infer<typeof GoalStatus>;

export const Goal = z.object({
  objective: z.string(),
  status: GoalStatus,
  /** Absent: none. */
  tokenBudget: z.number().int().positive().optional(),
});
export type Goal = z.infer<typeof Goal>;

const change = z.string().nullable().optional();
export const GitInfoChange = z.object({ sha: change, branch: change, originUrl: change });
export type GitInfoChange = z.infer<typeof GitInfoChange>;

/** A tool that a client brings along and runs itself, over its own connection. */
export const ClientTool = z.object({
  /** As the client knows it. */
  name: z.string(),
  /** Groups tools of one client. */
  namespace: z.string().optional(),
  description: z.string(),
  /** JSON Schema of the arguments, as the client gave it. */
  parameters: z.record(z.string(), z.unknown()),
});
export type ClientTool = z.infer<typeof ClientTool>;

export const ConversationEntry = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("user"), parts: z.array(InputPart) }),
  z.object({ kind: z.literal("assistant"), parts: z.array(ModelOutputPart) }),
  z.object({
    kind: z.literal("toolResult"),
    callId: z.string(),
    name: z.string(),
    shape: z.enum(["json", "freeform"]),
    isError: z.boolean(),
    parts: z.array(InputPart),
  }),
]);
export type ConversationEntry = z.infer<typeof ConversationEntry>;
