/** A conversation of Copilot as it keeps it: an event for each thing that was said or done, whole, in order. */
import { NO_USAGE, type FileChangeEntry, type Item, type ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import { fittedOutput } from "./fitted-output.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";

const Line = z.object({
  type: z.string(),
  data: z.looseObject({ parentToolCallId: z.string().optional() }),
  /** Of a helper of the agent, whose result is told with its call. */
  agentId: z.string().optional(),
});
const Said = z.object({
  content: z.string(),
  /** By the program in place of the person. */
  source: z.string().optional(),
  isAutopilotContinuation: z.boolean().optional(),
});
const Answer = z.object({
  messageId: z.string(),
  content: z.string(),
  reasoningText: z.string().optional(),
  model: z.string().optional(),
  apiCallId: z.string().optional(),
  outputTokens: z.number().optional(),
});
const Used = z.object({
  usage: z.object({
    apiCallId: z.string(),
    model: z.string().optional(),
    inputTokens: z.number().default(0),
    outputTokens: z.number().default(0),
    cacheReadTokens: z.number().default(0),
    cacheWriteTokens: z.number().default(0),
  }),
});
type Used = z.infer<typeof Used>["usage"];
const Begun = z.object({
  toolCallId: z.string(),
  toolName: z.string(),
  arguments: z.unknown().optional(),
  mcpServerName: z.string().optional(),
  mcpToolName: z.string().optional(),
});
type Begun = z.infer<typeof Begun>;
const Ended = z.object({
  toolCallId: z.string(),
  success: z.boolean(),
  result: z.object({ content: z.string().default(""), detailedContent: z.string().optional() }).optional(),
  error: z.object({ message: z.string() }).optional(),
  shellExecution: z.object({ exitCode: z.number() }).optional(),
  fileEdits: z.array(z.object({ path: z.string(), kind: z.enum(["create", "edit", "delete"]) })).optional(),
  isUserRequested: z.boolean().optional(),
});
type Ended = z.infer<typeof Ended>;
const Command = z.object({ command: z.string() });

/** About the program itself, or said once more by another event. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set([
  "assistant.turn_end",
  "assistant.turn_start",
  "permission.completed",
  "permission.requested",
  "session.model_change",
  "session.resume",
  "session.shutdown",
  "session.start",
  "system.message",
]);

const KINDS = { create: "add", edit: "update", delete: "delete" } as const;

export function readCopilotRecord(turn: ImportingTurn): RecordReader {
  const { items, unknown } = turn;
  const calls = new Map<string, Begun>();
  /** Of requests whose answer has not come. */
  const used = new Map<string, Used>();

  async function spent(text: string, usage: Used): Promise<void> {
    await turn.spent({
      model: usage.model,
      text,
      stopReason: "stop",
      usage: {
        inputTokens: usage.inputTokens,
        cachedInputTokens: usage.cacheReadTokens,
        cacheWriteInputTokens: usage.cacheWriteTokens,
        outputTokens: usage.outputTokens,
        reasoningOutputTokens: 0,
      },
    });
  }

  async function answered(data: unknown): Promise<void> {
    const answer = Answer.safeParse(data).data;
    if (answer === undefined) return unknown("assistant.message");
    const { messageId, content, reasoningText: text = "", apiCallId = "", model, outputTokens } = answer;
    if (text !== "") await items.end(`thought ${messageId}`, (id) => ({ type: "reasoning", id, summary: [], text }));
    if (content !== "") await items.end(messageId, (id) => ({ type: "agentMessage", id, text: content }));
    const usage = used.get(apiCallId);
    used.delete(apiCallId);
    if (usage !== undefined) await spent(content, usage);
    else if (outputTokens !== undefined || content !== "")
      await turn.spent({
        model,
        text: content,
        stopReason: "stop",
        usage: { ...NO_USAGE, outputTokens: outputTokens ?? 0 },
      });
  }

  async function ended(data: unknown): Promise<void> {
    const end = Ended.safeParse(data).data;
    const call = calls.get(end?.toolCallId ?? "");
    if (end === undefined || call === undefined) return unknown("tool.execution_complete");
    await items.end(call.toolCallId, (id) => endedItem(itemOf(id, call, turn.workspace), end));
  }

  async function event(type: string, data: unknown): Promise<void> {
    if (type === "user.message") {
      const said = Said.safeParse(data).data;
      if (said === undefined) return unknown(type);
      const isOfPerson = said.source === undefined && said.isAutopilotContinuation !== true;
      if (isOfPerson && said.content.trim() !== "") await turn.said(said.content);
    } else if (type === "assistant.message") await answered(data);
    else if (type === "session.usage_record") {
      const usage = Used.safeParse(data).data?.usage;
      if (usage !== undefined) used.set(usage.apiCallId, usage);
    } else if (type === "tool.execution_start") {
      const call = Begun.safeParse(data).data;
      if (call === undefined) return unknown(type);
      calls.set(call.toolCallId, call);
      await items.begin(call.toolCallId, (id) => itemOf(id, call, turn.workspace));
    } else if (type === "tool.execution_complete") await ended(data);
    else if (!TOLD_ELSEWHERE.has(type)) unknown(type);
  }

  return {
    async heard(raw) {
      const line = Line.safeParse(raw).data;
      if (line === undefined) return unknown("line");
      if (line.agentId !== undefined || line.data.parentToolCallId !== undefined) return;
      await event(line.type, line.data);
    },
    async finish() {
      for (const usage of used.values()) await spent("", usage);
    },
  };
}

function itemOf(id: string, call: Begun, cwd: string): Item {
  const begun = { id, callId: call.toolCallId, status: "inProgress" } as const;
  const { mcpServerName: server, mcpToolName: tool, toolName, arguments: given } = call;
  if (server !== undefined) return { type: "mcpToolCall", ...begun, server, tool: tool ?? toolName, arguments: given };
  const command = toolName === "bash" ? Command.safeParse(given).data?.command : undefined;
  if (command !== undefined) return { type: "commandExecution", ...begun, command, cwd, output: "" };
  return { type: "toolCall", ...begun, tool: toolName, arguments: given };
}

/** What the shell says of itself after the output of a command. */
const SHELL_NOTE = /\n?<shellId: \S+ completed with exit code -?\d+>\s*$/;

function endedItem(item: Item, end: Ended): Item {
  const { success, result, error, shellExecution, fileEdits = [], isUserRequested } = end;
  const exitCode = shellExecution?.exitCode;
  const status: ItemStatus = success && (exitCode ?? 0) === 0 ? "completed" : "failed";
  const failed = error === undefined ? {} : { error: error.message };
  const text = result?.content ?? "";
  switch (item.type) {
    case "commandExecution":
      return {
        ...item,
        ...failed,
        status,
        ...fittedOutput(text.replace(SHELL_NOTE, "")),
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(isUserRequested === true ? { source: "user" as const } : {}),
      };
    case "mcpToolCall":
      return { ...item, ...failed, status, result: { content: [{ type: "text", text }] } };
    case "toolCall": {
      if (fileEdits.length === 0) return { ...item, ...failed, status, ...fittedOutput(text) };
      const { id, callId } = item;
      return { type: "fileChange", id, callId, ...failed, status, changes: changesIn(end) };
    }
    default:
      return item;
  }
}

/** One diff is told for all that a call changed. */
function changesIn({ fileEdits = [], result }: Ended): FileChangeEntry[] {
  return fileEdits.map(({ path, kind }, index) => ({
    path,
    kind: KINDS[kind],
    diff: index === 0 ? (result?.detailedContent ?? "") : "",
  }));
}
