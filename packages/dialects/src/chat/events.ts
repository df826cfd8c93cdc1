/** The shapes of events for subscribers; `log.ts` makes them from stored events. */
import { z } from "zod";
import { HopRequest, Permissions, UserAnswers, UserQuestion } from "@heddle/protocol";
import { ChatItem } from "./items.ts";
import { ChatSettings } from "./settings.ts";

const Base = {
  seq: z.int().meta({ description: "Dense from 1 in each chat; of a live event, the number of the last stored one" }),
  ts: z.string(),
  chat_id: z.string(),
  threadId: z.string(),
  turnId: z.string().optional(),
  itemId: z.string().optional(),
  schema: z.literal(1),
  live: z
    .literal(true)
    .optional()
    .meta({ description: "Not stored and not repeated: the end of its item holds it all" }),
};

const Turn = z.enum(["queued", "running", "completed", "interrupted", "failed"]);
const TurnError = z.object({ message: z.string(), code: z.string(), retryable: z.boolean() });
const tokens = z.record(z.string(), z.number());
const turn = z.object({ id: z.string(), status: Turn });

export const CHAT_EVENTS = {
  "chat.turn.queued": z.object({ ...Base, turn, message: z.string() }),
  "chat.turn.started": z.object({ ...Base, turn }),
  "chat.turn.completed": z.object({
    ...Base,
    turn,
    status: Turn,
    error: TurnError.optional(),
    usage: tokens.optional(),
    cost_usd: z.number().optional(),
    duration_ms: z.number().optional(),
  }),
  "chat.item.started": z.object({ ...Base, item: ChatItem }),
  "chat.item.updated": z.object({ ...Base, item: ChatItem }),
  "chat.item.completed": z.object({ ...Base, item: ChatItem }),
  "chat.message.delta": z.object({ ...Base, delta: z.string() }),
  "chat.reasoning.delta": z.object({ ...Base, delta: z.string(), summary_index: z.int().optional() }),
  "chat.command.output": z.object({ ...Base, delta: z.string(), stream: z.literal("output") }),
  "chat.file.output": z.object({ ...Base, delta: z.string() }),
  "chat.diff.updated": z.object({ ...Base, diff: z.string() }),
  "chat.plan.updated": z.object({
    ...Base,
    explanation: z.string().optional(),
    plan: z.array(z.object({ step: z.string(), status: z.enum(["pending", "inProgress", "completed"]) })),
    item: ChatItem,
  }),
  "chat.token.usage.updated": z.object({
    ...Base,
    tokenUsage: z.object({ total: tokens, last: tokens, modelContextWindow: z.number().nullable() }),
  }),
  "chat.approval.required": z.object({
    ...Base,
    request_id: z.string(),
    codex_request_id: z.string(),
    kind: z.enum(["command", "fileChange", "tool", "userInput", "elicitation", "permissions"]),
    reason: z.string().optional(),
    command: z.string().optional(),
    cwd: z.string().optional(),
    changes: z.array(z.object({ path: z.string() })).optional(),
    tool: z.string().optional(),
    input: z.unknown().optional(),
    tool_description: z.string().optional(),
    /** Of the agent to the user; answered with `answers`. */
    questions: z.array(UserQuestion).optional(),
    /** Of an MCP server, named by `tool`; answered with `content`. */
    message: z.string().optional(),
    content_schema: z.unknown().optional(),
    /** What the command wants beyond its sandbox: none at all, or more rights in it. */
    wish: HopRequest.optional(),
    /** More rights for the calls that follow. */
    permissions: Permissions.optional(),
    available_decisions: z.array(z.string()),
  }),
  "chat.approval.resolved": z.object({
    ...Base,
    request_id: z.string(),
    codex_request_id: z.string(),
    decision: z.string(),
    by: z.string(),
    auto: z.literal(true).optional(),
    reason: z.string().optional(),
    answers: UserAnswers.optional(),
    content: z.unknown().optional(),
  }),
  "chat.thread.updated": z.object({
    ...Base,
    title: z.string().optional(),
    title_source: z.enum(["user", "auto"]).optional(),
    status: z.enum(["active", "archived", "deleted"]).optional(),
    cwd: z.string().optional(),
    settings: ChatSettings.optional(),
  }),
  "chat.error": z.object({ ...Base, message: z.string(), code: z.string(), retryable: z.boolean() }),
  "chat.warning": z.object({ ...Base, message: z.string(), code: z.string() }),
} as const;

/** Beside the events of one chat. */
export const CHAT_NOTICES = {
  "chat.account.updated": z.object({ provider: z.string(), ts: z.string(), schema: z.literal(1) }),
  resync: z.object({ chat_id: z.string(), last_seq: z.int(), reason: z.string(), schema: z.literal(1) }),
} as const;

export type ChatTopic = keyof typeof CHAT_EVENTS;
export type ChatParamsOf<Topic extends ChatTopic> = z.infer<(typeof CHAT_EVENTS)[Topic]>;
export type ChatEvent = {
  [Topic in ChatTopic]: { readonly topic: Topic; readonly params: ChatParamsOf<Topic> };
}[ChatTopic];
