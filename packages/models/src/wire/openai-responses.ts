/**
 * OpenAI Responses. Nothing is stored at the provider: each request carries the whole conversation, and every item the
 * model made goes back as it came, its encrypted reasoning included.
 */
import type { InputPart, ModelOutputPart, ModelToolCall } from "@heddle/protocol";
import type { Answer, Skipped } from "../answer.ts";
import type { ModelInfo } from "../catalog.ts";
import { failureIn, failureOfReport, malformed, quote } from "../failure.ts";
import type { Provider } from "../providers.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../stream.ts";
import { argumentsPiece, argumentsText, givenArguments } from "./calls.ts";
import { brokenOff } from "./endings.ts";
import { dataUrl, namedSchema, outputLimit, readUsage, textOrList } from "./openai.ts";
import { count, list, parseJson, record, text, type Fields, type Json } from "./untrusted.ts";
import { keep, kept, offeredTool, type Decoder, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiResponses: Wire = { encode, decode: decodeResponses };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const { effort, outputSchema } = request;
  return {
    path: "/responses",
    body: {
      model: request.model,
      instructions: request.instructions,
      input: request.input.flatMap((entry) => encodeEntry(entry, provider)),
      ...encodeTools(request, info),
      ...(effort === undefined ? {} : { reasoning: { effort, summary: "auto" } }),
      ...(outputSchema === undefined
        ? {}
        : { text: { format: { type: "json_schema", ...namedSchema(outputSchema) } } }),
      ...outputLimit(context),
      store: false,
      stream: true,
      // Models that do not reason refuse to be asked for it.
      ...(info.isReasoning === false ? {} : { include: ["reasoning.encrypted_content"] }),
      prompt_cache_key: request.cacheKey,
    },
  };
}

function encodeTools({ tools }: ModelRequest, info: ModelInfo): Record<string, unknown> {
  if (tools.length === 0) return {};
  return { tools: tools.map((tool) => encodeTool(tool, info)), tool_choice: "auto", parallel_tool_calls: true };
}

function encodeTool(tool: ToolSpec, info: ModelInfo): unknown {
  if (tool.shape === "freeform") return { type: "custom", name: tool.name, description: tool.description };
  const { name, description, parameters } = offeredTool(tool, info);
  return { type: "function", name, description, strict: false, parameters };
}

function encodeEntry(entry: ModelInput, provider: Provider): readonly unknown[] {
  switch (entry.kind) {
    case "user":
      return [{ type: "message", role: "user", content: entry.parts.map(encodePart) }];
    case "assistant":
      return entry.parts.flatMap((part) => encodeOutput(part, record(kept(provider, part.opaque))));
    case "toolResult":
      return [
        {
          type: entry.shape === "freeform" ? "custom_tool_call_output" : "function_call_output",
          call_id: entry.callId,
          output: textOrList(entry.parts, encodePart),
        },
      ];
  }
}

function encodePart(part: InputPart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: dataUrl(part) };
}

function encodeOutput(part: ModelOutputPart, item: Fields | undefined): readonly unknown[] {
  switch (part.kind) {
    case "reasoning":
      // An item of reasoning without its encrypted content can only be looked up at the provider, where nothing is stored.
      return item === undefined || (item["type"] === "reasoning" && text(item["encrypted_content"]) === undefined)
        ? []
        : [item];
    case "text":
      return [item ?? { type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] }];
    case "toolCall":
      return [encodeCall(part, item)];
  }
}

/** The call id of an item may have been changed to make it unique, and its name to one that the service accepts. */
function encodeCall(call: ModelToolCall, item: Fields | undefined): unknown {
  const { callId: call_id, name, input } = call;
  if (call.shape === "freeform") return { type: "custom_tool_call", input, ...item, name, call_id };
  return { type: "function_call", ...item, name, call_id, arguments: argumentsText(call) };
}

/**
 * `output_index` is the index of a part. The last event repeats the whole answer, so an event that cannot be read is skipped
 * as long as nothing of the answer was lost with it.
 */
function decodeResponses({ provider }: WireContext, answer: Answer): Decoder {
  /** The text of a refusal; undefined: there was none. */
  let refusal: string | undefined;
  const gaps = watchGaps(provider, answer);

  function finish(event: Fields, ending: "completed" | "incomplete"): void {
    const response = record(event["response"]) ?? {};
    const isIncomplete = isCutShort(provider, response, ending);
    // Servers that send no item events still put the items here.
    const output = list(response["output"]);
    for (const [index, item] of output.entries()) takeItem(index, item);
    gaps.requireWhole(output.length);
    const reason = text(record(response["incomplete_details"])?.["reason"]);
    const isRefused = refusal !== undefined || reason === "content_filter";
    const stopReason = isRefused ? "refusal" : isIncomplete ? "length" : "end";
    const explanation = isRefused ? refusal || reason : undefined;
    const usage = readUsage(response["usage"], ["input", "output"]);
    answer.finish({ stopReason, explanation, usage, skipped: gaps.skipped });
  }

  function takeItem(index: number, value: Json): void {
    const item = record(value);
    if (item === undefined || answer.isClosed(index)) return;
    const declined = item["type"] === "message" ? list(item["content"]).filter(isRefusal) : [];
    if (declined.length > 0) refusal = (refusal ?? "") + declined.map(contentText).join("");
    const part = readItem(provider, item);
    if (part?.kind === "text") gaps.requireAgreement(answer.textAt(index), part.text);
    if (part?.kind === "reasoning") streamMissing(index, part);
    if (part !== undefined) answer.part(index, part);
  }

  /** Reasoning as it was streamed, channels and sections in order. */
  const streamed = new Map<number, string>();

  /** A summary without deltas is streamed as a whole. */
  function streamMissing(index: number, part: ModelOutputPart & { kind: "reasoning" }): void {
    const shown = streamed.get(index);
    if (shown !== undefined) {
      // Of two channels only one may have been shown.
      if (shown !== part.text) gaps.requireAgreement(shown, part.summary.join("") + (part.text ?? ""));
      return;
    }
    for (const [section, summary] of part.summary.entries())
      answer.reasoning(index, summary, { channel: "summary", section });
    if (part.text !== undefined) answer.reasoning(index, part.text, { channel: "text", section: 0 });
  }

  return {
    push({ event: name, data }) {
      if (data === "[DONE]") return false;
      const event = record(parseJson(data));
      if (event === undefined) return gaps.skip(data);
      const type = text(event["type"]) ?? name ?? "";
      const index = count(event["output_index"]) ?? 0;
      const delta = text(event["delta"]) ?? "";
      switch (type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          if (type === "response.refusal.delta") refusal ??= "";
          answer.text(index, delta);
          return true;
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta": {
          const isSummary = type === "response.reasoning_summary_text.delta";
          const section = count(event[isSummary ? "summary_index" : "content_index"]) ?? 0;
          streamed.set(index, (streamed.get(index) ?? "") + delta);
          answer.reasoning(index, delta, { channel: isSummary ? "summary" : "text", section });
          return true;
        }
        case "response.output_item.added":
          if (CALLS.has(text(record(event["item"])?.["type"]) ?? "")) answer.callBegan();
          return true;
        case "response.output_item.done":
          takeItem(index, event["item"]);
          return true;
        case "response.completed":
        case "response.incomplete":
          finish(event, type === "response.completed" ? "completed" : "incomplete");
          return true;
        case "response.failed":
        case "error":
          throw reported(provider, record(event["response"]) ?? event);
        default:
          return MOVES.has(type);
      }
    },
    end() {
      // Only the provider's own last event makes an answer whole.
    },
  };
}

const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);

/** Events without content that still show that the model works. */
const MOVES = new Set([
  "response.created",
  "response.content_part.added",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.reasoning_summary_part.added",
]);

/** The event ends the answer, the status says how; many servers omit the status. */
function isCutShort(provider: Provider, response: Fields, ending: "completed" | "incomplete"): boolean {
  const status = text(response["status"]) ?? ending;
  if (status === "failed") throw reported(provider, response);
  if (status !== "completed" && status !== "incomplete") throw brokenOff(provider, "status", status);
  return status === "incomplete" || ending === "incomplete";
}

function reported(provider: Provider, holder: Fields): Error {
  const unexplained = { kind: "server_error", message: "the response failed without a reason" };
  return failureIn(provider, holder) ?? failureOfReport(provider, unexplained);
}

function readItem(provider: Provider, item: Fields): ModelOutputPart | undefined {
  const opaque = keep(provider, item);
  const callId = text(item["call_id"]) ?? text(item["id"]) ?? "";
  const name = text(item["name"]) ?? "";
  switch (item["type"]) {
    case "message":
      return { kind: "text", text: list(item["content"]).map(contentText).join(""), opaque };
    case "function_call": {
      const input = givenArguments(argumentsPiece(item["arguments"]));
      return { kind: "toolCall", callId, name, input, shape: "json", opaque };
    }
    case "custom_tool_call":
      return { kind: "toolCall", callId, name, input: text(item["input"]) ?? "", shape: "freeform", opaque };
    case "reasoning": {
      const summary = list(item["summary"]).map(contentText);
      const shown = list(item["content"]).map(contentText).join("");
      return { kind: "reasoning", summary, ...(shown === "" ? {} : { text: shown }), opaque };
    }
    default:
      // Any other item is not shown, and is sent back with the rest.
      return text(item["type"]) === undefined ? undefined : { kind: "reasoning", summary: [], opaque };
  }
}

function isRefusal(part: Json): boolean {
  return record(part)?.["type"] === "refusal";
}

function contentText(part: Json): string {
  const fields = record(part);
  return text(fields?.["text"]) ?? text(fields?.["refusal"]) ?? "";
}

/**
 * Events that could not be read are skipped and counted; the answer fails only when something of it was lost with them.
 */
function watchGaps(provider: Provider, answer: Answer) {
  let skipped: Skipped | undefined;

  function fail(what: string, { firstBytes }: Skipped): never {
    throw malformed(provider, `an event that is not JSON, and ${what}`, firstBytes);
  }

  return {
    get skipped(): Skipped | undefined {
      return skipped;
    },
    /** False: nothing was added to the answer. */
    skip(data: string): false {
      skipped = { events: (skipped?.events ?? 0) + 1, firstBytes: skipped?.firstBytes ?? quote(provider, data) };
      return false;
    },
    /** What readers were shown must be how the part begins. */
    requireAgreement(shown: string, said: string): void {
      if (skipped !== undefined && !said.startsWith(shown)) fail("a part of its answer is missing", skipped);
    },
    /** The last event must have repeated all parts. */
    requireWhole(repeated: number): void {
      const isWhole = repeated > 0 && repeated >= answer.closedCount;
      if (skipped !== undefined && !isWhole) fail("its end does not repeat the answer", skipped);
    },
  };
}
