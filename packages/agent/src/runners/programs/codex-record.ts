/** A conversation of Codex as it keeps it: what was said as events, calls and their results as items of its model's API. */
import { NO_USAGE, type Usage } from "@heddle/protocol";
import { z } from "zod";
import { fittedOutput } from "./fitted-output.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";

const Line = z.object({ type: z.string(), payload: z.looseObject({ type: z.string().optional() }) });
const Message = z.object({ message: z.string() });
const Tokens = z.object({
  info: z.object({
    last_token_usage: z.object({
      input_tokens: z.number().default(0),
      cached_input_tokens: z.number().default(0),
      output_tokens: z.number().default(0),
      reasoning_output_tokens: z.number().default(0),
    }),
  }),
});
const Context = z.object({ model: z.string() });
const Call = z.object({
  call_id: z.string(),
  name: z.string(),
  arguments: z.string().optional(),
  input: z.string().optional(),
});
const Result = z.object({ call_id: z.string(), output: z.unknown() });
const Command = z.object({ cmd: z.string() }).or(z.object({ command: z.union([z.string(), z.array(z.string())]) }));

/** Said a second time by another line, or about the program itself. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set(["message", "reasoning", "agent_reasoning", "task_started"]);

export function readCodexRecord(turn: ImportingTurn): RecordReader {
  const { items, unknown, workspace } = turn;
  const calls = new Map<string, { readonly name: string; readonly given: unknown }>();
  const texts: string[] = [];
  let model: string | undefined;
  let messages = 0;

  async function spent(usage: Usage): Promise<void> {
    await turn.spent({ model, text: texts.splice(0).join("\n\n"), stopReason: "stop", usage });
  }

  async function called(payload: unknown): Promise<void> {
    const call = Call.safeParse(payload).data;
    if (call === undefined) return unknown("call");
    const given = call.input ?? json(call.arguments ?? "");
    calls.set(call.call_id, { name: call.name, given });
    await items.begin(call.call_id, (id) => itemOf(id, call.call_id, { ...call, given }, workspace));
  }

  async function settled(payload: unknown): Promise<void> {
    const result = Result.safeParse(payload).data;
    const call = calls.get(result?.call_id ?? "");
    if (result === undefined || call === undefined) return unknown("result");
    const text = textOf(result.output);
    await items.end(result.call_id, (id) => {
      const item = itemOf(id, result.call_id, call, workspace);
      const [, code] = /exited with code (\d+)/.exec(text) ?? [];
      const status = code === undefined || code === "0" ? "completed" : "failed";
      return item.type === "commandExecution"
        ? { ...item, status, ...fittedOutput(text), ...(code === undefined ? {} : { exitCode: Number(code) }) }
        : { ...item, status, ...fittedOutput(text) };
    });
  }

  async function event(type: string, payload: unknown): Promise<void> {
    const text = Message.safeParse(payload).data?.message ?? "";
    if (type === "user_message") {
      if (text !== "") await turn.said(text);
    } else if (type === "agent_message") {
      messages += 1;
      texts.push(text);
      await items.end(`message ${messages}`, (id) => ({ type: "agentMessage", id, text }));
    } else if (type === "token_count") {
      const used = Tokens.safeParse(payload).data?.info.last_token_usage;
      // It is told again when only its limits are news.
      if (used === undefined || texts.length + calls.size === 0) return;
      await spent({
        inputTokens: used.input_tokens,
        cachedInputTokens: used.cached_input_tokens,
        cacheWriteInputTokens: 0,
        outputTokens: used.output_tokens,
        reasoningOutputTokens: used.reasoning_output_tokens,
      });
    } else if (!TOLD_ELSEWHERE.has(type)) unknown(type);
  }

  return {
    async heard(raw) {
      const line = Line.safeParse(raw).data;
      if (line === undefined) return unknown("line");
      const { type = line.type } = line.payload;
      if (line.type === "turn_context") model = Context.safeParse(line.payload).data?.model ?? model;
      else if (line.type === "event_msg") await event(type, line.payload);
      else if (line.type !== "response_item") unknown(line.type);
      else if (type === "function_call" || type === "custom_tool_call") await called(line.payload);
      else if (type === "function_call_output" || type === "custom_tool_call_output") await settled(line.payload);
      else if (!TOLD_ELSEWHERE.has(type)) unknown(type);
    },
    async finish() {
      if (texts.length > 0) await spent(NO_USAGE);
    },
  };
}

function itemOf(
  id: string,
  callId: string,
  { name, given }: { readonly name: string; readonly given: unknown },
  cwd: string,
) {
  const found = Command.safeParse(given).data;
  const begun = { id, callId, status: "inProgress" } as const;
  if (found === undefined) return { type: "toolCall", ...begun, tool: name, arguments: given } as const;
  const words = "cmd" in found ? found.cmd : found.command;
  const command = typeof words === "string" ? words : words.join(" ");
  return { type: "commandExecution", ...begun, command, cwd, output: "" } as const;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function textOf(output: unknown): string {
  return typeof output === "string" ? output : JSON.stringify(output ?? "");
}
