/**
 * Decodes the chunks of Chat Completions. The wire has no parts; they are numbered here: 0 reasoning, 1 text, then the
 * tool calls in the order of their `index`. A missing end mark is forgiven once a finish reason has come.
 */
import type { Usage } from "@heddle/protocol";
import type { Answer, Ending } from "../answer.ts";
import { failureIn, malformed } from "../failure.ts";
import { readCall, shapesOf } from "./calls.ts";
import { count, list, parseJson, record, text, type Json } from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

const REASONING = 0;
const TEXT = 1;
const FIRST_CALL = 2;

interface CallDraft {
  id: string;
  name: string;
  json: string;
}

export function decodeChat({ provider, request }: WireContext, answer: Answer): Decoder {
  const shapeOf = shapesOf(request);
  const calls = new Map<number, CallDraft>();
  const reasoning = createReasoning();
  let usage: Usage | undefined;
  let finishReason: string | undefined;

  function takeDelta(delta: Fields): void {
    for (const shown of reasoning.take(delta)) answer.reasoning(REASONING, shown, { channel: "text", section: 0 });
    answer.text(TEXT, text(delta["content"]) ?? text(delta["refusal"]) ?? "");
    for (const [position, value] of list(delta["tool_calls"]).entries()) takeCall(position, record(value) ?? {});
  }

  function takeCall(position: number, call: Fields): void {
    answer.callBegan();
    const fields = record(call["function"]) ?? {};
    const id = text(call["id"]) ?? "";
    const slot = slotFor(count(call["index"]) ?? position, id);
    const draft = calls.get(slot) ?? { id: "", name: "", json: "" };
    draft.id ||= id;
    // The name comes once; servers that repeat it in every chunk do not mean to append it.
    draft.name ||= text(fields["name"]) ?? "";
    draft.json += text(fields["arguments"]) ?? "";
    calls.set(slot, draft);
  }

  /** Servers that give every call the index 0 still give it an id of its own. */
  function slotFor(index: number, id: string): number {
    const known = calls.get(index);
    if (id === "" || known === undefined || known.id === "" || known.id === id) return index;
    const slot = [...calls].find(([, draft]) => draft.id === id)?.[0];
    return slot ?? Math.max(...calls.keys()) + 1;
  }

  function finish(): void {
    const shown = reasoning.whole();
    if (shown !== undefined) answer.part(REASONING, { ...shown.part, opaque: keep(provider, shown.sendBack) });
    if (answer.textAt(TEXT) !== "") answer.part(TEXT, { kind: "text", text: answer.textAt(TEXT) });
    for (const [slot, { id, name, json }] of [...calls].sort(([a], [b]) => a - b)) {
      answer.part(FIRST_CALL + slot, readCall({ callId: id, name, json }, shapeOf));
    }
    answer.finish({ stopReason: stopReasonOf(finishReason), usage });
  }

  return {
    push({ data }) {
      if (data.trim() === "[DONE]") {
        if (finishReason !== undefined || calls.size > 0 || answer.textAt(TEXT) !== "") finish();
        return true;
      }
      const chunk = record(parseJson(data));
      if (chunk === undefined) throw malformed(provider, "an event that is not JSON", data);
      if (chunk["error"] !== undefined && chunk["error"] !== null)
        throw failureIn(provider, chunk) ?? malformed(provider, "an error without a reason", data);
      usage = readUsage(chunk["usage"]) ?? usage;
      const choice = record(list(chunk["choices"])[0]);
      if (choice === undefined) return usage !== undefined;
      takeDelta(record(choice["delta"]) ?? record(choice["message"]) ?? {});
      finishReason = text(choice["finish_reason"]) ?? finishReason;
      answer.isSettled = finishReason !== undefined;
      return true;
    },
    end() {
      if (finishReason !== undefined) finish();
    },
  };
}

type Fields = Readonly<Record<string, Json>>;

interface Reasoning {
  /** Reads the reasoning of a delta under any of its names; returns what can be shown. */
  take(delta: Fields): readonly string[];
  whole(): { part: { kind: "reasoning"; summary: string[]; text: string }; sendBack: Fields } | undefined;
}

function createReasoning(): Reasoning {
  let shown = "";
  let field: "reasoning_content" | "reasoning" | undefined;
  const details: Record<string, Json>[] = [];

  function takeDetail(value: Json): void {
    const detail = record(value);
    if (detail === undefined) return;
    const last = details.at(-1);
    if (last === undefined || last["type"] !== detail["type"] || last["index"] !== detail["index"]) {
      details.push({ ...detail });
      return;
    }
    for (const [name, next] of Object.entries(detail)) {
      const before = last[name];
      const grows = name === "text" || name === "summary" || name === "data";
      last[name] = grows && typeof before === "string" && typeof next === "string" ? before + next : (next ?? before);
    }
  }

  return {
    take(delta) {
      for (const detail of list(delta["reasoning_details"])) takeDetail(detail);
      for (const name of ["reasoning_content", "reasoning"] as const) {
        const piece = text(delta[name]);
        if (piece === undefined || piece === "") continue;
        field = name;
        shown += piece;
        return [piece];
      }
      return [];
    },
    whole() {
      if (shown === "" && details.length === 0) return undefined;
      const sendBack =
        details.length > 0
          ? { reasoning_details: details }
          : field === "reasoning_content"
            ? { reasoning_content: shown }
            : {};
      return { part: { kind: "reasoning", summary: [], text: shown }, sendBack };
    },
  };
}

function stopReasonOf(finishReason: string | undefined): Ending["stopReason"] {
  if (finishReason === "length") return "length";
  return finishReason === "content_filter" ? "refusal" : "end";
}

function readUsage(value: Json): Usage | undefined {
  const usage = record(value);
  if (usage === undefined) return undefined;
  const input = record(usage["prompt_tokens_details"]);
  return {
    inputTokens: count(usage["prompt_tokens"]) ?? 0,
    cachedInputTokens: count(input?.["cached_tokens"]) ?? count(usage["prompt_cache_hit_tokens"]) ?? 0,
    cacheWriteInputTokens: count(input?.["cache_write_tokens"]) ?? 0,
    outputTokens: count(usage["completion_tokens"]) ?? 0,
    reasoningOutputTokens: count(record(usage["completion_tokens_details"])?.["reasoning_tokens"]) ?? 0,
  };
}
