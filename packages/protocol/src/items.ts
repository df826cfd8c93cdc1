/**
 * An item is one thing in a turn: started → delta* → completed. Every started item is completed exactly once;
 * the completed form holds the whole content, and its deltas concatenate to it.
 */
import { z } from "zod";

/**
 * `declined`: refused by envelope, policy or a person. `interrupted`: stopped with the turn.
 * `unknown`: Heddle died while it ran, so nobody can say what it did.
 */
export const ItemStatus = z.enum(["inProgress", "completed", "failed", "declined", "interrupted", "unknown"]);
export type ItemStatus = z.infer<typeof ItemStatus>;

export const InputPart = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), mediaType: z.string(), base64: z.string() }),
]);
export type InputPart = z.infer<typeof InputPart>;

export const FileChangeEntry = z.object({
  /** Absolute. */
  path: z.string(),
  kind: z.enum(["add", "update", "delete"]),
  /** Absolute path the file was moved to, for an update that renames. */
  movedTo: z.string().optional(),
  /** Unified diff, capped; `diffTruncatedBytes` says how much is missing. */
  diff: z.string(),
  diffTruncatedBytes: z.number().optional(),
});
export type FileChangeEntry = z.infer<typeof FileChangeEntry>;

export const PlanStep = z.object({ text: z.string(), status: z.enum(["pending", "inProgress", "completed"]) });
export type PlanStep = z.infer<typeof PlanStep>;

const id = z.string();

export const Item = z.discriminatedUnion("type", [
  z.object({ type: z.literal("userMessage"), id, content: z.array(InputPart), clientId: z.string().optional() }),
  z.object({
    type: z.literal("agentMessage"),
    id,
    text: z.string(),
    /** The stream broke off; a later item of the same turn says it again in full. */
    isPartial: z.boolean().optional(),
  }),
  z.object({ type: z.literal("reasoning"), id, summary: z.array(z.string()), text: z.string().optional() }),
  z.object({
    type: z.literal("commandExecution"),
    id,
    callId: z.string(),
    command: z.string(),
    /** Who wanted it; absent: the agent. */
    source: z.literal("user").optional(),
    /** It ran in a login shell. */
    isLogin: z.boolean().optional(),
    cwd: z.string(),
    status: ItemStatus,
    /** What the command printed, head and tail when it was more than the cap. */
    output: z.string(),
    truncatedBytes: z.number().optional(),
    /** The whole output, when it did not fit. */
    outputFile: z.string().optional(),
    /** Set while the process stays open for `write_stdin`. */
    processId: z.string().optional(),
    exitCode: z.number().optional(),
    signal: z.string().optional(),
    durationMs: z.number().optional(),
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal("fileChange"),
    id,
    callId: z.string(),
    status: ItemStatus,
    changes: z.array(FileChangeEntry),
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal("toolCall"),
    id,
    callId: z.string(),
    tool: z.string(),
    arguments: z.unknown(),
    status: ItemStatus,
    /** A client carries it out: under which of its names, and what it answered. */
    client: z.object({ namespace: z.string().optional(), content: z.array(InputPart).optional() }).optional(),
    output: z.string().optional(),
    truncatedBytes: z.number().optional(),
    durationMs: z.number().optional(),
    error: z.string().optional(),
  }),
  /** A call of a tool that an MCP server brings. */
  z.object({
    type: z.literal("mcpToolCall"),
    id,
    callId: z.string(),
    /** As configured. */
    server: z.string(),
    /** As the server knows it. */
    tool: z.string(),
    arguments: z.unknown(),
    status: ItemStatus,
    /** What the server answered, texts and images capped. */
    result: z.object({ content: z.array(z.unknown()), structuredContent: z.unknown().optional() }).optional(),
    error: z.string().optional(),
    durationMs: z.number().optional(),
  }),
  z.object({
    type: z.literal("plan"),
    id,
    callId: z.string(),
    status: ItemStatus,
    steps: z.array(PlanStep),
    explanation: z.string().optional(),
  }),
  /** What an agent that plans proposes to do, for the user to judge. */
  z.object({ type: z.literal("proposedPlan"), id, status: ItemStatus, text: z.string() }),
  z.object({
    type: z.literal("imageView"),
    id,
    callId: z.string(),
    path: z.string(),
    status: ItemStatus,
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal("contextCompaction"),
    id,
    trigger: z.enum(["auto", "overflow", "manual"]),
    /** `declined`: a hook said no. */
    status: ItemStatus,
    tokensBefore: z.number().int(),
    tokensAfter: z.number().int().optional(),
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal("notice"),
    id,
    level: z.enum(["warning", "error"]),
    code: z.string(),
    message: z.string(),
    /** Of an MCP server that could not be used: which one, and what it said. */
    mcp: z.object({ server: z.string(), error: z.string() }).optional(),
  }),
]);
export type Item = z.infer<typeof Item>;
export type ItemType = Item["type"];
export type ItemOf<T extends ItemType> = Extract<Item, { type: T }>;
/** Something about a turn that its user must know and its model need not. */
export type NoticeText = Readonly<Omit<ItemOf<"notice">, "type" | "id">>;

/** A running item with what it has added since it began. */
export function grownItem(item: Item, appended: string): Item {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return { ...item, text: item.text + appended };
  return item.type === "commandExecution" ? { ...item, output: item.output + appended } : item;
}

/** Live only, never stored: what a running item adds. */
export interface ItemDelta {
  readonly threadId: string;
  readonly turnId: string;
  readonly itemId: string;
  readonly channel: "text" | "reasoningSummary" | "reasoningText" | "output";
  readonly delta: string;
}
