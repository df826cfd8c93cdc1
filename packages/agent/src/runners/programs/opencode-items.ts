/** Parts of OpenCode's messages as Heddle's items: begun with their first word, ended once with the whole. */
import type { Item, ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import type { ProgramTurn } from "./conversation.ts";
import { fittedOutput } from "./fitted-output.ts";

const named = { id: z.string(), messageID: z.string(), sessionID: z.string() };
const Times = z.object({ end: z.number().optional() }).optional();

const ToolState = z.object({
  status: z.string(),
  input: z.record(z.string(), z.unknown()).default({}),
  output: z.string().optional(),
  error: z.string().optional(),
  metadata: z
    .looseObject({
      output: z.string().optional(),
      exit: z.number().nullish(),
      exists: z.boolean().optional(),
      diff: z.string().optional(),
    })
    .optional(),
});

export const StepTokens = z.object({
  total: z.number().optional(),
  input: z.number().default(0),
  output: z.number().default(0),
  reasoning: z.number().default(0),
  cache: z.object({ read: z.number().default(0), write: z.number().default(0) }).default({ read: 0, write: 0 }),
});

export const OpenCodePart = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), ...named, text: z.string(), time: Times }),
  z.object({ type: z.literal("reasoning"), ...named, text: z.string(), time: Times }),
  z.object({ type: z.literal("tool"), ...named, tool: z.string(), callID: z.string(), state: ToolState }),
  z.object({
    type: z.literal("step-finish"),
    ...named,
    reason: z.string().default("stop"),
    tokens: StepTokens,
    cost: z.number().default(0),
  }),
]);
type OpenCodePart = z.infer<typeof OpenCodePart>;
type TextPart = Extract<OpenCodePart, { type: "text" | "reasoning" }>;
type ToolPart = Extract<OpenCodePart, { type: "tool" }>;

const Todos = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });

export interface OpenCodeItems {
  part(part: TextPart | ToolPart): Promise<void>;
  delta(partId: string, text: string): Promise<void>;
  plan(properties: unknown): Promise<void>;
  /** Of a call that asks before it runs, or that was not told of yet. */
  beginCall(call: AskingCall): Promise<{ readonly id: string; readonly item: Item }>;
  /** Its end is told as a failure. */
  refused(callId: string): void;
  /** Texts that it has not ended itself end with what was said of them. */
  endTexts(): Promise<void>;
  takeText(): string;
  /** Calls that run. */
  readonly openCalls: readonly string[];
  readonly hasAny: boolean;
}

export interface AskingCall {
  readonly callId: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly diff?: string | undefined;
}

/** What it plans is told as the plan. */
const PLANNING = /^todo/;
const WRITES = /^(?:write|edit|multiedit|patch|apply_patch)$/;

/** `newHandle`: what names of plans begin with. */
type PartsOf = Pick<ProgramTurn, "items" | "workspace" | "unknown" | "newHandle">;

export function createOpenCodeItems(turn: PartsOf): OpenCodeItems {
  const { items, workspace } = turn;
  const texts = new Map<string, TextPart>();
  const calls = new Map<string, AskingCall>();
  const refused = new Set<string>();
  const ended = new Set<string>();
  const said: string[] = [];
  let plans = 0;
  let hasAny = false;

  async function beginText(part: TextPart): Promise<void> {
    hasAny = true;
    await items.begin(part.id, (own) => textItem({ ...part, text: "" }, own));
  }

  async function endText(part: TextPart): Promise<void> {
    texts.delete(part.id);
    // It is told again when its times are set right.
    if (part.text === "" || ended.has(part.id)) return;
    ended.add(part.id);
    if (part.type === "text") said.push(part.text);
    await beginText(part);
    await items.end(part.id, (own) => textItem(part, own));
  }

  async function text(part: TextPart): Promise<void> {
    if (part.time?.end !== undefined) return endText(part);
    texts.set(part.id, part);
    if (part.text === "") return;
    await beginText(part);
    items.streamWhole(part.id, part.type === "text" ? "text" : "reasoningSummary", part.text);
  }

  async function tool({ tool: name, callID: callId, state }: ToolPart): Promise<void> {
    if (PLANNING.test(name)) return;
    const before = calls.get(callId);
    const call = { callId, tool: name, input: state.input, diff: state.metadata?.diff ?? before?.diff };
    calls.set(callId, call);
    // What it will do is not known yet.
    if (state.status === "pending") return;
    const make = (own: string): Item => callItem(call, { id: own, state, workspace, isRefused: refused.has(callId) });
    hasAny = true;
    if (state.status !== "running") return items.end(callId, make);
    await items.begin(callId, make);
    if (name === "bash") items.streamWhole(callId, "output", state.metadata?.output ?? "");
  }

  return {
    part: (part) => (part.type === "tool" ? tool(part) : text(part)),
    async delta(partId, more) {
      const part = texts.get(partId);
      if (part === undefined || more === "") return;
      await beginText(part);
      items.stream(partId, part.type === "text" ? "text" : "reasoningSummary", more);
    },
    async plan(properties) {
      const found = Todos.safeParse(properties).data;
      if (found === undefined) return turn.unknown("todo.updated");
      plans += 1;
      const callId = `${turn.newHandle} plan ${plans}`;
      const steps = found.todos.map(({ content, status }) => ({ text: content, status: stepStatus(status) }));
      return items.end(callId, (own) => ({ type: "plan", id: own, callId, status: "completed", steps }));
    },
    async beginCall(call) {
      hasAny = true;
      const known = calls.get(call.callId);
      const whole = { ...call, tool: known?.tool ?? call.tool, input: { ...call.input, ...known?.input } };
      calls.set(call.callId, whole);
      const state = { status: "running", input: whole.input };
      const make = (own: string): Item => callItem(whole, { id: own, state, workspace, isRefused: false });
      const id = await items.begin(call.callId, make);
      return { id, item: make(id) };
    },
    refused: (callId) => void refused.add(callId),
    async endTexts() {
      for (const part of texts.values()) await endText({ ...part, text: items.streamed(part.id) || part.text });
    },
    takeText: () => said.splice(0).join("\n\n"),
    get openCalls() {
      return [...calls.keys()].filter((callId) => items.isOpen(callId));
    },
    get hasAny() {
      return hasAny;
    },
  };
}

function textItem({ type, text }: TextPart, id: string): Item {
  if (type === "text") return { type: "agentMessage", id, text };
  return { type: "reasoning", id, summary: text === "" ? [] : [text] };
}

interface Making {
  readonly id: string;
  readonly state: z.infer<typeof ToolState>;
  readonly workspace: string;
  readonly isRefused: boolean;
}

function callItem({ callId, tool, input, diff }: AskingCall, { id, state, workspace, isRefused }: Making): Item {
  const status = statusOf(state.status, isRefused);
  const told = state.output ?? state.metadata?.output ?? state.error ?? "";
  if (tool === "bash") {
    const { exit } = state.metadata ?? {};
    return {
      type: "commandExecution",
      id,
      callId,
      // It is completed for this program whatever its exit code is; one that was stopped has none.
      status: status === "completed" && exit !== 0 ? "failed" : status,
      command: textIn(input, "command"),
      cwd: textIn(input, "workdir") || workspace,
      ...fittedOutput(status === "inProgress" ? "" : told),
      ...(typeof exit === "number" ? { exitCode: exit } : {}),
    };
  }
  if (WRITES.test(tool)) {
    const path = textIn(input, "filePath");
    const kind = tool === "write" && state.metadata?.exists === false ? "add" : "update";
    return {
      type: "fileChange",
      id,
      callId,
      status,
      changes: path === "" ? [] : [{ path, kind, diff: diff ?? "" }],
    };
  }
  return {
    type: "toolCall",
    id,
    callId,
    status,
    tool,
    arguments: input,
    ...(status === "inProgress" ? {} : fittedOutput(told)),
  };
}

function textIn(input: Readonly<Record<string, unknown>>, key: string): string {
  const value = input[key];
  return typeof value === "string" ? value : "";
}

function statusOf(word: string, isRefused: boolean): ItemStatus {
  if (word === "pending" || word === "running") return "inProgress";
  if (word === "completed") return "completed";
  return isRefused ? "declined" : "failed";
}

function stepStatus(word: string): "pending" | "inProgress" | "completed" {
  if (word === "in_progress") return "inProgress";
  return word === "completed" ? "completed" : "pending";
}
