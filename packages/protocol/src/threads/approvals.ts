/** Questions to whoever follows a turn, and their answers. Both are stored events. */
import { z } from "zod";
import type { By } from "../events/authors.ts";

/** Rights that an envelope lacks: more folders to write, and the network. Reading is not restricted; `read` is what was asked for. */
export const Permissions = z.object({
  /** Absolute. */
  read: z.array(z.string()),
  /** Absolute. */
  write: z.array(z.string()),
  network: z.boolean(),
});
export type Permissions = z.infer<typeof Permissions>;

/** What a call asks for beyond its envelope: no sandbox, or the same sandbox with more permissions. */
export const HopRequest = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("outside") }),
  z.object({ kind: z.literal("wider"), permissions: Permissions }),
]);
export type HopRequest = z.infer<typeof HopRequest>;

/** One question of an agent to the user, with the options it proposes. */
export const UserQuestion = z.object({
  id: z.string(),
  /** A short title. */
  header: z.string(),
  question: z.string(),
  options: z.array(z.object({ label: z.string(), description: z.string() })),
});
export type UserQuestion = z.infer<typeof UserQuestion>;

/** By the id of the question. */
export const UserAnswers = z.record(z.string(), z.array(z.string()));
export type UserAnswers = z.infer<typeof UserAnswers>;

const asked = { callId: z.string(), itemId: z.string(), reason: z.string().optional() };
/** If accepted, this one call runs beyond the envelope of its thread. */
const wish = HopRequest.optional();

export const ApprovalQuestion = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("command"), ...asked, command: z.string(), cwd: z.string(), wish }),
  z.object({ kind: z.literal("fileChange"), ...asked, paths: z.array(z.string()), wish }),
  z.object({
    kind: z.literal("tool"),
    ...asked,
    tool: z.string(),
    arguments: z.unknown(),
    /** Hash of what an MCP server says about the tool, so that an answer does not cover another definition. */
    definition: z.string().optional(),
    wish,
    /** As its server describes the tool. */
    description: z.string().optional(),
  }),
  /** Questions of the agent; `accept` carries the answers. */
  z.object({ kind: z.literal("userInput"), ...asked, questions: z.array(UserQuestion) }),
  /** A question of an MCP server during a call; `accept` carries the content. */
  z.object({
    kind: z.literal("elicitation"),
    ...asked,
    server: z.string(),
    message: z.string(),
    /** JSON Schema of the content. */
    schema: z.unknown(),
  }),
  /** More rights for the calls that follow: `accept` gives them for the turn, `acceptForThread` for the thread. */
  z.object({ kind: z.literal("permissions"), ...asked, cwd: z.string(), permissions: Permissions }),
]);
export type ApprovalQuestion = z.infer<typeof ApprovalQuestion>;

/** `cancel` declines the call and interrupts the turn. */
export const Decision = z.enum(["accept", "acceptForThread", "decline", "cancel"]);
export type Decision = z.infer<typeof Decision>;

export const ApprovalAnswer = z.object({
  decision: Decision,
  /** The model is told why a call was declined. */
  reason: z.string().optional(),
  /** Of `userInput`. */
  answers: UserAnswers.optional(),
  /** Of `elicitation`. */
  content: z.unknown().optional(),
  /** Of `permissions`: only these of what was asked for; absent: all of it. */
  granted: Permissions.optional(),
});
export type ApprovalAnswer = Readonly<z.infer<typeof ApprovalAnswer>>;

/** With the author who gave it, and the question it answers; absent: an earlier answer covers it. */
export type StoredAnswer = ApprovalAnswer & By & { readonly approvalId?: string };
