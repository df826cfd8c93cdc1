/** Questions put to whoever watches a turn, and their answers. Both are stored events. */
import { z } from "zod";
import type { By } from "./authors.ts";

/** Rights that an envelope lacks: more places to write and the network. Reading is wide already; `read` is what was asked. */
export const Permissions = z.object({
  /** Absolute. */
  read: z.array(z.string()),
  /** Absolute. */
  write: z.array(z.string()),
  network: z.boolean(),
});
export type Permissions = z.infer<typeof Permissions>;

/** What a call wants beyond its envelope: no wall at all, or the same wall with more inside it. */
export const HopWish = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("outside") }),
  z.object({ kind: z.literal("wider"), permissions: Permissions }),
]);
export type HopWish = z.infer<typeof HopWish>;

/** One question of an agent to the user, with what it proposes to choose from. */
export const UserQuestion = z.object({
  /** By which its answer is known. */
  id: z.string(),
  /** A word or two above it. */
  header: z.string(),
  question: z.string(),
  options: z.array(z.object({ label: z.string(), description: z.string() })),
});
export type UserQuestion = z.infer<typeof UserQuestion>;

/** What was chosen or written, by the id of the question. */
export const UserAnswers = z.record(z.string(), z.array(z.string()));
export type UserAnswers = z.infer<typeof UserAnswers>;

export const ApprovalQuestion = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("command"),
    callId: z.string(),
    itemId: z.string(),
    command: z.string(),
    cwd: z.string(),
    /** Allowed, this one command runs beyond the envelope of its thread. */
    wish: HopWish.optional(),
    reason: z.string().optional(),
  }),
  z.object({
    kind: z.literal("fileChange"),
    callId: z.string(),
    itemId: z.string(),
    paths: z.array(z.string()),
    /** Allowed, this one change is made beyond the envelope of its thread. */
    wish: HopWish.optional(),
    reason: z.string().optional(),
  }),
  z.object({
    kind: z.literal("tool"),
    callId: z.string(),
    itemId: z.string(),
    tool: z.string(),
    arguments: z.unknown(),
    /** Hash of what an MCP server says about the tool, so that an answer does not cover another definition. */
    definition: z.string().optional(),
    /** Allowed, this one call acts beyond the envelope of its thread. */
    wish: HopWish.optional(),
    /** What the tool is for, in its server's words. */
    description: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** The agent wants to know something; `accept` carries the answers. */
  z.object({
    kind: z.literal("userInput"),
    callId: z.string(),
    itemId: z.string(),
    questions: z.array(UserQuestion),
    reason: z.string().optional(),
  }),
  /** An MCP server wants to know something while it carries out a call; `accept` carries the content. */
  z.object({
    kind: z.literal("elicitation"),
    callId: z.string(),
    itemId: z.string(),
    server: z.string(),
    message: z.string(),
    /** JSON Schema of the content. */
    schema: z.unknown(),
    reason: z.string().optional(),
  }),
  /** More rights for the calls that follow: `accept` gives them for the turn, `acceptForThread` for the thread. */
  z.object({
    kind: z.literal("permissions"),
    callId: z.string(),
    itemId: z.string(),
    cwd: z.string(),
    permissions: Permissions,
    reason: z.string().optional(),
  }),
]);
export type ApprovalQuestion = z.infer<typeof ApprovalQuestion>;

/** `cancel` declines the call and interrupts the turn. */
export const Decision = z.enum(["accept", "acceptForThread", "decline", "cancel"]);
export type Decision = z.infer<typeof Decision>;

/** An answer with what it brings along. */
export interface ApprovalAnswer {
  readonly decision: Decision;
  /** In the words of whoever answered; the model hears why a call was declined. */
  readonly reason?: string | undefined;
  /** Of `userInput`. */
  readonly answers?: UserAnswers | undefined;
  /** Of `elicitation`. */
  readonly content?: unknown;
  /** Of `permissions`: only these of what was asked for; absent: all of it. */
  readonly granted?: Permissions | undefined;
}

/** As it is stored, with whoever gave it. */
export type StoredAnswer = ApprovalAnswer & By;
