/** One stored item as chats show it. */
import { z } from "zod";
import { defined, never, type InputPart, type Item } from "@heddle/protocol";

const common = { id: z.string(), turn_id: z.string() };
const status = z.enum(["inProgress", "completed", "failed", "declined", "interrupted", "unknown"]);
const error = z.string().optional();

export const ChatItem = z.discriminatedUnion("type", [
  z.object({
    ...common,
    type: z.literal("userMessage"),
    content: z.array(z.looseObject({ type: z.string() })),
    client_message_id: z.string().optional(),
  }),
  z.object({
    ...common,
    type: z.literal("agentMessage"),
    text: z.string(),
    sources: z.array(z.object({ url: z.string(), title: z.string().optional() })).optional(),
    partial: z.literal(true).optional(),
  }),
  z.object({ ...common, type: z.literal("reasoning"), summary: z.array(z.string()), content: z.array(z.string()) }),
  z.object({ ...common, type: z.literal("plan"), text: z.string(), status }),
  z.object({
    ...common,
    type: z.literal("commandExecution"),
    command: z.string(),
    cwd: z.string(),
    status,
    aggregatedOutput: z.string(),
    exit_code: z.number().optional(),
    duration_ms: z.number().optional(),
    truncated: z.literal(true).optional(),
    error,
  }),
  z.object({
    ...common,
    type: z.literal("fileChange"),
    changes: z.array(
      z.object({ path: z.string(), kind: z.string(), diff: z.string(), moved_to: z.string().optional() }),
    ),
    status,
    error,
  }),
  z.object({
    ...common,
    type: z.literal("mcpToolCall"),
    server: z.string().optional(),
    tool: z.string(),
    status,
    input: z.unknown(),
    result: z.unknown().optional(),
    error,
    duration_ms: z.number().optional(),
  }),
  z.object({
    ...common,
    type: z.literal("subagent"),
    tool: z.enum(["start", "send", "wait", "close"]),
    status,
    chat_ids: z.array(z.string()),
    prompt: z.string().optional(),
    model: z.string().optional(),
    effort: z.string().optional(),
    agents: z.array(z.object({ chat_id: z.string(), status: z.string(), message: z.string().optional() })),
    error,
    duration_ms: z.number().optional(),
  }),
  z.object({ ...common, type: z.literal("webSearch"), query: z.string(), url: z.string().optional() }),
  z.object({ ...common, type: z.literal("imageView"), path: z.string(), status, error }),
  z.object({ ...common, type: z.literal("contextCompaction"), status, error }),
  z.object({ ...common, type: z.literal("error"), level: z.string(), code: z.string(), message: z.string() }),
]);
export type ChatItem = z.infer<typeof ChatItem>;

export function chatItem(item: Item, turn_id: string): ChatItem {
  const { id } = item;
  switch (item.type) {
    case "userMessage": {
      const named = item.clientId === undefined ? {} : { client_message_id: item.clientId };
      return { type: "userMessage", id, turn_id, content: item.content.map(shownInput), ...named };
    }
    case "agentMessage":
      return {
        type: "agentMessage",
        id,
        turn_id,
        text: item.text,
        ...defined({ sources: item.sources }),
        ...(item.isPartial === true ? { partial: true } : {}),
      };
    case "reasoning": {
      const content = item.text === undefined ? [] : [item.text];
      return { type: "reasoning", id, turn_id, summary: item.summary, content };
    }
    case "plan":
      return { type: "plan", id, turn_id, text: planText(item.steps), status: item.status };
    case "proposedPlan":
      return { type: "plan", id, turn_id, text: item.text, status: item.status };
    case "commandExecution":
      return {
        type: "commandExecution",
        id,
        turn_id,
        command: item.command,
        cwd: item.cwd,
        status: item.status,
        aggregatedOutput: item.output,
        ...(item.exitCode === undefined ? {} : { exit_code: item.exitCode }),
        ...took(item),
        ...(item.truncatedBytes === undefined ? {} : { truncated: true }),
        ...because(item),
      };
    case "fileChange":
      return {
        type: "fileChange",
        id,
        turn_id,
        changes: item.changes.map(shownChange),
        status: item.status,
        ...because(item),
      };
    case "toolCall":
    case "mcpToolCall":
      return {
        type: "mcpToolCall",
        id,
        turn_id,
        server: item.type === "toolCall" ? "heddle" : item.server,
        tool: item.tool,
        status: item.status,
        input: item.arguments ?? {},
        ...resultOf(item),
        ...because(item),
        ...took(item),
      };
    case "collabToolCall":
      return subagentItem(item, turn_id);
    case "webSearch": {
      const { query, action } = item.search;
      return { type: "webSearch", id, turn_id, query, ...(action?.url === undefined ? {} : { url: action.url }) };
    }
    case "imageView":
      return { type: "imageView", id, turn_id, path: item.path, status: item.status, ...because(item) };
    case "contextCompaction":
      return { type: "contextCompaction", id, turn_id, status: item.status, ...because(item) };
    case "notice":
      return { type: "error", id, turn_id, level: item.level, code: item.code, message: item.message };
    default:
      return never(item);
  }
}

function subagentItem(item: Extract<Item, { type: "collabToolCall" }>, turn_id: string): ChatItem {
  const agents = item.children.map(({ threadId, message, ...child }) => ({
    chat_id: threadId,
    status: child.status,
    ...defined({ message }),
  }));
  return {
    type: "subagent",
    id: item.id,
    turn_id,
    tool: item.tool,
    status: item.status,
    chat_ids: item.threadIds,
    ...defined({ prompt: item.prompt, model: item.model, effort: item.effort }),
    agents,
    ...because(item),
    ...took(item),
  };
}

/** Pictures as clients sent them. */
function shownInput(part: InputPart): { type: string } & Record<string, unknown> {
  if (part.type === "text") return { type: "text", text: part.text };
  return { type: "image", url: `data:${part.mediaType};base64,${part.base64}` };
}

export function inputText(input: readonly InputPart[]): string {
  return input.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n");
}

const MARKS = { pending: " ", inProgress: "~", completed: "x" } as const;

function planText(steps: Extract<Item, { type: "plan" }>["steps"]): string {
  return steps.map((step) => `- [${MARKS[step.status]}] ${step.text}`).join("\n");
}

function shownChange({ path, kind, diff, movedTo }: Extract<Item, { type: "fileChange" }>["changes"][number]) {
  return { path, kind, diff, ...(movedTo === undefined ? {} : { moved_to: movedTo }) };
}

function resultOf(item: Extract<Item, { type: "toolCall" | "mcpToolCall" }>): { result?: unknown } {
  const result = item.type === "toolCall" ? item.output : item.result;
  return result === undefined ? {} : { result };
}

function took({ durationMs }: { readonly durationMs?: number | undefined }): { duration_ms?: number } {
  return durationMs === undefined ? {} : { duration_ms: durationMs };
}

function because({ error: why }: { readonly error?: string | undefined }): { error?: string } {
  return why === undefined ? {} : { error: why };
}
