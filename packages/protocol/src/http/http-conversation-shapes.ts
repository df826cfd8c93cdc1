/** Conversations that agent programs keep on the machine of a server, and their import as threads. */
import { z } from "zod";
import { time, wholeNumber } from "./http-parts.ts";

const Runner = z.string().min(1).max(100).optional();

export const ConversationsQuery = z.strictObject({
  from: Runner.describe("Only what the program of this runner keeps"),
  limit: wholeNumber("limit").optional(),
});

export const ConversationList = z.object({
  data: z.array(
    z.object({
      from: z.string().describe("The runner of the program that keeps it"),
      handle: z.string().describe("The program's own name for it"),
      file: z.string(),
      updatedAt: time,
      folder: z.string().optional().describe("Where was worked, as its record says"),
      title: z.string().optional(),
      isArchived: z.literal(true).optional().describe("Its program has put it away"),
      threadId: z.string().optional().describe("The thread that it was imported as"),
    }),
  ),
  total: z.number().int(),
});

export const ImportConversationBody = z.strictObject({
  handle: z.string().describe("The program's name for it, or its first 8 characters or more"),
  from: Runner,
});

export const ImportedConversation = z.object({
  threadId: z.string(),
  from: z.string(),
  handle: z.string(),
  items: z.number().int().describe("Stored by this import; 0: everything was on record"),
  left: z.string().optional().describe("Why its record has more than was read"),
});

export type ConversationList = z.output<typeof ConversationList>;
export type ImportedConversation = z.output<typeof ImportedConversation>;
export type ConversationsQueryInput = z.input<typeof ConversationsQuery>;
export type ImportConversationInput = z.input<typeof ImportConversationBody>;
