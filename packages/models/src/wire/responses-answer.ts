/**
 * An answer of OpenAI Responses. The last event repeats the whole of it, so an event that cannot be read is skipped as long
 * as nothing was lost with it.
 */
import { defined, type MessagePhase, type ModelOutputPart, type WebSearch } from "@heddle/protocol";
import type { Answer, Skipped } from "../requests/answer.ts";
import { failureIn, failureOfReport, malformed, quote } from "../requests/failure.ts";
import type { Provider } from "../providers/providers.ts";
import { argumentsPiece, givenArguments } from "./calls.ts";
import { brokenOff } from "./endings.ts";
import { readUsage } from "./openai.ts";
import { callContent, createPartSlots, type SeenWhole } from "./part-slots.ts";
import {
  briefText,
  count,
  hasTooManyCitations,
  list,
  MAX_QUERIES,
  parseJson,
  record,
  sourcesIn,
  text,
  webAddress,
  type Fields,
  type Json,
} from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

export function decodeResponses({ provider }: WireContext, answer: Answer): Decoder {
  const gaps = watchGaps(provider, answer);
  const items = createItems(provider, answer, gaps);

  function finish(event: Fields, ending: "completed" | "incomplete"): void {
    const response = record(event["response"]) ?? {};
    const isIncomplete = isCutShort(provider, response, ending);
    const order = items.repeat(list(response["output"]).map((item) => record(item) ?? {}));
    const reason = text(record(response["incomplete_details"])?.["reason"]);
    const isRefused = items.refusal !== undefined || reason === "content_filter";
    const stopReason = isRefused ? "refusal" : isIncomplete ? "length" : "end";
    items.finishOpen(stopReason === "end");
    const explanation = isRefused ? items.refusal || reason : undefined;
    const usage = readUsage(response["usage"], ["input", "output"]);
    answer.finish({ stopReason, explanation, usage, skipped: gaps.skipped, order });
  }

  return {
    push({ event: name, data }) {
      if (data === "[DONE]") return false;
      const event = record(parseJson(data));
      if (event === undefined) return gaps.skip(data);
      const type = text(event["type"]) ?? name ?? "";
      switch (type) {
        case "response.output_text.delta":
          items.text(event);
          return true;
        case "response.refusal.delta":
          items.refuse(event);
          return true;
        case "response.reasoning_summary_text.delta":
          items.reasoning(event, "summary");
          return true;
        case "response.reasoning_text.delta":
          items.reasoning(event, "text");
          return true;
        case "response.output_item.added":
          items.announce(event);
          return true;
        case "response.output_item.done":
          items.take(event);
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

const NO_FIELDS: Fields = {};

/** The items of an answer, each once, whatever the events say about their places. */
function createItems(provider: Provider, answer: Answer, gaps: Gaps) {
  /** The text of a refusal; undefined: there was none. */
  let refusal: string | undefined;
  const slots = createPartSlots(provider);
  /** Reasoning as it was streamed, channels and sections in order. */
  const streamed = new Map<number, string>();
  /** Of messages that have begun, by their ids. */
  const phases = new Map<string, MessagePhase | undefined>();

  const pieceOf = (event: Fields, kind: string): number =>
    slots.piece({ kind, id: text(event["item_id"]) || undefined, index: count(event["output_index"]) });
  const itemOf = (event: Fields): SeenWhole => ({
    ...seenIn(record(event["item"]) ?? NO_FIELDS),
    index: count(event["output_index"]),
  });

  function takePart(position: number, item: Fields): void {
    const declined = item["type"] === "message" ? list(item["content"]).filter(isRefusal) : [];
    if (declined.length > 0) refusal = (refusal ?? "") + declined.map(contentText).join("");
    const part = readItem(provider, item);
    if (part?.kind === "text") gaps.requireAgreement(answer.textAt(position), part.text);
    if (part?.kind === "reasoning") streamMissing(position, part);
    if (part !== undefined) answer.part(position, part);
  }

  /** A summary without deltas is streamed as a whole. */
  function streamMissing(position: number, part: ModelOutputPart & { kind: "reasoning" }): void {
    const shown = streamed.get(position);
    if (shown !== undefined) {
      // Of two channels only one may have been shown.
      if (shown !== part.text) gaps.requireAgreement(shown, part.summary.join("") + (part.text ?? ""));
      return;
    }
    for (const [section, summary] of part.summary.entries())
      answer.reasoning(position, summary, { channel: "summary", section });
    if (part.text !== undefined) answer.reasoning(position, part.text, { channel: "text", section: 0 });
  }

  return {
    get refusal(): string | undefined {
      return refusal;
    },
    text(event: Fields): void {
      const phase = phases.get(text(event["item_id"]) ?? "");
      answer.text(pieceOf(event, "message"), text(event["delta"]) ?? "", phase);
    },
    refuse(event: Fields): void {
      refusal ??= "";
      this.text(event);
    },
    reasoning(event: Fields, channel: "summary" | "text"): void {
      const section = count(event[channel === "summary" ? "summary_index" : "content_index"]) ?? 0;
      const position = pieceOf(event, "reasoning");
      const delta = text(event["delta"]) ?? "";
      streamed.set(position, (streamed.get(position) ?? "") + delta);
      answer.reasoning(position, delta, { channel, section });
    },
    announce(event: Fields): void {
      const item = itemOf(event);
      if (CALLS.has(item.kind)) answer.callBegan();
      if (item.id !== undefined) phases.set(item.id, phaseOf(record(event["item"]) ?? NO_FIELDS));
      slots.announce(item);
    },
    take(event: Fields): void {
      const position = slots.whole(itemOf(event));
      if (position !== undefined) takePart(position, record(event["item"]) ?? NO_FIELDS);
    },
    /** Servers that send no item events still put the items into the last one. Returns their order. */
    repeat(output: readonly Fields[]): readonly number[] {
      const repeated = slots.repeated(output.map((item, index) => ({ ...seenIn(item), index })));
      for (const [at, { position, isNew }] of repeated.entries())
        if (isNew) takePart(position, output[at] ?? NO_FIELDS);
      gaps.requireWhole(output.length);
      return repeated.map(({ position }) => position);
    },
    /** Text that was only streamed is the message; a call that was only announced cannot be run, so nothing has ended. */
    finishOpen(isEnd: boolean): void {
      for (const { position, kind } of slots.unfinished()) {
        if (CALLS.has(kind) && isEnd) throw brokenOff(provider, "item", `${kind} without its end`);
        const shown = answer.textAt(position);
        if (kind === "message" && shown !== "") answer.part(position, { kind: "text", text: shown });
      }
    },
  };
}

const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);

function seenIn(item: Fields): SeenWhole {
  const kind = text(item["type"]) ?? "";
  const content = [...list(item["summary"]), ...list(item["content"])].map(contentText).join("");
  const input = text(item["input"]) ?? argumentsPiece(item["arguments"]);
  return {
    kind,
    id: text(item["id"]) || undefined,
    callId: text(item["call_id"]) || undefined,
    content: CALLS.has(kind) ? callContent(text(item["name"]) ?? "", input) : content,
  };
}

/** By name: the schema would be loaded before the first request. */
const PHASES: readonly MessagePhase[] = ["commentary", "partial_answer", "final_answer"];

function phaseOf(item: Fields): MessagePhase | undefined {
  return PHASES.find((phase) => phase === item["phase"]);
}

function readItem(provider: Provider, item: Fields): ModelOutputPart | undefined {
  const opaque = keep(provider, item);
  const callId = text(item["call_id"]) ?? text(item["id"]) ?? "";
  const name = text(item["name"]) ?? "";
  switch (item["type"]) {
    case "message": {
      const content = list(item["content"]);
      const citations = content.flatMap((part) => list(record(part)?.["annotations"]));
      const uncited = { ...item, content: content.map((part) => ({ ...record(part), annotations: [] })) };
      return {
        kind: "text",
        text: content.map(contentText).join(""),
        ...defined({ phase: phaseOf(item) }),
        ...sourcesIn(citations),
        opaque: hasTooManyCitations(citations) ? keep(provider, uncited) : opaque,
      };
    }
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
    case "web_search_call":
      return { kind: "reasoning", summary: [], search: readSearch(item), opaque };
    default:
      // Any other item is not shown, and is sent back with the rest.
      return text(item["type"]) === undefined ? undefined : { kind: "reasoning", summary: [], opaque };
  }
}

function readSearch(item: Fields): WebSearch {
  const action = record(item["action"]) ?? {};
  const [query, url, pattern] = [action["query"], action["url"], action["pattern"]].map(briefText);
  const id = briefText(item["id"]);
  const queries = list(action["queries"])
    .slice(0, MAX_QUERIES)
    .flatMap((one) => briefText(one) ?? []);
  const shown = { query, url: webAddress(url), pattern };
  const found = defined({ ...shown, queries: queries.length === 0 ? undefined : queries });
  switch (action["type"]) {
    case "search":
      return { ...defined({ id }), query: query ?? queries[0] ?? "", action: { kind: "search", ...found } };
    case "open_page":
      return { ...defined({ id }), query: url ?? "", action: { kind: "openPage", ...found } };
    case "find_in_page":
      return {
        ...defined({ id }),
        query: pattern === undefined ? (url ?? "") : `'${pattern}' in ${url ?? ""}`,
        action: { kind: "findInPage", ...found },
      };
    default:
      return { ...defined({ id }), query: query ?? "" };
  }
}

function isRefusal(part: Json): boolean {
  return record(part)?.["type"] === "refusal";
}

function contentText(part: Json): string {
  const fields = record(part);
  return text(fields?.["text"]) ?? text(fields?.["refusal"]) ?? "";
}

interface Gaps {
  readonly skipped: Skipped | undefined;
  /** False: nothing was added to the answer. */
  skip(data: string): false;
  /** What readers were shown must be how the part begins. */
  requireAgreement(shown: string, content: string): void;
  /** The last event must have repeated all parts. */
  requireWhole(repeated: number): void;
}

/**
 * Events that could not be read are skipped and counted; the answer fails only when something of it was lost with them.
 */
function watchGaps(provider: Provider, answer: Answer): Gaps {
  let skipped: Skipped | undefined;

  function fail(what: string, { firstBytes }: Skipped): never {
    throw malformed(provider, `an event that is not JSON, and ${what}`, firstBytes);
  }

  return {
    get skipped(): Skipped | undefined {
      return skipped;
    },
    skip(data: string): false {
      skipped = { events: (skipped?.events ?? 0) + 1, firstBytes: skipped?.firstBytes ?? quote(provider, data) };
      return false;
    },
    requireAgreement(shown: string, content: string): void {
      if (skipped !== undefined && !content.startsWith(shown)) fail("a part of its answer is missing", skipped);
    },
    requireWhole(repeated: number): void {
      const isWhole = repeated > 0 && repeated >= answer.closedCount;
      if (skipped !== undefined && !isWhole) fail("its end does not repeat the answer", skipped);
    },
  };
}
