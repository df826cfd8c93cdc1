/**
 * Decodes the chunks of Gemini. Neighbouring pieces of text or of thought are one part; a function call arrives whole.
 * A signature may come on a piece of its own and is kept on that piece: joined with another it would not verify.
 */
import type { ModelOutputPart, Usage } from "@heddle/protocol";
import type { Answer, Ending } from "../answer.ts";
import { failureIn, malformed, ProviderError } from "../failure.ts";
import type { Provider } from "../providers.ts";
import { readCall, shapesOf } from "./calls.ts";
import { count, list, parseJson, record, text, type Json } from "./untrusted.ts";
import { keep, type Decoder, type WireContext } from "./wire.ts";

type Fields = Readonly<Record<string, Json>>;

interface Run {
  readonly kind: "text" | "reasoning";
  readonly index: number;
  body: string;
  /** The pieces to send back; the last one grows while it carries no signature. */
  readonly pieces: Record<string, Json>[];
}

export function decodeGemini({ provider, request }: WireContext, answer: Answer): Decoder {
  const shapeOf = shapesOf(request);
  let run: Run | undefined;
  let nextIndex = 0;
  let usage: Usage | undefined;
  let finishReason: string | undefined;
  /** Why the prompt was blocked or the answer broken off, as far as it was said. */
  let reasons: readonly string[] = [];

  function closeRun(): void {
    const closing = run;
    run = undefined;
    if (closing !== undefined) answer.part(closing.index, wholeRun(closing));
  }

  function wholeRun({ kind, body, pieces }: Run): ModelOutputPart {
    const isSigned = pieces.some((piece) => piece["thoughtSignature"] !== undefined);
    const opaque = isSigned ? { opaque: keep(provider, pieces) } : {};
    if (kind === "text") return { kind, text: body, ...opaque };
    return { kind, summary: body === "" ? [] : [body], ...opaque };
  }

  function takeText(piece: Fields, body: string): void {
    const kind = piece["thought"] === true ? "reasoning" : "text";
    const isSigned = piece["thoughtSignature"] !== undefined;
    if (body === "" && !isSigned) return;
    if (run !== undefined && run.kind !== kind) closeRun();
    run ??= { kind, index: nextIndex++, body: "", pieces: [] };
    run.body += body;
    const last = run.pieces.at(-1);
    if (isSigned || last === undefined || last["thoughtSignature"] !== undefined) run.pieces.push({ ...piece });
    else last["text"] = (text(last["text"]) ?? "") + body;
    if (kind === "text") answer.text(run.index, body);
    else answer.reasoning(run.index, body, { channel: "summary", section: 0 });
  }

  function takeCall(piece: Fields, call: Fields): void {
    closeRun();
    const json = JSON.stringify(record(call["args"]) ?? {});
    const part = readCall({ callId: text(call["id"]) ?? "", name: text(call["name"]) ?? "", json }, shapeOf);
    answer.part(nextIndex++, { ...part, opaque: keep(provider, [piece]) });
  }

  function takePiece(piece: Fields): void {
    const call = record(piece["functionCall"]);
    if (call !== undefined) return takeCall(piece, call);
    const body = text(piece["text"]);
    if (body !== undefined || piece["thoughtSignature"] !== undefined) takeText(piece, body ?? "");
  }

  return {
    push({ data }) {
      if (data.trim() === "[DONE]") return false;
      const chunk = record(parseJson(data));
      if (chunk === undefined) throw malformed(provider, "an event that is not JSON", data);
      const failure = record(chunk["error"]) === undefined ? undefined : failureIn(provider, chunk);
      if (failure !== undefined) throw failure;
      usage = readUsage(chunk["usageMetadata"]) ?? usage;
      const blocked = record(chunk["promptFeedback"]);
      if (blocked?.["blockReason"] !== undefined) {
        finishReason = "SAFETY";
        reasons = wordsIn(blocked["blockReason"], blocked["blockReasonMessage"]);
      }
      const candidate = record(list(chunk["candidates"])[0]);
      for (const piece of list(record(candidate?.["content"])?.["parts"])) takePiece(record(piece) ?? {});
      const reason = text(candidate?.["finishReason"]);
      if (reason !== undefined && reason !== UNSPECIFIED) {
        finishReason = reason;
        reasons = wordsIn(reason, candidate?.["finishMessage"]);
      }
      if (BROKEN_CALLS.has(finishReason ?? "")) throw brokenCall(provider, text(candidate?.["finishMessage"]) ?? "");
      answer.isSettled = finishReason !== undefined;
      return candidate !== undefined || finishReason !== undefined;
    },
    end() {
      closeRun();
      if (finishReason === undefined) return;
      const stopReason = stopReasonOf(finishReason);
      answer.finish({ stopReason, explanation: stopReason === "refusal" ? reasons.join(": ") : undefined, usage });
    },
  };
}

function wordsIn(...values: readonly Json[]): readonly string[] {
  return values.flatMap((value) => text(value) ?? []);
}

/** The model tried to call a tool and got the form wrong; with another try it mostly succeeds. */
const BROKEN_CALLS = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]);

function brokenCall(provider: Provider, why: string): ProviderError {
  const { message } = malformed(provider, "a broken tool call", why);
  return new ProviderError("provider.malformed", message, { isRetryable: true });
}

/** No reason, spelt out. */
const UNSPECIFIED = "FINISH_REASON_UNSPECIFIED";

function stopReasonOf(reason: string): Ending["stopReason"] {
  if (reason === "MAX_TOKENS") return "length";
  return reason === "STOP" ? "end" : "refusal";
}

/** Thoughts are counted apart from the answer here; the output is both. */
function readUsage(value: Json): Usage | undefined {
  const usage = record(value);
  if (usage === undefined) return undefined;
  const thoughts = count(usage["thoughtsTokenCount"]) ?? 0;
  return {
    inputTokens: (count(usage["promptTokenCount"]) ?? 0) + (count(usage["toolUsePromptTokenCount"]) ?? 0),
    cachedInputTokens: count(usage["cachedContentTokenCount"]) ?? 0,
    cacheWriteInputTokens: 0,
    outputTokens: (count(usage["candidatesTokenCount"]) ?? 0) + thoughts,
    reasoningOutputTokens: thoughts,
  };
}
