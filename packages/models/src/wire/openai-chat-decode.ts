/**
 * Decodes the chunks of Chat Completions. The wire has no parts; they are numbered here: 0 reasoning, 1 text, then the
 * tool calls in the order of their `index`. A missing end mark is forgiven once a finish reason has come.
 */
import type { Usage } from "@heddle/protocol";
import type { Answer, Ending } from "../answer.ts";
import { failureIn, malformed } from "../failure.ts";
import type { Provider } from "../providers.ts";
import { argumentsPiece, readCall, shapesOf } from "./calls.ts";
import { createReasoning, wordsIn } from "./chat-reasoning.ts";
import { endingIn } from "./endings.ts";
import { count, list, parseJson, record, text, type Json } from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

const REASONING = 0;
const TEXT = 1;
const FIRST_CALL = 2;

interface CallDraft {
  id: string;
  name: string;
  json: string;
  /** What the server wants back with the call; Google signs its calls here. */
  extra: Fields | undefined;
}

export function decodeChat({ provider, request }: WireContext, answer: Answer): Decoder {
  const shapeOf = shapesOf(request);
  const calls = new Map<number, CallDraft>();
  const reasoning = createReasoning();
  let usage: Usage | undefined;
  let finishReason: string | undefined;
  let refusal = "";
  let extra: Fields | undefined;

  function takeDelta(delta: Fields): void {
    for (const shown of reasoning.take(delta)) answer.reasoning(REASONING, shown, { channel: "text", section: 0 });
    answer.text(TEXT, wordsIn(delta["content"]));
    const declined = text(delta["refusal"]) ?? "";
    refusal += declined;
    answer.text(TEXT, declined);
    extra = record(delta["extra_content"]) ?? extra;
    for (const [position, value] of list(delta["tool_calls"]).entries()) takeCall(position, record(value) ?? {});
  }

  function takeCall(position: number, call: Fields): void {
    answer.callBegan();
    const fields = record(call["function"]) ?? {};
    const id = text(call["id"]) ?? "";
    const slot = slotFor(count(call["index"]) ?? position, id);
    const draft = calls.get(slot) ?? { id: "", name: "", json: "", extra: undefined };
    draft.id ||= id;
    // The name comes once; servers that repeat it in every chunk do not mean to append it.
    draft.name ||= text(fields["name"]) ?? "";
    draft.json += argumentsPiece(fields["arguments"]);
    draft.extra = record(call["extra_content"]) ?? draft.extra;
    calls.set(slot, draft);
  }

  /** Servers that give every call the index 0 still give it an id of its own. */
  function slotFor(index: number, id: string): number {
    const known = calls.get(index);
    if (id === "" || known === undefined || known.id === "" || known.id === id) return index;
    const slot = [...calls].find(([, draft]) => draft.id === id)?.[0];
    return slot ?? Math.max(...calls.keys()) + 1;
  }

  const own = (kept: Fields | undefined): { opaque?: ReturnType<typeof keep> } =>
    kept === undefined ? {} : { opaque: keep(provider, { extra_content: kept }) };

  function finish(): void {
    const ending = endingOf(provider, finishReason, refusal);
    const shown = reasoning.whole();
    if (shown !== undefined) answer.part(REASONING, { ...shown.part, opaque: keep(provider, shown.sendBack) });
    if (answer.textAt(TEXT) !== "") answer.part(TEXT, { kind: "text", text: answer.textAt(TEXT), ...own(extra) });
    for (const [slot, { id, name, json, extra: signed }] of [...calls].sort(([a], [b]) => a - b)) {
      answer.part(FIRST_CALL + slot, { ...readCall({ callId: id, name, json }, shapeOf), ...own(signed) });
    }
    answer.finish({ ...ending, usage });
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
      if (record(choice["error"]) !== undefined)
        throw failureIn(provider, choice) ?? malformed(provider, "an error without a reason", data);
      takeDelta(record(choice["delta"]) ?? record(choice["message"]) ?? {});
      // Some send an empty word in every chunk.
      finishReason = text(choice["finish_reason"]) || finishReason;
      answer.isSettled = finishReason !== undefined;
      return true;
    },
    end() {
      if (finishReason !== undefined) finish();
    },
  };
}

type Fields = Readonly<Record<string, Json>>;

function endingOf(provider: Provider, finishReason: string | undefined, refusal: string): Omit<Ending, "usage"> {
  if (refusal.trim() !== "") return { stopReason: "refusal", explanation: refusal };
  // A server without a word ends with its end mark.
  const stopReason = finishReason === undefined ? "end" : endingIn(provider, "finish_reason", finishReason);
  return { stopReason, explanation: stopReason === "refusal" ? finishReason : undefined };
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
