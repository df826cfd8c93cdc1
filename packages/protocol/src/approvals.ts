/** Questions put to whoever watches a turn, and their answers. Both are stored events. */
import { z } from "zod";

export const ApprovalQuestion = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("command"),
    callId: z.string(),
    itemId: z.string(),
    command: z.string(),
    cwd: z.string(),
    reason: z.string().optional(),
  }),
  z.object({
    kind: z.literal("fileChange"),
    callId: z.string(),
    itemId: z.string(),
    paths: z.array(z.string()),
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
    reason: z.string().optional(),
  }),
]);
export type ApprovalQuestion = z.infer<typeof ApprovalQuestion>;

/** `cancel` declines the call and interrupts the turn. */
export const Decision = z.enum(["accept", "acceptForThread", "decline", "cancel"]);
export type Decision = z.infer<typeof Decision>;
