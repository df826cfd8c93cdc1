/**
 * Updates of an ACP agent as items. A message ends where something else begins; agents that give no ids of messages are
 * understood by that alone. A call is told in parts, and the last word on each part counts.
 */
import type { FileChangeEntry, Item, ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import type { AcpQuirks } from "./acp-quirks.ts";
import { commandResult, ShellInput, type CommandResult } from "./acp-shell.ts";
import type { ProgramTurn } from "./conversation.ts";
import { fittedOutput } from "./fitted-output.ts";

const Text = z.object({ type: z.literal("text"), text: z.string() });
const Chunk = z.object({ messageId: z.string().nullish(), content: z.unknown() });
const Content = z.union([
  z.object({ type: z.literal("content"), content: z.unknown() }),
  z.object({ type: z.literal("diff"), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
  z.looseObject({ type: z.string() }),
]);
const Call = z.object({
  toolCallId: z.string(),
  title: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.string().nullish(),
  content: z.array(Content).nullish(),
  locations: z.array(z.looseObject({ path: z.string() })).nullish(),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
  _meta: z
    .looseObject({
      terminal_output_delta: z.object({ data: z.string() }).optional(),
      terminal_exit: z.object({ exit_code: z.number().nullish() }).optional(),
    })
    .nullish(),
});
type Call = z.infer<typeof Call>;
const Plan = z.object({ entries: z.array(z.object({ content: z.string(), status: z.string() })) });
const ThreadStatus = z.object({
  _meta: z.object({ codex: z.object({ threadStatus: z.object({ type: z.string() }) }) }),
});

export interface AcpItems {
  heard(update: { readonly sessionUpdate: string }): Promise<void>;
  beginCall(call: unknown): Promise<{ readonly id: string; readonly item: Item }>;
  refused(callId: string): void;
  /** A prompt begins. */
  start(): void;
  /** It is over: open texts end, and what was refused without another word. Returns what was said. */
  finish(): Promise<string>;
  /** An error that it told as a message, and nothing after it. */
  readonly problem: string | undefined;
  readonly wasRefused: boolean;
  readonly hasFailed: boolean;
}

interface OpenText {
  readonly name: string;
  readonly type: "agentMessage" | "reasoning";
  readonly messageId: string | null | undefined;
}

export function createAcpItems(turn: ProgramTurn, quirks: () => AcpQuirks): AcpItems {
  const { items, unknown } = turn;
  const texts = createTexts(turn, quirks);
  const calls = createCalls(turn, { texts, quirks });
  let plans = 0;
  let hasFailed = false;
  let problem: string | undefined;

  async function plan(update: unknown): Promise<void> {
    const { entries } = Plan.parse(update);
    plans += 1;
    const name = `plan ${plans}`;
    const steps = entries.map(({ content, status }) => ({ text: content, status: stepStatus(status) }));
    await items.end(name, (id) => ({ type: "plan", id, callId: name, status: "completed", steps }));
  }

  return {
    ...calls,
    async heard(update) {
      switch (update.sessionUpdate) {
        case "agent_message_chunk":
          return texts.piece("agentMessage", update);
        case "agent_thought_chunk":
          return texts.piece("reasoning", update);
        case "tool_call":
        case "tool_call_update":
          return calls.heard(update);
        case "plan":
          return plan(update);
        case "session_info_update":
          hasFailed ||= ThreadStatus.safeParse(update).data?._meta.codex.threadStatus.type === "systemError";
          return;
        default:
          if (!IGNORED.has(update.sessionUpdate)) unknown(`update ${update.sessionUpdate}`);
      }
    },
    start() {
      problem = undefined;
      hasFailed = false;
    },
    async finish() {
      problem = texts.problem();
      await texts.end();
      await calls.endRefused();
      return texts.taken();
    },
    get problem() {
      return problem;
    },
    get wasRefused() {
      return calls.wasRefused();
    },
    get hasFailed() {
      return hasFailed;
    },
  };
}

type Texts = ReturnType<typeof createTexts>;

/** Messages and thoughts: one is open at a time. */
function createTexts(
  { items, unknown, warn }: Pick<ProgramTurn, "items" | "unknown" | "warn">,
  quirks: () => AcpQuirks,
) {
  const said: string[] = [];
  const notices = new Set<string>();
  let problem: string | undefined;
  let count = 0;
  let open: OpenText | undefined;

  /** Its own word among those of its model: an error, or a notice, which is told once. */
  async function isOwnWord(text: string): Promise<boolean> {
    const { errorText, noticeText, echoText } = quirks();
    problem = errorText?.test(text) === true ? text.trim() : undefined;
    if (problem !== undefined || echoText?.test(text) === true) return true;
    if (noticeText?.test(text) !== true) return false;
    if (!notices.has(text)) await warn("runner.failed", `the agent says: ${text.trim()}`);
    notices.add(text);
    return true;
  }

  async function end(): Promise<void> {
    problem = undefined;
    if (open === undefined) return;
    const { name, type } = open;
    open = undefined;
    const whole = items.streamed(name);
    if (type === "agentMessage") said.push(whole);
    await items.end(name, textItem(type, whole));
  }

  return {
    end,
    problem: (): string | undefined => problem,
    /** What was said since the last time. */
    taken: (): string => said.splice(0).join("\n\n"),
    async piece(type: OpenText["type"], update: unknown): Promise<void> {
      const { messageId, content } = Chunk.parse(update);
      const text = Text.safeParse(content).data?.text;
      if (text === undefined) return unknown(`content of ${type}`);
      // It carries something else, such as what was used.
      if (text === "") return;
      if (type === "agentMessage" && (await isOwnWord(text))) return;
      if (open?.type !== type || (messageId && messageId !== open.messageId)) {
        await end();
        count += 1;
        // The same message may go on after a call, as an item of its own.
        open = { name: `${type} ${count}`, type, messageId };
        await items.begin(open.name, textItem(type, ""));
      }
      items.stream(open.name, type === "agentMessage" ? "text" : "reasoningSummary", text);
    },
  };
}

/** Calls, by its own ids. */
function createCalls(
  { items, unknown, workspace }: ProgramTurn,
  { texts, quirks }: { readonly texts: Pick<Texts, "end">; readonly quirks: () => AcpQuirks },
) {
  const commandOf = (call: Call): CommandResult | undefined =>
    call.kind === "execute" ? commandResult({ ...call, text: textIn(call.content ?? []) }, quirks()) : undefined;

  const known = new Map<string, Call>();
  const refused = new Set<string>();

  async function begin(part: Call): Promise<{ readonly id: string; readonly now: Call }> {
    await texts.end();
    const before = known.get(part.toolCallId);
    const now = before === undefined ? part : joined(before, part);
    known.set(part.toolCallId, now);
    const begun = { ...now, status: "in_progress" };
    const id = await items.begin(part.toolCallId, (own) => callItem(begun, { id: own, workspace }));
    return { id, now };
  }

  return {
    async heard(update: { readonly sessionUpdate: string }): Promise<void> {
      const told = Call.safeParse(update).data;
      if (told === undefined) return unknown("tool_call");
      const hasEnded = told.status === "completed" || told.status === "failed";
      const part = update.sessionUpdate === "tool_call" && !hasEnded ? explained(told) : told;
      const { now } = await begin(part);
      const name = now.toolCallId;
      const delta = part._meta?.terminal_output_delta?.data;
      if (delta !== undefined) items.stream(name, "output", delta);
      else items.streamWhole(name, "output", commandOf({ ...now, content: part.content })?.output ?? "");
      if (now.status !== "completed" && now.status !== "failed") return;
      const shown = { workspace, isRefused: refused.has(name), streamed: items.streamed(name) };
      await items.end(name, (id) => callItem(now, { id, result: commandOf(now), ...shown }));
    },
    async beginCall(raw: unknown): ReturnType<AcpItems["beginCall"]> {
      const { id, now } = await begin(explained(Call.parse(raw)));
      return { id, item: callItem(now, { id, workspace }) };
    },
    refused: (callId: string): void => void refused.add(callId),
    wasRefused: (): boolean => refused.size > 0,
    /** Some say no more of a call that was declined. */
    async endRefused(): Promise<void> {
      for (const callId of refused) {
        const call = known.get(callId);
        if (call === undefined || !items.isOpen(callId)) continue;
        const failed: Call = { ...call, status: "failed" };
        await items.end(callId, (id) => callItem(failed, { id, workspace, isRefused: true }));
      }
    },
  };
}

/** Of a call that begins, or is asked for: what it shows besides changes explains it, and is no output. */
function explained(call: Call): Call {
  return { ...call, content: call.content?.filter(({ type }) => type === "diff") };
}

const IGNORED: ReadonlySet<string> = new Set([
  "user_message_chunk",
  "available_commands_update",
  "current_mode_update",
  "config_option_update",
  "usage_update",
]);

const textItem =
  (type: OpenText["type"], text: string) =>
  (id: string): Item =>
    type === "agentMessage" ? { type, id, text } : { type, id, summary: text === "" ? [] : [text] };

/** What a later part does not say stays as it was. */
function joined(before: Call, part: Call): Call {
  const given = Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined && value !== null));
  const content = part.content && part.content.length > 0 ? part.content : before.content;
  const rawInput = isEmpty(part.rawInput) ? before.rawInput : part.rawInput;
  return { ...before, ...given, content, rawInput };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

interface Shown {
  readonly id: string;
  readonly workspace: string;
  readonly isRefused?: boolean;
  readonly streamed?: string;
  /** Of a command. */
  readonly result?: CommandResult | undefined;
}

function callItem(call: Call, { id, workspace, isRefused = false, streamed = "", result }: Shown): Item {
  const { toolCallId: callId, kind, title, rawInput } = call;
  const exitCode = call._meta?.terminal_exit?.exit_code ?? result?.exitCode;
  // For some a command has completed whatever its exit code is.
  const isBad = result?.isCancelled === true || (exitCode !== undefined && exitCode !== 0);
  const begun = {
    id,
    callId,
    status: statusOf(call.status === "completed" && isBad ? "failed" : call.status, isRefused),
  };
  const diffs = changesIn(call);
  if (kind === "execute") {
    const input = ShellInput.safeParse(rawInput).data;
    const command = input === undefined ? (title ?? "") : [input.command].flat().join(" ");
    const output = streamed === "" ? (result?.output ?? "") : streamed;
    return {
      type: "commandExecution",
      ...begun,
      command,
      cwd: input?.cwd ?? workspace,
      ...fittedOutput(isRefused ? "" : output),
      ...(exitCode === undefined ? {} : { exitCode }),
    };
  }
  if (diffs.length > 0 || kind === "edit" || kind === "delete" || kind === "move") {
    const written = Written.safeParse(call).data?.rawInput.content;
    const named = (call.locations ?? []).map(({ path }): FileChangeEntry =>
      written === undefined
        ? { path, kind: kind === "delete" ? "delete" : "update", diff: "" }
        : { path, kind: "add", diff: written },
    );
    return { type: "fileChange", ...begun, changes: diffs.length > 0 ? diffs : named };
  }
  const tool = kind ?? "other";
  const args = rawInput === undefined ? { title } : rawInput;
  return { type: "toolCall", ...begun, tool, arguments: args, ...fittedOutput(textIn(call.content ?? [])) };
}

/** Some tell no change, but the text that they were asked to write, and that there was no file. */
const Written = z.object({
  rawInput: z.object({ content: z.string() }),
  rawOutput: z.object({ metadata: z.object({ exists: z.literal(false) }) }),
});

function changesIn({ content }: Call): FileChangeEntry[] {
  return (content ?? []).flatMap((part) => {
    if (part.type !== "diff" || !("newText" in part) || typeof part.newText !== "string") return [];
    const { path, oldText, newText } = part as { path: string; oldText?: string | null; newText: string };
    // Of a file that is not there yet some send an empty text.
    const isNew = typeof oldText !== "string" || oldText === "";
    return [{ path, kind: isNew ? "add" : "update", diff: isNew ? newText : changed(oldText, newText) } as const];
  });
}

/** Whole texts are what agents send; a diff of whole texts says which lines went and came. */
function changed(before: string, after: string): string {
  const lines = (text: string, mark: string): string =>
    text
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => `${mark}${line}`)
      .join("\n");
  return `${lines(before, "-")}\n${lines(after, "+")}`;
}

function textIn(content: readonly z.infer<typeof Content>[]): string {
  return content
    .flatMap((part) => ("content" in part ? [Text.safeParse(part.content).data?.text ?? ""] : []))
    .join("\n")
    .replace(/^```\w*\n([\s\S]*?)\n?```$/, "$1\n");
}

function statusOf(word: string | null | undefined, isRefused: boolean): ItemStatus {
  if (isRefused && word !== "completed") return word === "failed" ? "declined" : "inProgress";
  if (word === "completed" || word === "failed") return word;
  return "inProgress";
}

function stepStatus(word: string): "pending" | "inProgress" | "completed" {
  if (word === "completed") return word;
  return word === "in_progress" ? "inProgress" : "pending";
}
