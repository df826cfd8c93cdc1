/**
 * Decodes the event stream of OpenAI Responses. `output_index` is the index of a part. The last event repeats the whole
 * answer, so an event that cannot be read is passed over as long as nothing of the answer was lost with it.
 */
import type { ModelOutputPart, Usage } from "@heddle/protocol";
import type { Answer } from "../answer.ts";
import { failureIn, failureOfReport } from "../failure.ts";
import type { Provider } from "../providers.ts";
import { argumentsPiece, givenArguments } from "./calls.ts";
import { brokenOff } from "./endings.ts";
import { watchGaps } from "./gaps.ts";
import { count, list, parseJson, record, text, type Json } from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

export function decodeResponses({ provider }: WireContext, answer: Answer): Decoder {
  /** What the model said when it declined; undefined: it did not. */
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
    answer.finish({ stopReason, explanation, usage: readUsage(response["usage"]), skipped: gaps.skipped });
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

  /** A summary that came without deltas is streamed as a whole. */
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
      switch (type) {
        case "response.output_text.delta":
        case "response.refusal.delta": {
          const { index, delta } = deltaOf(event);
          if (type === "response.refusal.delta") refusal ??= "";
          answer.text(index, delta);
          return true;
        }
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta": {
          const { index, delta } = deltaOf(event);
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
          takeItem(count(event["output_index"]) ?? 0, event["item"]);
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

type Fields = Readonly<Record<string, Json>>;

function deltaOf(event: Fields): { index: number; delta: string } {
  return { index: count(event["output_index"]) ?? 0, delta: text(event["delta"]) ?? "" };
}

const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);

/** Events without news for the reader that still show the model at work. */
const MOVES = new Set([
  "response.created",
  "response.content_part.added",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.reasoning_summary_part.added",
]);

/** The event says that the answer is over, the status how; many servers leave the status out. */
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
      // Whatever else the provider made is its own, silent here, and goes back with the rest.
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

function readUsage(value: Json): Usage | undefined {
  const usage = record(value);
  if (usage === undefined) return undefined;
  const input = record(usage["input_tokens_details"]);
  return {
    inputTokens: count(usage["input_tokens"]) ?? 0,
    cachedInputTokens: count(input?.["cached_tokens"]) ?? 0,
    cacheWriteInputTokens: count(input?.["cache_write_tokens"]) ?? 0,
    outputTokens: count(usage["output_tokens"]) ?? 0,
    reasoningOutputTokens: count(record(usage["output_tokens_details"])?.["reasoning_tokens"]) ?? 0,
  };
}
