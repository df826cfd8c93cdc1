/** The shapes of agents and messages over HTTP. */
import { z } from "zod";
import { flag, Id, wholeNumber } from "./http-parts.ts";
import { Agent, AgentName, MAX_ASK_MS, Message, MessageId, NamedInputs, OutgoingMessage } from "../threads/messages.ts";

export { Agent, Message };

/** By the name of an agent, or the id of its thread. */
export const AgentParams = z.strictObject({ agent: Id });
export const MessageParams = z.strictObject({ messageId: MessageId });

export const AgentsQuery = z.strictObject({
  all: flag.optional().describe("true: archived ones too"),
  limit: wholeNumber("limit").optional().describe("1 to 100; 25 when absent"),
});
export const AgentList = z.object({ data: z.array(Agent) });
export const MessagesQuery = z.strictObject({ limit: AgentsQuery.shape.limit });
export const MessageList = z.object({ data: z.array(Message) });

export const PatchAgentBody = z.strictObject({
  name: AgentName.nullable().optional().describe("null: by the id of its thread alone"),
  wakes: z.boolean().nullable().optional().describe("A message may start a turn; null: as the configuration says"),
});

/** Files are named by their hash, which the client knows: the server opens none for it. */
export const TellBody = OutgoingMessage.extend({ inputs: NamedInputs.optional() });
export const AskBody = TellBody.extend({
  timeoutMs: z.int().min(1).max(MAX_ASK_MS).describe("How long an answer may take"),
});
export const SentMessage = z.object({
  messageId: z.string(),
  threadId: z.string(),
  how: z.enum(["wakes", "waits"]).describe("It may start a turn, or it is kept and shown with the next one"),
  answerBy: z.int().optional(),
});

export type AgentList = z.output<typeof AgentList>;
export type MessageList = z.output<typeof MessageList>;
export type PatchAgentInput = z.input<typeof PatchAgentBody>;
export type TellInput = z.input<typeof TellBody>;
export type AskInput = z.input<typeof AskBody>;
export type SentMessage = z.output<typeof SentMessage>;
