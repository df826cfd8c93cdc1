/** One step of a script as the events of a wire, like its real server sends them. Pure; `testing.ts` sends them. */
import { defined, type ModelOutputPart, type Usage } from "@heddle/protocol";
import { partsOf, type ScriptStep } from "../scripted/script.ts";
import { slices } from "../scripted/scripted.ts";
import { prefixOf } from "./testing-rules.ts";
import { list, parseJson, record, text } from "../wire/untrusted.ts";

export type HttpWire = "openai-responses" | "openai-chat" | "anthropic" | "gemini";

/** `delta` and `args` carry pieces of text and of tool arguments; `end` is what makes an answer whole. */
export interface Frame {
  readonly kind: "open" | "delta" | "args" | "part" | "end";
  readonly event?: string;
  readonly data: string;
}

export interface PlayOptions {
  readonly step: ScriptStep;
  /** The request's body, as it came. */
  readonly body: unknown;
  /** Answers already in the request. */
  readonly answers: number;
  readonly deltaChars: number;
  /** The output limit is reached inside the first part. */
  readonly isCut?: boolean;
}

interface Play extends PlayOptions {
  readonly parts: readonly ModelOutputPart[];
  readonly usage: Usage;
}

export function framesOf(wire: HttpWire, options: PlayOptions): readonly Frame[] {
  const freeform = freeformTools(options.body);
  const makeId = (call: number): string => `call_${options.answers + 1}_${call + 1}`;
  const whole = partsOf(options.step, (tool) => (freeform.has(tool) ? "freeform" : "json"), makeId);
  const parts = options.isCut === true ? whole.slice(0, 1) : whole;
  const play: Play = { ...options, parts, usage: usageOf(options.step) };
  switch (wire) {
    case "openai-responses":
      return playResponses(play);
    case "openai-chat":
      return playChat(play);
    case "anthropic":
      return playAnthropic(play);
    case "gemini":
      return playGemini(play);
  }
}

export function toText({ event, data }: Frame): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}

/** How many answers of the model a request holds. */
export function countAnswers(wire: HttpWire, body: unknown): number {
  const fields = record(body) ?? {};
  if (wire === "gemini") return list(fields["contents"]).filter((entry) => record(entry)?.["role"] === "model").length;
  if (wire !== "openai-responses") {
    return list(fields["messages"]).filter((entry) => record(entry)?.["role"] === "assistant").length;
  }
  // One answer is a run of items that the model made.
  const isOwn = list(fields["input"]).map((entry) => {
    const item = record(entry) ?? {};
    return (
      item["role"] === "assistant" || /^(reasoning|function_call|custom_tool_call)$/.test(text(item["type"]) ?? "")
    );
  });
  return isOwn.filter((own, index) => own && isOwn[index - 1] !== true).length;
}

const DEFAULT_USAGE: Usage = {
  inputTokens: 100,
  cachedInputTokens: 40,
  cacheWriteInputTokens: 0,
  outputTokens: 20,
  reasoningOutputTokens: 5,
};

function usageOf({ usage = {} }: ScriptStep): Usage {
  return { ...DEFAULT_USAGE, ...defined(usage) };
}

/** Tools declared as freeform: by their own type, or as JSON with the one field `input`. */
function freeformTools(body: unknown): ReadonlySet<string> {
  const tools = list(record(body)?.["tools"]).flatMap((tool) => {
    const declarations = list(record(tool)?.["functionDeclarations"]);
    return declarations.length > 0 ? declarations : [tool];
  });
  const names = tools.flatMap((value) => {
    const outer = record(value) ?? {};
    const tool = record(outer["function"]) ?? outer;
    const schema = record(tool["parameters"] ?? tool["input_schema"] ?? tool["parametersJsonSchema"]);
    const isFreeform =
      outer["type"] === "custom" || Object.keys(record(schema?.["properties"]) ?? {}).join() === "input";
    return isFreeform ? [text(tool["name"]) ?? ""] : [];
  });
  return new Set(names);
}

/** The arguments as a wire without freeform tools carries them. */
function jsonArguments(part: ModelOutputPart & { kind: "toolCall" }): string {
  return part.shape === "freeform" ? JSON.stringify({ input: part.input }) : part.input;
}

function playResponses({ parts, usage, deltaChars, answers, isCut = false }: Play): readonly Frame[] {
  const frames: Frame[] = [];
  let sequence_number = 0;
  const send = (kind: Frame["kind"], type: string, fields: object): void => {
    frames.push({ kind, event: type, data: JSON.stringify({ type, sequence_number: sequence_number++, ...fields }) });
  };
  const id = `resp_${answers + 1}`;
  send("open", "response.created", { response: { id, object: "response", status: "in_progress", output: [] } });
  const output = parts.map((part, output_index) => {
    const item = responsesItem(part, `${answers + 1}_${output_index}`);
    send("part", "response.output_item.added", {
      output_index,
      item: { ...item, ...UNSAID[part.kind], status: "in_progress" },
    });
    const delta = responsesDelta(part);
    for (const piece of slices(delta.whole, deltaChars)) {
      send(delta.kind, delta.type, { item_id: item["id"], output_index, [delta.position]: 0, delta: piece });
    }
    send("part", "response.output_item.done", { output_index, item });
    return item;
  });
  const tokens = {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteInputTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningOutputTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
  const ending = isCut
    ? { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
    : { status: "completed" };
  send("end", `response.${ending.status}`, { response: { id, object: "response", ...ending, output, usage: tokens } });
  return frames;
}

/** A part is announced without its content. */
const UNSAID = { reasoning: { summary: [] }, text: { content: [] }, toolCall: {} } as const;

function responsesItem(part: ModelOutputPart, id: string): Record<string, unknown> {
  if (part.kind === "reasoning") {
    const summary = part.summary.map((section) => ({ type: "summary_text", text: section }));
    return { id: `rs_${id}`, type: "reasoning", summary, encrypted_content: `sealed-${id}` };
  }
  if (part.kind === "text") {
    const content = [{ type: "output_text", text: part.text, annotations: [] }];
    return { id: `msg_${id}`, type: "message", status: "completed", role: "assistant", content };
  }
  const { callId: call_id, name, input } = part;
  if (part.shape === "freeform")
    return { id: `ctc_${id}`, type: "custom_tool_call", status: "completed", call_id, name, input };
  return { id: `fc_${id}`, type: "function_call", status: "completed", call_id, name, arguments: input };
}

function responsesDelta(part: ModelOutputPart): { kind: Frame["kind"]; type: string; position: string; whole: string } {
  if (part.kind === "reasoning") {
    const type = "response.reasoning_summary_text.delta";
    return { kind: "delta", type, position: "summary_index", whole: part.summary.join("") };
  }
  if (part.kind === "text") {
    return { kind: "delta", type: "response.output_text.delta", position: "content_index", whole: part.text };
  }
  const type =
    part.shape === "freeform" ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
  return { kind: "args", type, position: "content_index", whole: part.input };
}

function playChat({ parts, usage, deltaChars, answers, isCut = false }: Play): readonly Frame[] {
  const id = `chatcmpl-${answers + 1}`;
  const frames: Frame[] = [];
  const send = (kind: Frame["kind"], delta: object, finish_reason: string | null = null): void => {
    const choices = [{ index: 0, delta, finish_reason }];
    frames.push({ kind, data: JSON.stringify({ id, object: "chat.completion.chunk", choices, usage: null }) });
  };
  send("open", { role: "assistant", content: "" });
  let index = 0;
  for (const part of parts) {
    if (part.kind === "reasoning")
      for (const reasoning_content of slices(part.summary.join(""), deltaChars)) send("delta", { reasoning_content });
    if (part.kind === "text") for (const content of slices(part.text, deltaChars)) send("delta", { content });
    if (part.kind !== "toolCall") continue;
    send("part", {
      tool_calls: [{ index, id: part.callId, type: "function", function: { name: part.name, arguments: "" } }],
    });
    for (const piece of slices(jsonArguments(part), deltaChars))
      send("args", { tool_calls: [{ index, function: { arguments: piece } }] });
    index += 1;
  }
  send("end", {}, isCut ? "length" : index > 0 ? "tool_calls" : "stop");
  const tokens = {
    prompt_tokens: usage.inputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteInputTokens },
    completion_tokens: usage.outputTokens,
    completion_tokens_details: { reasoning_tokens: usage.reasoningOutputTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
  frames.push({
    kind: "end",
    data: JSON.stringify({ id, object: "chat.completion.chunk", choices: [], usage: tokens }),
  });
  frames.push({ kind: "end", data: "[DONE]" });
  return frames;
}

function playAnthropic({ parts, usage, deltaChars, answers, body, isCut = false }: Play): readonly Frame[] {
  const frames: Frame[] = [];
  const send = (kind: Frame["kind"], type: string, fields: object): void => {
    frames.push({ kind, event: type, data: JSON.stringify({ type, ...fields }) });
  };
  const input = {
    input_tokens: usage.inputTokens - usage.cachedInputTokens - usage.cacheWriteInputTokens,
    cache_read_input_tokens: usage.cachedInputTokens,
    cache_creation_input_tokens: usage.cacheWriteInputTokens,
  };
  const message = { id: `msg_${answers + 1}`, type: "message", role: "assistant", content: [], stop_reason: null };
  send("open", "message_start", { message: { ...message, usage: { ...input, output_tokens: 1 } } });
  send("open", "ping", {});
  for (const [index, part] of parts.entries()) {
    const block = anthropicBlock(part);
    send("part", "content_block_start", { index, content_block: block.start });
    for (const piece of slices(block.whole, deltaChars)) {
      send(block.kind, "content_block_delta", { index, delta: { type: block.type, [block.field]: piece } });
    }
    if (part.kind === "reasoning" && !isCut) {
      const delta = { type: "signature_delta", signature: `signed-${answers + 1}-${index}-${prefixOf(body)}` };
      send("part", "content_block_delta", { index, delta });
    }
    send("part", "content_block_stop", { index });
  }
  const stop_reason = isCut ? "max_tokens" : parts.some((part) => part.kind === "toolCall") ? "tool_use" : "end_turn";
  const spent = {
    output_tokens: usage.outputTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningOutputTokens },
  };
  send("end", "message_delta", { delta: { stop_reason, stop_sequence: null }, usage: spent });
  send("end", "message_stop", {});
  return frames;
}

interface AnthropicBlock {
  readonly kind: Frame["kind"];
  readonly start: Record<string, unknown>;
  readonly type: string;
  readonly field: string;
  readonly whole: string;
}

function anthropicBlock(part: ModelOutputPart): AnthropicBlock {
  if (part.kind === "reasoning") {
    const start = { type: "thinking", thinking: "", signature: "" };
    return { kind: "delta", start, type: "thinking_delta", field: "thinking", whole: part.summary.join("") };
  }
  if (part.kind === "text") {
    return { kind: "delta", start: { type: "text", text: "" }, type: "text_delta", field: "text", whole: part.text };
  }
  const start = { type: "tool_use", id: part.callId, name: part.name, input: {} };
  return { kind: "args", start, type: "input_json_delta", field: "partial_json", whole: jsonArguments(part) };
}

function playGemini({ parts, usage, deltaChars, answers, isCut = false }: Play): readonly Frame[] {
  const frames: Frame[] = [];
  const usageMetadata = {
    promptTokenCount: usage.inputTokens,
    cachedContentTokenCount: usage.cachedInputTokens,
    candidatesTokenCount: usage.outputTokens - usage.reasoningOutputTokens,
    thoughtsTokenCount: usage.reasoningOutputTokens,
    totalTokenCount: usage.inputTokens + usage.outputTokens,
  };
  const send = (kind: Frame["kind"], pieces: readonly unknown[], finish: object = {}): void => {
    const candidates = [{ content: { role: "model", parts: pieces }, index: 0, ...finish }];
    frames.push({ kind, data: JSON.stringify({ candidates, usageMetadata, responseId: `gen_${answers + 1}` }) });
  };
  for (const part of parts) {
    if (part.kind === "reasoning")
      for (const piece of slices(part.summary.join(""), deltaChars)) send("delta", [{ text: piece, thought: true }]);
    if (part.kind === "text") for (const piece of slices(part.text, deltaChars)) send("delta", [{ text: piece }]);
    if (part.kind !== "toolCall") continue;
    const source = jsonArguments(part);
    // This wire carries arguments as an object, so broken JSON cannot travel on it.
    const args = parseJson(source) ?? source;
    send("args", [
      { functionCall: { id: part.callId, name: part.name, args }, thoughtSignature: `signed-${part.callId}` },
    ]);
  }
  if (isCut) send("end", [], { finishReason: "MAX_TOKENS" });
  else send("end", [{ text: "", thoughtSignature: `signed-${answers + 1}` }], { finishReason: "STOP" });
  return frames;
}
