/** Items of Codex's app-server as Heddle's: begun with their first word, and ended with the whole that it tells. */
import type { FileChangeEntry, Item, ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import type { ProgramTurn } from "./conversation.ts";
import { fittedOutput } from "./fitted-output.ts";
import type { MakeItem } from "./item-log.ts";

const id = z.string();
const status = z.string().default("completed");
const Change = z.object({
  path: z.string(),
  kind: z.object({ type: z.string(), move_path: z.string().nullish() }),
  diff: z.string().default(""),
});

const NativeItem = z.discriminatedUnion("type", [
  z.object({ type: z.literal("agentMessage"), id, text: z.string(), phase: z.string().nullish() }),
  z.object({
    type: z.literal("reasoning"),
    id,
    summary: z.array(z.string()),
    content: z.array(z.string()).default([]),
  }),
  z.object({
    type: z.literal("commandExecution"),
    id,
    command: z.string(),
    cwd: z.string(),
    status,
    aggregatedOutput: z.string().nullish(),
    exitCode: z.number().nullish(),
    durationMs: z.number().nullish(),
  }),
  z.object({ type: z.literal("fileChange"), id, changes: z.array(Change), status }),
  z.object({
    type: z.literal("mcpToolCall"),
    id,
    server: z.string(),
    tool: z.string(),
    status,
    arguments: z.unknown(),
    result: z.object({ content: z.array(z.unknown()), structuredContent: z.unknown() }).nullish(),
    error: z.object({ message: z.string() }).nullish(),
    durationMs: z.number().nullish(),
  }),
  z.object({ type: z.literal("plan"), id, text: z.string() }),
  z.object({ type: z.literal("webSearch"), id, query: z.string().default("") }),
  z.object({ type: z.literal("imageView"), id, path: z.string() }),
  z.object({ type: z.literal("contextCompaction"), id }),
]);
type NativeItem = z.infer<typeof NativeItem>;

const ItemNews = z.object({ item: z.looseObject({ type: z.string(), id: z.string().optional() }) });
const DeltaNews = z.object({ itemId: z.string(), delta: z.string(), summaryIndex: z.number().optional() });
const PlanNews = z.object({
  explanation: z.string().nullish(),
  plan: z.array(z.object({ step: z.string(), status: z.string() })),
});

const CHANNELS = {
  "item/agentMessage/delta": "text",
  "item/plan/delta": "text",
  "item/reasoning/summaryTextDelta": "reasoningSummary",
  "item/commandExecution/outputDelta": "output",
} as const;

export interface CodexItems {
  /** False: it is not about an item. */
  heard(method: string, params: unknown): Promise<boolean>;
  /** What the agent has said since the last time. */
  takeText(): string;
  /** Of a call that asks before it begins, or after. */
  beginCommand(name: string, call: { readonly command: string; readonly cwd: string }): Promise<string>;
  beginChange(name: string): Promise<string>;
  /** Paths of a change that has begun. */
  pathsOf(name: string): readonly string[];
  /** A call that was refused: its end is told as a failure. */
  refused(name: string): void;
}

export function createCodexItems({ items, unknown }: Pick<ProgramTurn, "items" | "unknown">): CodexItems {
  const said: string[] = [];
  const changes = new Map<string, readonly string[]>();
  const refused = new Set<string>();
  let plans = 0;

  async function item(method: string, params: unknown): Promise<void> {
    const raw = ItemNews.safeParse(params).data?.item;
    // Heddle records the input itself.
    if (raw === undefined || raw.type === "userMessage") return;
    const found = NativeItem.safeParse(raw);
    if (!found.success) return unknown(`item ${raw.type}`);
    const native = found.data;
    if (native.type === "fileChange")
      changes.set(
        native.id,
        native.changes.map(({ path }) => path),
      );
    if (method === "item/started") return void (await items.begin(native.id, (own) => begun(native, own)));
    if (native.type === "agentMessage" && native.text !== "") said.push(native.text);
    await items.end(native.id, (own) => whole(native, own, refused.has(native.id)));
  }

  async function plan(params: unknown): Promise<void> {
    const news = PlanNews.safeParse(params).data;
    if (news === undefined) return;
    plans += 1;
    const name = `plan ${plans}`;
    await items.end(name, (own) => ({
      type: "plan",
      id: own,
      callId: name,
      status: "completed",
      steps: news.plan.map(({ step: text, status: word }) => ({ text, status: stepStatus(word) })),
      ...(news.explanation ? { explanation: news.explanation } : {}),
    }));
  }

  return {
    async heard(method, params) {
      if (method === "item/started" || method === "item/completed") await item(method, params);
      else if (method === "turn/plan/updated") await plan(params);
      else if (Object.hasOwn(CHANNELS, method)) {
        const news = DeltaNews.safeParse(params).data;
        if (news !== undefined) items.stream(news.itemId, CHANNELS[method as keyof typeof CHANNELS], news.delta);
      } else return method.startsWith("item/");
      return true;
    },
    takeText: () => said.splice(0).join("\n\n"),
    beginCommand: (name, call) => items.begin(name, commandOf({ name, ...call })),
    beginChange: (name) =>
      items.begin(name, (own) => ({ type: "fileChange", id: own, callId: name, status: "inProgress", changes: [] })),
    pathsOf: (name) => changes.get(name) ?? [],
    refused: (name) => void refused.add(name),
  };
}

function commandOf({ name, command, cwd }: { name: string; command: string; cwd: string }): MakeItem {
  return (id) => ({
    type: "commandExecution",
    id,
    callId: name,
    status: "inProgress",
    command: bare(command),
    cwd,
    output: "",
  });
}

/** As it begins: texts come as pieces. */
function begun(native: NativeItem, id: string): Item {
  const item = whole(native, id, false);
  if (item.type === "agentMessage" || item.type === "proposedPlan") return { ...item, text: "" };
  if (item.type === "reasoning") return { ...item, summary: [] };
  return "status" in item ? { ...item, status: "inProgress" } : item;
}

function whole(native: NativeItem, id: string, isRefused: boolean): Item {
  switch (native.type) {
    case "agentMessage":
      return { type: "agentMessage", id, text: native.text, ...phaseOf(native.phase) };
    case "reasoning":
      return {
        type: "reasoning",
        id,
        summary: native.summary,
        ...(native.content.length === 0 ? {} : { text: native.content.join("\n") }),
      };
    case "commandExecution":
      return {
        type: "commandExecution",
        id,
        callId: native.id,
        status: statusOf(native.status, isRefused),
        command: bare(native.command),
        cwd: native.cwd,
        ...fittedOutput(native.aggregatedOutput ?? ""),
        ...(typeof native.exitCode === "number" ? { exitCode: native.exitCode } : {}),
        ...(typeof native.durationMs === "number" ? { durationMs: native.durationMs } : {}),
      };
    case "fileChange":
      return {
        type: "fileChange",
        id,
        callId: native.id,
        status: statusOf(native.status, isRefused),
        changes: native.changes.map(changeOf),
      };
    case "mcpToolCall":
      return {
        type: "mcpToolCall",
        id,
        callId: native.id,
        status: statusOf(native.status, isRefused),
        server: native.server,
        tool: native.tool,
        arguments: native.arguments,
        ...(native.result ? { result: native.result } : {}),
        ...(native.error ? { error: native.error.message } : {}),
        ...(typeof native.durationMs === "number" ? { durationMs: native.durationMs } : {}),
      };
    case "plan":
      return { type: "proposedPlan", id, status: "completed", text: native.text };
    case "webSearch":
      return { type: "webSearch", id, search: { query: native.query } };
    case "imageView":
      return { type: "imageView", id, callId: native.id, status: "completed", path: native.path };
    case "contextCompaction":
      return { type: "contextCompaction", id, trigger: "auto", status: "completed", tokensBefore: 0 };
  }
}

function phaseOf(phase: string | null | undefined): { phase?: "commentary" | "final_answer" } {
  return phase === "commentary" || phase === "final_answer" ? { phase } : {};
}

function statusOf(word: string, isRefused: boolean): ItemStatus {
  if (isRefused && word !== "completed") return "declined";
  switch (word) {
    case "inProgress":
    case "completed":
    case "declined":
      return word;
    case "interrupted":
    case "cancelled":
      return "interrupted";
    default:
      return "failed";
  }
}

function stepStatus(word: string): "pending" | "inProgress" | "completed" {
  return word === "completed" || word === "inProgress" ? word : "pending";
}

function changeOf({ path, kind, diff }: z.infer<typeof Change>): FileChangeEntry {
  const moved = kind.move_path ? { movedTo: kind.move_path } : {};
  return { path, kind: kind.type === "add" || kind.type === "delete" ? kind.type : "update", diff, ...moved };
}

/** Without the shell that Codex puts around it. */
export function bare(command: string): string {
  const [, quoted, plain] = /^\S*\/(?:bash|sh|zsh) -l?c (?:'([^']*)'|(\S+))$/.exec(command) ?? [];
  return quoted ?? plain ?? command;
}
