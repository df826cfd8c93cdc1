/** Items of `codex exec --json` as Heddle's. Messages come whole, commands with their output at their end. */
import type { Item, ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import { bare } from "./codex-items.ts";
import type { ProgramTurn } from "./conversation.ts";
import { fittedOutput } from "./fitted-output.ts";

const id = z.string();
const status = z.string().default("completed");

const NativeItem = z.discriminatedUnion("type", [
  z.object({ type: z.literal("agent_message"), id, text: z.string() }),
  z.object({ type: z.literal("reasoning"), id, text: z.string() }),
  z.object({
    type: z.literal("command_execution"),
    id,
    command: z.string(),
    aggregated_output: z.string().default(""),
    exit_code: z.number().nullish(),
    status,
  }),
  z.object({
    type: z.literal("file_change"),
    id,
    changes: z.array(z.object({ path: z.string(), kind: z.string() })),
    status,
  }),
  z.object({
    type: z.literal("mcp_tool_call"),
    id,
    server: z.string(),
    tool: z.string(),
    arguments: z.unknown(),
    result: z.object({ content: z.array(z.unknown()), structured_content: z.unknown() }).nullish(),
    error: z.object({ message: z.string() }).nullish(),
    status,
  }),
  z.object({ type: z.literal("collab_tool_call"), id, tool: z.string(), prompt: z.string().nullish(), status }),
  z.object({ type: z.literal("web_search"), id, query: z.string().default("") }),
  z.object({
    type: z.literal("todo_list"),
    id,
    items: z.array(z.object({ text: z.string(), completed: z.boolean().default(false) })),
  }),
  z.object({ type: z.literal("error"), id, message: z.string() }),
]);
type NativeItem = z.infer<typeof NativeItem>;
type TodoList = Extract<NativeItem, { type: "todo_list" }>;
type ShownItem = Exclude<NativeItem, { type: "todo_list" | "error" }>;

export type ItemStage = "started" | "updated" | "completed";

export interface CodexExecItems {
  heard(stage: ItemStage, raw: unknown): Promise<void>;
  /** What the agent has said since the last time. */
  takeText(): string;
  /** Anything was said or done. */
  readonly hasAny: boolean;
}

const Named = z.object({ type: z.string() });

export function createCodexExecItems(turn: ProgramTurn): CodexExecItems {
  const { items, newHandle, workspace } = turn;
  const said: string[] = [];
  let lists = 0;
  let lastList = "";
  let hasAny = false;

  async function planned(list: TodoList): Promise<void> {
    const told = JSON.stringify(list.items);
    if (told === lastList) return;
    lastList = told;
    lists += 1;
    const callId = `${newHandle} plan ${lists}`;
    await items.end(callId, (own) => ({ type: "plan", id: own, callId, status: "completed", steps: stepsOf(list) }));
  }

  return {
    async heard(stage, raw) {
      const found = NativeItem.safeParse(raw);
      if (!found.success) return turn.unknown(`item ${Named.safeParse(raw).data?.type ?? "malformed"}`);
      const native = found.data;
      if (native.type === "error")
        return stage === "completed" ? turn.warn("runner.failed", native.message) : undefined;
      hasAny = true;
      if (native.type === "todo_list") return planned(native);
      // Its own names begin anew with every process.
      const name = `${newHandle} ${native.id}`;
      const make = (own: string): Item => whole(native, { id: own, callId: name, cwd: workspace });
      if (stage !== "completed") {
        await items.begin(name, (own) => running(make(own)));
        if (native.type === "command_execution") items.streamWhole(name, "output", native.aggregated_output);
        return undefined;
      }
      if (native.type === "agent_message" && native.text !== "") said.push(native.text);
      return items.end(name, make);
    },
    takeText: () => said.splice(0).join("\n\n"),
    get hasAny() {
      return hasAny;
    },
  };
}

/** The first that is not done is worked on. */
function stepsOf({ items }: TodoList) {
  const current = items.findIndex(({ completed }) => !completed);
  return items.map(({ text, completed }, index) => ({
    text,
    status: completed ? ("completed" as const) : index === current ? ("inProgress" as const) : ("pending" as const),
  }));
}

function running(item: Item): Item {
  return "status" in item ? { ...item, status: "inProgress" } : item;
}

interface Making {
  readonly id: string;
  readonly callId: string;
  readonly cwd: string;
}

function whole(native: ShownItem, { id: own, callId, cwd }: Making): Item {
  switch (native.type) {
    case "agent_message":
      return { type: "agentMessage", id: own, text: native.text };
    case "reasoning":
      return { type: "reasoning", id: own, summary: [native.text] };
    case "command_execution":
      return {
        type: "commandExecution",
        id: own,
        callId,
        status: statusOf(native.status),
        command: bare(native.command),
        cwd,
        ...fittedOutput(native.aggregated_output),
        ...(typeof native.exit_code === "number" ? { exitCode: native.exit_code } : {}),
      };
    case "file_change":
      return {
        type: "fileChange",
        id: own,
        callId,
        status: statusOf(native.status),
        // It does not tell what was changed in them.
        changes: native.changes.map(({ path, kind }) => ({
          path,
          kind: kind === "add" || kind === "delete" ? kind : "update",
          diff: "",
        })),
      };
    case "mcp_tool_call":
      return {
        type: "mcpToolCall",
        id: own,
        callId,
        status: statusOf(native.status),
        server: native.server,
        tool: native.tool,
        arguments: native.arguments,
        ...(native.result
          ? { result: { content: native.result.content, structuredContent: native.result.structured_content } }
          : {}),
        ...(native.error ? { error: native.error.message } : {}),
      };
    case "collab_tool_call":
      return {
        type: "toolCall",
        id: own,
        callId,
        status: statusOf(native.status),
        tool: native.tool,
        arguments: { prompt: native.prompt ?? "" },
      };
    case "web_search":
      return { type: "webSearch", id: own, search: { query: native.query } };
  }
}

function statusOf(word: string): ItemStatus {
  switch (word) {
    case "in_progress":
      return "inProgress";
    case "completed":
    case "declined":
      return word;
    default:
      return "failed";
  }
}
