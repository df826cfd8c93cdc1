/** Decodes the event stream of Anthropic Messages. The index of a content block is the index of its part. */
import type { ModelOutputPart, Usage } from "@heddle/protocol";
import type { Answer } from "../answer.ts";
import { failureIn, failureOfReport, malformed } from "../failure.ts";
import { readCall, shapesOf } from "./calls.ts";
import { endingIn } from "./endings.ts";
import { count, parseJson, record, text, type Json } from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

type Fields = Readonly<Record<string, Json>>;

interface Block {
  readonly start: Fields;
  readonly type: string;
  body: string;
  signature: string;
}

export function decodeAnthropic(context: WireContext, answer: Answer): Decoder {
  const { provider } = context;
  const blocks = new Map<number, Block>();
  let usage: Fields = {};
  let hasUsage = false;
  let stopReason: string | undefined;
  let explanation: string | undefined;

  function takeUsage(value: Json): void {
    const next = record(value);
    if (next === undefined) return;
    hasUsage = true;
    // Later figures replace earlier ones: they count the whole message.
    usage = { ...usage, ...Object.fromEntries(Object.entries(next).filter(([, figure]) => figure !== null)) };
  }

  function startBlock(index: number, start: Fields): void {
    const type = text(start["type"]) ?? "";
    if (type === "tool_use") answer.callBegan();
    blocks.set(index, { start, type, body: "", signature: text(start["signature"]) ?? "" });
    grow(index, text(start["text"]) ?? text(start["thinking"]) ?? "");
  }

  function grow(index: number, delta: string): void {
    const block = blocks.get(index);
    if (block === undefined) return;
    block.body += delta;
    if (block.type === "text") answer.text(index, delta);
    if (block.type === "thinking") answer.reasoning(index, delta, { channel: "summary", section: 0 });
  }

  function takeDelta(index: number, delta: Fields): void {
    const block = blocks.get(index);
    if (delta["type"] === "signature_delta" && block !== undefined) block.signature += text(delta["signature"]) ?? "";
    else grow(index, text(delta["text"]) ?? text(delta["thinking"]) ?? text(delta["partial_json"]) ?? "");
  }

  function stopBlock(index: number): void {
    const block = blocks.get(index);
    const part = block === undefined ? undefined : wholeBlock(block, context);
    blocks.delete(index);
    if (part !== undefined) answer.part(index, part);
  }

  function finish(): void {
    const ending = endingIn(provider, "stop_reason", stopReason);
    for (const index of blocks.keys()) stopBlock(index);
    answer.finish({ stopReason: ending, explanation, usage: hasUsage ? readUsage(usage) : undefined });
  }

  return {
    push({ event: name, data }) {
      const event = record(parseJson(data));
      if (event === undefined) throw malformed(provider, "an event that is not JSON", data);
      const index = count(event["index"]) ?? 0;
      switch (text(event["type"]) ?? name) {
        case "message_start":
          takeUsage(record(event["message"])?.["usage"]);
          return true;
        case "content_block_start":
          startBlock(index, record(event["content_block"]) ?? {});
          return true;
        case "content_block_delta":
          takeDelta(index, record(event["delta"]) ?? {});
          return true;
        case "content_block_stop":
          stopBlock(index);
          return true;
        case "message_delta":
          stopReason = text(record(event["delta"])?.["stop_reason"]) || stopReason;
          explanation = explanationIn(record(record(event["delta"])?.["stop_details"])) ?? explanation;
          takeUsage(event["usage"]);
          answer.isSettled = stopReason !== undefined;
          return true;
        case "message_stop":
          finish();
          return true;
        case "error":
          throw failureIn(provider, event) ?? failureOfReport(provider, { kind: "api_error", message: data });
        default:
          return false;
      }
    },
    end() {
      if (stopReason !== undefined) finish();
    },
  };
}

function wholeBlock(block: Block, { provider, request }: WireContext): ModelOutputPart | undefined {
  switch (block.type) {
    case "text":
      return block.body === "" ? undefined : { kind: "text", text: block.body };
    case "thinking": {
      const opaque = keep(provider, { type: "thinking", thinking: block.body, signature: block.signature });
      return { kind: "reasoning", summary: block.body === "" ? [] : [block.body], opaque };
    }
    case "redacted_thinking":
      return { kind: "reasoning", summary: [], opaque: keep(provider, block.start) };
    case "tool_use": {
      const name = text(block.start["name"]) ?? "";
      // A block without deltas carries its whole input in the start event.
      const json = block.body === "" ? JSON.stringify(record(block.start["input"]) ?? {}) : block.body;
      return readCall({ callId: text(block.start["id"]) ?? "", name, json }, shapesOf(request));
    }
    default:
      return undefined;
  }
}

function explanationIn(details: Fields | undefined): string | undefined {
  const said = [text(details?.["category"]), text(details?.["explanation"])].filter((words) => words !== undefined);
  return said.length === 0 ? undefined : said.join(": ");
}

/** This wire counts cached tokens apart from the others; here the input is all of them. */
function readUsage(usage: Fields): Usage {
  const cached = count(usage["cache_read_input_tokens"]) ?? 0;
  const written = count(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    inputTokens: (count(usage["input_tokens"]) ?? 0) + cached + written,
    cachedInputTokens: cached,
    cacheWriteInputTokens: written,
    outputTokens: count(usage["output_tokens"]) ?? 0,
    reasoningOutputTokens: count(record(usage["output_tokens_details"])?.["thinking_tokens"]) ?? 0,
  };
}
