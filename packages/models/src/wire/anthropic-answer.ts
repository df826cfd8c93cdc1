/** An answer of Anthropic Messages: content blocks, each a part. */
import type { ModelOutputPart, Usage } from "@heddle/protocol";
import type { Answer } from "../requests/answer.ts";
import { failureIn, failureOfReport } from "../requests/failure.ts";
import { readCall, shapesOf } from "./calls.ts";
import { endingIn } from "./endings.ts";
import {
  briefText,
  count,
  hasTooManyCitations,
  list,
  parseJson,
  record,
  sourcesIn,
  text,
  type Fields,
  type Json,
} from "./untrusted.ts";
import { fieldsIn, keep, requireFewParts, type Decoder, type WireContext } from "./wire.ts";

export function decodeAnthropic(context: WireContext, answer: Answer): Decoder {
  const { provider } = context;
  const blocks = createBlocks(context, answer);
  let usage: Fields = {};
  let hasUsage = false;
  let stopReason: string | undefined;
  let explanation: string | undefined;

  function takeUsage(value: Json): void {
    const next = record(value);
    if (next === undefined) return;
    hasUsage = true;
    // Later numbers replace earlier ones: they count the whole message.
    usage = { ...usage, ...Object.fromEntries(Object.entries(next).filter(([, figure]) => figure !== null)) };
  }

  function finish(): void {
    const ending = endingIn(provider, "stop_reason", stopReason);
    blocks.stopAll();
    answer.finish({ stopReason: ending, explanation, usage: hasUsage ? readUsage(usage) : undefined });
  }

  return {
    push({ event: name, data }) {
      const event = fieldsIn(provider, data);
      switch (text(event["type"]) ?? name) {
        case "message_start":
          takeUsage(record(event["message"])?.["usage"]);
          return true;
        case "content_block_start":
          blocks.start(event);
          return true;
        case "content_block_delta":
          blocks.grow(event);
          return true;
        case "content_block_stop":
          blocks.stop(event);
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

/** A content block. Servers leave indexes out or repeat them, so blocks are numbered as they begin. */
interface Block {
  readonly position: number;
  readonly index: number | undefined;
  readonly start: Fields;
  readonly type: string;
  /** Of text: the part it belongs to. */
  readonly run: TextRun | undefined;
  body: string;
  signature: string;
  readonly citations: Json[];
}

/** Text after text is one part: a provider that names its sources begins a block at every passage. */
interface TextRun {
  readonly position: number;
  readonly blocks: Block[];
  /** Another kind of block has followed. */
  isOver: boolean;
}

function createBlocks(context: WireContext, answer: Answer) {
  /** Those that have not ended. */
  const blocks = new Set<Block>();
  let begun = 0;
  let run: TextRun | undefined;

  function leaveRun(): void {
    const left = run;
    run = undefined;
    if (left === undefined) return;
    left.isOver = true;
    endRun(left);
  }

  function endRun(ending: TextRun): void {
    if (!ending.isOver || ending.blocks.some((block) => blocks.has(block))) return;
    const part = wholeText(ending, context);
    if (part !== undefined) answer.part(ending.position, part);
  }

  function blockOf(event: Fields): Block | undefined {
    const index = count(event["index"]);
    return [...blocks].findLast((block) => index === undefined || (block.index ?? index) === index);
  }

  function add(block: Block, delta: string): void {
    block.body += delta;
    if (block.type === "text") answer.text(block.position, delta);
    if (block.type === "thinking") answer.reasoning(block.position, delta, { channel: "summary", section: 0 });
  }

  function end(block: Block): void {
    blocks.delete(block);
    if (block.run !== undefined) return endRun(block.run);
    const part = wholeBlock(block, context);
    if (part !== undefined) answer.part(block.position, part);
  }

  return {
    start(event: Fields): void {
      const start = record(event["content_block"]) ?? {};
      const type = text(start["type"]) ?? "";
      const id = text(start["id"]) ?? "";
      if (id !== "" && [...blocks].some((block) => block.start["id"] === id)) return;
      if (type === "tool_use") answer.callBegan();
      if (type !== "text") leaveRun();
      if (type === "text" && run === undefined) run = { position: begun++, blocks: [], isOver: false };
      requireFewParts(context.provider, run?.blocks.length ?? begun);
      const block: Block = {
        position: run?.position ?? begun++,
        index: count(event["index"]),
        start,
        type,
        run,
        body: "",
        signature: text(start["signature"]) ?? "",
        citations: [...list(start["citations"])],
      };
      blocks.add(block);
      run?.blocks.push(block);
      add(block, text(start["text"]) ?? text(start["thinking"]) ?? "");
    },
    grow(event: Fields): void {
      const block = blockOf(event);
      const delta = record(event["delta"]) ?? {};
      if (block === undefined) return;
      if (delta["type"] === "citations_delta") block.citations.push(delta["citation"]);
      else if (delta["type"] === "signature_delta") block.signature += text(delta["signature"]) ?? "";
      else add(block, text(delta["text"]) ?? text(delta["thinking"]) ?? text(delta["partial_json"]) ?? "");
    },
    stop(event: Fields): void {
      const block = blockOf(event);
      if (block !== undefined) end(block);
    },
    stopAll(): void {
      for (const block of blocks) end(block);
      leaveRun();
    },
  };
}

function wholeText({ blocks }: TextRun, { provider }: WireContext): ModelOutputPart | undefined {
  const said = blocks.filter(({ body }) => body !== "");
  if (said.length === 0) return undefined;
  const all = said.flatMap(({ citations }) => citations);
  // The provider reads its own citations again.
  const cited = said.map(({ body, citations }) => ({ type: "text", text: body, citations }));
  const opaque = all.length === 0 || hasTooManyCitations(all) ? {} : { opaque: keep(provider, cited) };
  return { kind: "text", text: said.map(({ body }) => body).join(""), ...sourcesIn(all), ...opaque };
}

function wholeBlock(block: Block, { provider, request }: WireContext): ModelOutputPart | undefined {
  switch (block.type) {
    case "thinking": {
      const opaque = keep(provider, { type: "thinking", thinking: block.body, signature: block.signature });
      return { kind: "reasoning", summary: block.body === "" ? [] : [block.body], opaque };
    }
    case "redacted_thinking":
      return { kind: "reasoning", summary: [], opaque: keep(provider, block.start) };
    case "server_tool_use": {
      const input = record(block.body === "" ? block.start["input"] : parseJson(block.body)) ?? {};
      const id = briefText(block.start["id"]) ?? "";
      const query = briefText(input["query"]) ?? "";
      const search = { id, query, action: { kind: "search" as const, query } };
      return { kind: "reasoning", summary: [], search, opaque: keep(provider, { ...block.start, input }) };
    }
    case "web_search_tool_result":
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
  const reasons = [text(details?.["category"]), text(details?.["explanation"])].filter((given) => given !== undefined);
  return reasons.length === 0 ? undefined : reasons.join(": ");
}

/** This wire counts cached tokens separately; here the input includes them. */
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
