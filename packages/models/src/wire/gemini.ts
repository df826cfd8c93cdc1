/**
 * Gemini `streamGenerateContent`. The key travels in a header, never in the URL. Parts that carry a thought signature go
 * back exactly as they came. Schemas go as plain JSON Schema (`parametersJsonSchema`, `responseJsonSchema`).
 */
import { defined, type InputPart, type ModelOutputPart, type Usage } from "@heddle/protocol";
import type { Answer, Ending } from "../requests/answer.ts";
import type { ModelInfo } from "../catalog/catalog.ts";
import { failureIn, malformed, ProviderError } from "../requests/failure.ts";
import type { Provider } from "../providers/providers.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../requests/stream.ts";
import { argumentsObject, readCall, shapesOf } from "./calls.ts";
import { fitSchema } from "./tool-schema.ts";
import { briefText, count, list, MAX_QUERIES, record, Sources, text, type Fields, type Json } from "./untrusted.ts";
import {
  fieldsIn,
  instructionTexts,
  keep,
  kept,
  offeredTool,
  schemaAsText,
  type Decoder,
  type Wire,
  type WireCall,
  type WireContext,
} from "./wire.ts";

export const gemini: Wire = { encode, decode: decodeGemini };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const path = request.model.includes("/") ? request.model : `models/${request.model}`;
  const { instructions, generationConfig } = encodeConfig(context);
  return {
    path: `/${path.split("/").map(encodeURIComponent).join("/")}:streamGenerateContent`,
    query: { alt: "sse" },
    body: {
      ...(instructions.length === 0 ? {} : { systemInstruction: { parts: instructions.map((text) => ({ text })) } }),
      contents: encodeContents(request, provider),
      ...encodeTools(request, info),
      ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
    },
  };
}

function encodeTools({ tools, webSearch }: ModelRequest, info: ModelInfo): Record<string, unknown> {
  const offered = [
    ...(tools.length === 0 ? [] : [{ functionDeclarations: tools.map((tool) => encodeTool(tool, info)) }]),
    ...(webSearch === undefined ? [] : [{ googleSearch: {} }]),
  ];
  return offered.length === 0 ? {} : { tools: offered };
}

function encodeTool(tool: ToolSpec, info: ModelInfo): unknown {
  const { parameters, ...told } = offeredTool(tool, { ...info, family: "gemini" });
  return { ...told, parametersJsonSchema: parameters };
}

const isSecondGeneration = (model: string): boolean => /gemini-[12]([.-]|$)/.test(model);

function encodeConfig(context: WireContext): {
  readonly instructions: readonly string[];
  readonly generationConfig: Record<string, unknown>;
} {
  const { request } = context;
  const { outputSchema, maxOutputTokens, model, tools } = request;
  const instructions = instructionTexts(context);
  const generationConfig = { ...defined({ maxOutputTokens }), ...encodeThinking(request) };
  if (outputSchema === undefined) return { instructions, generationConfig };
  // Models before the third generation refuse a response schema beside tools; there it is part of the instructions.
  if (isSecondGeneration(model) && tools.length > 0)
    return { instructions: [...instructions, schemaAsText(outputSchema)], generationConfig };
  const schema = record(outputSchema) === undefined ? outputSchema : fitSchema(record(outputSchema) ?? {}, "gemini");
  const format = { responseMimeType: "application/json", responseJsonSchema: schema };
  return { instructions, generationConfig: { ...generationConfig, ...format } };
}

const BUDGETS: Readonly<Record<string, number>> = { none: 0, minimal: 512, low: 2048, medium: 8192, high: 24_576 };
const LEVELS: Readonly<Record<string, string>> = { none: "minimal", xhigh: "high", max: "high" };

function encodeThinking({ effort, model, summary }: ModelRequest): Record<string, unknown> {
  const includeThoughts = summary !== "none";
  if (effort === undefined) return { thinkingConfig: { includeThoughts } };
  if (!isSecondGeneration(model))
    return { thinkingConfig: { includeThoughts, thinkingLevel: LEVELS[effort] ?? effort } };
  return {
    thinkingConfig: { includeThoughts: includeThoughts && effort !== "none", thinkingBudget: BUDGETS[effort] ?? -1 },
  };
}

interface Content {
  readonly role: "user" | "model";
  readonly parts: unknown[];
}

function encodeContents(request: ModelRequest, provider: Provider): readonly Content[] {
  const contents: Content[] = [];
  const ownIds = new Set<string>();
  for (const entry of request.input) {
    const role = entry.kind === "assistant" ? "model" : "user";
    const parts = encodeEntry(entry, { model: request.model, provider, ownIds });
    const last = contents.at(-1);
    if (parts.length === 0) continue;
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts: [...parts] });
  }
  return contents;
}

interface EntryContext {
  readonly model: string;
  readonly provider: Provider;
  /** Calls whose id came from the model; ids made here mean nothing to it and are not sent. */
  readonly ownIds: Set<string>;
}

function encodeEntry(entry: ModelInput, context: EntryContext): readonly unknown[] {
  switch (entry.kind) {
    case "user":
      return entry.parts.flatMap(encodePart);
    case "assistant":
      return entry.parts.flatMap((part) => encodeOutput(part, context));
    case "toolResult": {
      const output = entry.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
      const id = context.ownIds.has(entry.callId) ? { id: entry.callId } : {};
      const response = entry.isError ? { error: output } : { output };
      return [
        { functionResponse: { ...id, name: entry.name, response } },
        ...entry.parts.filter((part) => part.type === "image").flatMap(encodePart),
      ];
    }
  }
}

function encodePart(part: InputPart): readonly unknown[] {
  if (part.type === "image") return [{ inlineData: { mimeType: part.mediaType, data: part.base64 } }];
  return part.text === "" ? [] : [{ text: part.text }];
}

/** The documented value for a call that this model did not make itself, from the third generation on. */
const FOREIGN_SIGNATURE = "skip_thought_signature_validator";

function encodeOutput(part: ModelOutputPart, { model, provider, ownIds }: EntryContext): readonly unknown[] {
  const own = list(kept(provider, part.opaque));
  if (part.kind === "reasoning") return own;
  if (part.kind === "text") return own.length > 0 ? own : encodePart({ type: "text", text: part.text });
  const original = record(own[0]);
  const originalId = text(record(original?.["functionCall"])?.["id"]);
  if (originalId !== undefined) ownIds.add(part.callId);
  const id = originalId === undefined ? {} : { id: part.callId };
  const call = { ...id, name: part.name, args: argumentsObject(part) };
  if (original !== undefined) return [{ ...original, functionCall: call }];
  return [{ functionCall: call, ...(isSecondGeneration(model) ? {} : { thoughtSignature: FOREIGN_SIGNATURE }) }];
}

/**
 * Neighbouring pieces of text or of thought are one part; a function call arrives whole. A signature may come on a piece of
 * its own and is kept on that piece: joined with another it would not verify.
 */
interface Run {
  readonly kind: "text" | "reasoning";
  readonly index: number;
  body: string;
  /** The pieces to send back; the last one grows while it carries no signature. */
  readonly pieces: Record<string, Json>[];
  readonly sources: Sources;
}

function decodeGemini({ provider, request }: WireContext, answer: Answer): Decoder {
  const shapeOf = shapesOf(request);
  let run: Run | undefined;
  let nextIndex = 0;
  const searched = new Set<string>();
  let usage: Usage | undefined;
  let finishReason: string | undefined;
  /** Why the prompt was blocked or the answer ended early. */
  let reasons: readonly string[] = [];

  function closeRun(): void {
    const closing = run;
    run = undefined;
    if (closing !== undefined) answer.part(closing.index, wholeRun(closing));
  }

  function wholeRun({ kind, body, pieces, sources }: Run): ModelOutputPart {
    const isSigned = pieces.some((piece) => piece["thoughtSignature"] !== undefined);
    const opaque = isSigned ? { opaque: keep(provider, pieces) } : {};
    if (kind === "text") return { kind, text: body, ...sources.field, ...opaque };
    return { kind, summary: body === "" ? [] : [body], ...opaque };
  }

  function takeText(piece: Fields, body: string): void {
    const kind = piece["thought"] === true ? "reasoning" : "text";
    const isSigned = piece["thoughtSignature"] !== undefined;
    if (body === "" && !isSigned) return;
    if (run !== undefined && run.kind !== kind) closeRun();
    run ??= { kind, index: nextIndex++, body: "", pieces: [], sources: new Sources() };
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
      const chunk = fieldsIn(provider, data);
      const failure = record(chunk["error"]) === undefined ? undefined : failureIn(provider, chunk);
      if (failure !== undefined) throw failure;
      usage = readUsage(chunk["usageMetadata"]) ?? usage;
      const blocked = record(chunk["promptFeedback"]);
      if (blocked?.["blockReason"] !== undefined) {
        finishReason = "SAFETY";
        reasons = textsIn(blocked["blockReason"], blocked["blockReasonMessage"]);
      }
      const candidate = record(list(chunk["candidates"])[0]);
      for (const piece of list(record(candidate?.["content"])?.["parts"])) takePiece(record(piece) ?? {});
      // The run stays open: text that follows belongs to it, and so do the sources.
      for (const part of newSearches(candidate, searched)) answer.part(nextIndex++, part);
      run?.sources.add(groundsOf(candidate));
      const reason = text(candidate?.["finishReason"]);
      if (reason !== undefined && reason !== UNSPECIFIED) {
        finishReason = reason;
        reasons = textsIn(reason, candidate?.["finishMessage"]);
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

/** What was searched is told with the answer, in every piece of it, and needs not be sent back. */
function newSearches(candidate: Fields | undefined, known: Set<string>): readonly ModelOutputPart[] {
  const fresh: ModelOutputPart[] = [];
  for (const one of list(record(candidate?.["groundingMetadata"])?.["webSearchQueries"])) {
    const query = briefText(one);
    if (query === undefined || known.has(query)) continue;
    if (known.size === MAX_QUERIES) break;
    known.add(query);
    fresh.push({ kind: "reasoning", summary: [], search: { query, action: { kind: "search", query } } });
  }
  return fresh;
}

function groundsOf(candidate: Fields | undefined): readonly Json[] {
  return list(record(candidate?.["groundingMetadata"])?.["groundingChunks"]).map((chunk) => record(chunk)?.["web"]);
}

function textsIn(...values: readonly Json[]): readonly string[] {
  return values.flatMap((value) => text(value) ?? []);
}

/** The model made an invalid tool call; another try mostly succeeds. */
const BROKEN_CALLS = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]);

function brokenCall(provider: Provider, why: string): ProviderError {
  const { message } = malformed(provider, "a broken tool call", why);
  return new ProviderError("provider.malformed", message, { isRetryable: true });
}

const UNSPECIFIED = "FINISH_REASON_UNSPECIFIED";

function stopReasonOf(reason: string): Ending["stopReason"] {
  if (reason === "MAX_TOKENS") return "length";
  return reason === "STOP" ? "end" : "refusal";
}

/** This wire counts thoughts separately; here the output includes them. */
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
