/**
 * What Claude Code says, as items. A message comes as blocks: each begins, grows, and is sent once more as a whole, in the
 * order of the blocks. Results of calls come as messages of the user.
 */
import type { FileChangeEntry, Item, ItemOf } from "@heddle/protocol";
import { z } from "zod";
import type { ProgramTurn } from "./conversation.ts";
import { fittedOutput } from "./fitted-output.ts";
import type { MakeItem } from "./item-log.ts";

const Usage = z.object({
  input_tokens: z.number().default(0),
  cache_read_input_tokens: z.number().nullish(),
  cache_creation_input_tokens: z.number().nullish(),
  output_tokens: z.number().default(0),
});
const StreamEvent = z.object({
  event: z.looseObject({
    type: z.string(),
    index: z.number().default(0),
    message: z.object({ id: z.string(), model: z.string().optional(), usage: Usage.optional() }).optional(),
    content_block: z.looseObject({ type: z.string() }).optional(),
    delta: z
      .looseObject({
        type: z.string().optional(),
        text: z.string().optional(),
        thinking: z.string().optional(),
        stop_reason: z.string().nullish(),
      })
      .optional(),
    usage: z.object({ output_tokens: z.number().default(0) }).optional(),
  }),
  parent_tool_use_id: z.string().nullish(),
});
const Block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  thinking: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.record(z.string(), z.unknown()).optional(),
  tool_use_id: z.string().optional(),
  content: z.unknown().optional(),
  is_error: z.boolean().nullish(),
});
type Block = z.infer<typeof Block>;
const Message = z.object({
  message: z.object({
    id: z.string().optional(),
    model: z.string().optional(),
    content: z.union([z.string(), z.array(Block)]),
  }),
  isReplay: z.boolean().optional(),
  tool_use_result: z.unknown().optional(),
});
const ShellResult = z.object({
  stdout: z.string().default(""),
  stderr: z.string().default(""),
  interrupted: z.boolean().default(false),
});
const EditResult = z.object({
  type: z.string().optional(),
  filePath: z.string(),
  content: z.string().nullish(),
  structuredPatch: z
    .array(
      z.object({
        oldStart: z.number(),
        oldLines: z.number(),
        newStart: z.number(),
        newLines: z.number(),
        lines: z.array(z.string()),
      }),
    )
    .nullish(),
});

export interface ClaudeItems {
  heard(type: "stream_event" | "assistant" | "user", message: unknown): Promise<void>;
  beginCall(callId: string, tool: string, input: Readonly<Record<string, unknown>>): Promise<string>;
  refused(callId: string): void;
  /** A request that was broken off is told too. */
  finish(): Promise<void>;
}

interface Answering {
  readonly id: string;
  readonly model?: string | undefined;
  readonly usage?: z.infer<typeof Usage> | undefined;
  outputTokens: number;
  stopReason: string | undefined;
}

/** Requests to its model, each with what was said in it. */
function createAnswers(spent: ProgramTurn["spent"], said: string[]) {
  let now: Answering | undefined;

  async function end(): Promise<void> {
    if (now === undefined) return;
    const { model, usage, outputTokens, stopReason } = now;
    now = undefined;
    const cached = usage?.cache_read_input_tokens ?? 0;
    const written = usage?.cache_creation_input_tokens ?? 0;
    await spent({
      model,
      text: said.splice(0).join("\n\n"),
      stopReason: stopReason ?? "interrupted",
      usage: {
        inputTokens: (usage?.input_tokens ?? 0) + cached + written,
        cachedInputTokens: cached,
        cacheWriteInputTokens: written,
        outputTokens,
        reasoningOutputTokens: 0,
      },
    });
  }

  return {
    get id() {
      return now?.id ?? "";
    },
    async begin(begun: Pick<Answering, "id" | "model" | "usage">): Promise<void> {
      await end();
      now = { ...begun, outputTokens: 0, stopReason: undefined };
    },
    grow(outputTokens: number | undefined, stopReason: string | undefined): void {
      if (now === undefined) return;
      now.outputTokens = outputTokens ?? now.outputTokens;
      now.stopReason = stopReason;
    },
    end,
  };
}

interface Called {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What of a turn its items are made with. */
export type ItemsTurn = Pick<ProgramTurn, "items" | "spent" | "unknown" | "workspace">;

export function createClaudeItems({ items, spent, unknown, workspace }: ItemsTurn): ClaudeItems {
  const calls = new Map<string, Called>();
  const refused = new Set<string>();
  const said: string[] = [];
  /** Blocks of each message that were told as a whole. */
  const told = new Map<string, number>();
  const answers = createAnswers(spent, said);

  async function stream(message: unknown): Promise<void> {
    const parsed = StreamEvent.safeParse(message).data;
    // What a helper of the agent says is told with the result of its call.
    if (parsed === undefined || typeof parsed.parent_tool_use_id === "string") return;
    const { type, index, message: begun, content_block: block, delta, usage } = parsed.event;
    const name = `${answers.id}:${index}`;
    if (type === "message_start" && begun !== undefined) {
      await answers.begin(begun);
    } else if (type === "content_block_start" && block?.type === "text") await items.begin(name, messageOf(""));
    else if (type === "content_block_start" && block?.type === "thinking") await items.begin(name, reasoningOf(""));
    else if (type === "content_block_delta" && delta?.text !== undefined) items.stream(name, "text", delta.text);
    else if (type === "content_block_delta" && delta?.thinking !== undefined)
      items.stream(name, "reasoningSummary", delta.thinking);
    else if (type === "message_delta") answers.grow(usage?.output_tokens, delta?.stop_reason ?? undefined);
    else if (type === "message_stop") await answers.end();
  }

  async function whole({ message }: z.infer<typeof Message>): Promise<void> {
    const { id = "", content, model } = message;
    // An error of its provider is told again by the end of the turn.
    if (typeof content === "string" || model === "<synthetic>") return;
    for (const block of content) {
      const index = told.get(id) ?? 0;
      told.set(id, index + 1);
      await wholeBlock(`${id}:${index}`, block);
    }
  }

  async function wholeBlock(name: string, block: Block): Promise<void> {
    if (block.type === "text" && block.text !== undefined) {
      if (block.text !== "") said.push(block.text);
      await items.end(name, messageOf(block.text));
    } else if (block.type === "thinking") await items.end(name, reasoningOf(block.thinking ?? ""));
    else if (block.type === "tool_use" && block.id !== undefined)
      await beginCall(block.id, block.name ?? "", block.input ?? {});
    else if (block.type !== "redacted_thinking") unknown(`block ${block.type}`);
  }

  async function beginCall(callId: string, tool: string, input: Called["input"]): Promise<string> {
    calls.set(callId, { tool, input });
    return items.begin(callId, toolItem({ tool, input, callId, workspace }));
  }

  async function results({ message, tool_use_result: detail, isReplay }: z.infer<typeof Message>): Promise<void> {
    if (isReplay === true || typeof message.content === "string") return;
    for (const block of message.content) {
      const callId = block.tool_use_id;
      const call = calls.get(callId ?? "");
      if (block.type !== "tool_result" || callId === undefined || call === undefined) continue;
      const begun = { ...call, callId, workspace };
      const isRefused = refused.has(callId);
      await items.end(callId, (id) => ended(toolItem(begun)(id), { block, detail, isRefused }));
    }
  }

  return {
    async heard(type, message) {
      if (type === "stream_event") return stream(message);
      const parsed = Message.safeParse(message);
      if (!parsed.success) return unknown(type);
      return type === "assistant" ? whole(parsed.data) : results(parsed.data);
    },
    beginCall,
    refused: (callId) => void refused.add(callId),
    finish: answers.end,
  };
}

const messageOf =
  (text: string): MakeItem =>
  (id) => ({ type: "agentMessage", id, text });
const reasoningOf =
  (text: string): MakeItem =>
  (id) => ({ type: "reasoning", id, summary: text === "" ? [] : [text] });

const EDITS: ReadonlySet<string> = new Set(["Write", "Edit", "MultiEdit", "NotebookEdit"]);

const TodoInput = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });

interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly callId: string;
  readonly workspace: string;
}

/** A call as it begins. */
export function toolItem({ tool, input, callId, workspace }: ToolCall): MakeItem {
  const text = (key: string): string => (typeof input[key] === "string" ? input[key] : "");
  return (id) => {
    const begun = { id, callId, status: "inProgress" } as const;
    if (tool === "Bash")
      return { type: "commandExecution", ...begun, command: text("command"), cwd: workspace, output: "" };
    if (EDITS.has(tool)) {
      const path = text("file_path") || text("notebook_path");
      const kind = tool === "Write" ? "add" : "update";
      return { type: "fileChange", ...begun, changes: [{ path, kind, diff: "" }] };
    }
    const todos = tool === "TodoWrite" ? TodoInput.safeParse(input).data?.todos : undefined;
    if (todos !== undefined) {
      return {
        type: "plan",
        ...begun,
        steps: todos.map((todo) => ({ text: todo.content, status: stepStatus(todo.status) })),
      };
    }
    const [, server, name] = /^mcp__(.+?)__(.+)$/.exec(tool) ?? [];
    if (server !== undefined && name !== undefined)
      return { type: "mcpToolCall", ...begun, server, tool: name, arguments: input };
    return { type: "toolCall", ...begun, tool, arguments: input };
  };
}

interface CallEnd {
  readonly block: Block;
  readonly detail: unknown;
  readonly isRefused: boolean;
}

function ended(item: Item, { block, detail, isRefused }: CallEnd): Item {
  const failed = block.is_error === true;
  const status = isRefused ? "declined" : failed ? "failed" : "completed";
  const text = textOf(block.content);
  switch (item.type) {
    case "commandExecution":
      return endedCommand(item, { text, detail, status });
    case "fileChange":
      return { ...item, status, changes: changesOf(item, detail), ...(failed ? { error: text } : {}) };
    case "mcpToolCall":
      return { ...item, status, result: { content: [{ type: "text", text }] } };
    case "toolCall":
      return { ...item, status, ...fittedOutput(text) };
    case "plan":
      return { ...item, status };
    default:
      return item;
  }
}

/** What its model is told of a call that an interrupt has ended. */
const STOPPED = /^The user doesn't want to proceed with this tool use\./;

function endedCommand(
  item: ItemOf<"commandExecution">,
  {
    text,
    detail,
    status,
  }: { readonly text: string; readonly detail: unknown; readonly status: "declined" | "failed" | "completed" },
): Item {
  const found = ShellResult.safeParse(detail).data;
  // A failure is told as text, with the code before what was printed; that it was stopped or refused is no output.
  const printed = status === "declined" || STOPPED.test(text) ? "" : text.replace(/^Exit code \d+(?:\n|$)/, "");
  const output = found === undefined ? printed : [found.stdout, found.stderr].filter((part) => part !== "").join("\n");
  const [, code] = /^Exit code (\d+)/.exec(text) ?? [];
  const exitCode = code === undefined ? (status === "completed" ? 0 : undefined) : Number(code);
  return {
    ...item,
    status: found?.interrupted === true ? "interrupted" : status,
    ...fittedOutput(output),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}

function changesOf({ changes }: ItemOf<"fileChange">, detail: unknown): FileChangeEntry[] {
  const found = EditResult.safeParse(detail).data;
  if (found === undefined) return changes;
  const hunks = found.structuredPatch ?? [];
  const diff = hunks
    .map((hunk) =>
      [`@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`, ...hunk.lines].join("\n"),
    )
    .join("\n");
  const isNew = found.type === "create";
  return [{ path: found.filePath, kind: isNew ? "add" : "update", diff: isNew ? (found.content ?? "") : diff }];
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).safeParse(content).data ?? [];
  return parts.map(({ type, text }) => text ?? `(${type})`).join("\n");
}

function stepStatus(word: string): "pending" | "inProgress" | "completed" {
  if (word === "completed") return word;
  return word === "in_progress" ? "inProgress" : "pending";
}
