/**
 * An item is one thing in a turn: started → delta* → completed. Every started item is completed exactly once;
 * the completed form holds the whole content, and its deltas concatenate to it.
 */
import { z } from "zod";
import { InputRole, InputSource } from "./messages.ts";
import { Source, WebSearch } from "./model-output.ts";
import type { StreamedDelta } from "../http/http-shapes.ts";
import { MessagePhase } from "./model-output.ts";

/**
 * `declined`: refused by envelope, policy or the user. `interrupted`: stopped with the turn.
 * `unknown`: Heddle died while it ran, so its effect is not known.
 */
export const ItemStatus = z.enum(["inProgress", "completed", "failed", "declined", "interrupted", "unknown"]);
export type ItemStatus = z.infer<typeof ItemStatus>;

/** A piece of a text that its client draws in its own way; models are not told of it. */
const TextSpan = z.object({
  /** Bytes of the text in UTF-8; the end is not part of it. */
  start: z.int().nonnegative(),
  end: z.int().nonnegative(),
  placeholder: z.string().optional(),
});

export const InputPart = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("text"),
    text: z.string(),
    spans: z.array(TextSpan).optional(),
    /** The client chose a skill, or a file, by its name; the text is how the model is told of it. */
    chosen: z.object({ type: z.enum(["skill", "mention"]), name: z.string(), path: z.string() }).optional(),
  }),
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

/** `starting`: its first turn is not admitted yet. `failed` and `interrupted` are ends of its last turn. */
export const ChildStatus = z.enum(["starting", "running", "completed", "failed", "interrupted", "closed", "missing"]);
export type ChildStatus = z.infer<typeof ChildStatus>;

/** A child thread as its parent saw it when the call ended. */
export const ChildState = z.object({
  threadId: z.string(),
  status: ChildStatus,
  /** The last message of a turn that has completed, or why it failed; cut to a limit. */
  message: z.string().optional(),
});
export type ChildState = Readonly<z.infer<typeof ChildState>>;

const id = z.string();
/** Of an item that carries out a call of the model. */
const called = { id, callId: z.string(), status: ItemStatus, error: z.string().optional() };

export const Item = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("userMessage"),
    id,
    content: z.array(InputPart),
    clientId: z.string().optional(),
    /** Absent: a command of a user. */
    role: InputRole.optional(),
    source: InputSource.optional(),
  }),
  z.object({
    type: z.literal("agentMessage"),
    id,
    text: z.string(),
    /** Absent: the model did not say. */
    phase: MessagePhase.optional(),
    /** Pages that the provider names for the text. */
    sources: z.array(Source).optional(),
    /** The stream broke off; a later item of the same turn says it again in full. */
    isPartial: z.boolean().optional(),
  }),
  z.object({ type: z.literal("reasoning"), id, summary: z.array(z.string()), text: z.string().optional() }),
  z.object({
    type: z.literal("commandExecution"),
    ...called,
    command: z.string(),
    /** Who asked for it; absent: the agent. */
    source: z.literal("user").optional(),
    /** It ran in a login shell. */
    isLogin: z.boolean().optional(),
    cwd: z.string(),
    /** What the command printed; head and tail when it was more than the limit. */
    output: z.string(),
    truncatedBytes: z.number().optional(),
    /** The whole output, when it did not fit: its SHA-256, by which the home keeps it. */
    outputBlob: z.string().optional(),
    /** Why there is no whole output, where there should be. */
    outputError: z.string().optional(),
    /** Of older events: the path of the whole output. */
    outputFile: z.string().optional(),
    /** Set while the process stays open for `write_stdin`. */
    processId: z.string().optional(),
    exitCode: z.number().optional(),
    signal: z.string().optional(),
    durationMs: z.number().optional(),
  }),
  z.object({ type: z.literal("fileChange"), ...called, changes: z.array(FileChangeEntry) }),
  z.object({
    type: z.literal("toolCall"),
    ...called,
    tool: z.string(),
    arguments: z.unknown(),
    /** A client runs it: under which namespace, and what it answered. */
    client: z.object({ namespace: z.string().optional(), content: z.array(InputPart).optional() }).optional(),
    output: z.string().optional(),
    truncatedBytes: z.number().optional(),
    durationMs: z.number().optional(),
  }),
  /** A call of a tool of an MCP server. */
  z.object({
    type: z.literal("mcpToolCall"),
    ...called,
    /** As configured. */
    server: z.string(),
    /** As the server knows it. */
    tool: z.string(),
    arguments: z.unknown(),
    /** What the server answered; texts and images are cut to a limit. */
    result: z.object({ content: z.array(z.unknown()), structuredContent: z.unknown().optional() }).optional(),
    durationMs: z.number().optional(),
  }),
  /** A call that starts a child thread, sends to it, waits for some, or closes one. */
  z.object({
    type: z.literal("collabToolCall"),
    ...called,
    tool: z.enum(["start", "send", "wait", "close"]),
    /** The thread of the call. */
    senderThreadId: z.string(),
    /** Child threads that it is about; of `start` the new one, once it exists. */
    threadIds: z.array(z.string()),
    prompt: z.string().optional(),
    /** As asked for; absent: those of the parent. */
    model: z.string().optional(),
    effort: z.string().optional(),
    children: z.array(ChildState),
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
  /** What the agent proposes in plan mode, for the user to judge. */
  z.object({ type: z.literal("proposedPlan"), id, status: ItemStatus, text: z.string() }),
  z.object({ type: z.literal("webSearch"), id, search: WebSearch }),
  z.object({ type: z.literal("imageView"), ...called, path: z.string() }),
  z.object({
    type: z.literal("contextCompaction"),
    id,
    trigger: z.enum(["auto", "overflow", "manual"]),
    /** `declined`: a hook refused it. */
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
    /** Of an MCP server that could not be used. */
    mcp: z.object({ server: z.string(), error: z.string() }).optional(),
  }),
]);
export type Item = z.infer<typeof Item>;
export type ItemType = Item["type"];
export type ItemOf<T extends ItemType> = Extract<Item, { type: T }>;
/** For the user of a turn, not for its model. */
export type NoticeText = Readonly<Omit<ItemOf<"notice">, "type" | "id">>;

/** A running item with what it has added since it started. */
export function grownItem(item: Item, appended: string): Item {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return { ...item, text: item.text + appended };
  return item.type === "commandExecution" ? { ...item, output: item.output + appended } : item;
}

/** Live only, never stored: what a running item adds. */
export type ItemDelta = Readonly<StreamedDelta>;
