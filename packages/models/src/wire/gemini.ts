/**
 * Gemini `streamGenerateContent`. The key travels in a header, never in the URL. Parts that carry a thought signature go
 * back exactly as they came. Schemas go as plain JSON Schema (`parametersJsonSchema`, `responseJsonSchema`).
 */
import type { InputPart, ModelOutputPart } from "@heddle/protocol";
import type { ModelInput, ModelRequest } from "../stream.ts";
import { argumentsObject } from "./calls.ts";
import { decodeGemini } from "./gemini-decode.ts";
import { list, record, text } from "./untrusted.ts";
import { fitSchema } from "./tool-schema.ts";
import { kept, offeredTool, withSchemaInWords, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const gemini: Wire = { encode, decode: decodeGemini };

function encode({ provider, request, info }: WireContext): WireCall {
  const path = request.model.includes("/") ? request.model : `models/${request.model}`;
  const { instructions, generationConfig } = encodeConfig(request);
  return {
    path: `/${path.split("/").map(encodeURIComponent).join("/")}:streamGenerateContent`,
    query: { alt: "sse" },
    body: {
      systemInstruction: { parts: [{ text: instructions }] },
      contents: encodeContents(request, (part) => kept(provider, part.opaque)),
      ...(request.tools.length === 0
        ? {}
        : { tools: [{ functionDeclarations: request.tools.map((tool) => encodeTool(tool, info)) }] }),
      ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
    },
  };
}

function encodeTool(tool: ModelRequest["tools"][number], info: WireContext["info"]): unknown {
  const { parameters, ...told } = offeredTool(tool, { ...info, family: "gemini" });
  return { ...told, parametersJsonSchema: parameters };
}

const isSecondGeneration = (model: string): boolean => /gemini-[12]([.-]|$)/.test(model);

function encodeConfig(request: ModelRequest): { instructions: string; generationConfig: Record<string, unknown> } {
  const { outputSchema, maxOutputTokens, model, tools } = request;
  const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens };
  const thinking = encodeThinking(request);
  if (outputSchema === undefined)
    return { instructions: request.instructions, generationConfig: { ...limit, ...thinking } };
  // Models before the third generation refuse a response schema beside tools; there the schema is asked for in words.
  if (isSecondGeneration(model) && tools.length > 0) {
    const instructions = withSchemaInWords(request.instructions, outputSchema);
    return { instructions, generationConfig: { ...limit, ...thinking } };
  }
  const schema = record(outputSchema) === undefined ? outputSchema : fitSchema(record(outputSchema) ?? {}, "gemini");
  const format = { responseMimeType: "application/json", responseJsonSchema: schema };
  return { instructions: request.instructions, generationConfig: { ...limit, ...thinking, ...format } };
}

const BUDGETS: Readonly<Record<string, number>> = { none: 0, minimal: 512, low: 2048, medium: 8192, high: 24_576 };
const LEVELS: Readonly<Record<string, string>> = { none: "minimal", xhigh: "high", max: "high" };

function encodeThinking({ effort, model }: ModelRequest): Record<string, unknown> {
  if (effort === undefined) return { thinkingConfig: { includeThoughts: true } };
  if (!isSecondGeneration(model))
    return { thinkingConfig: { includeThoughts: true, thinkingLevel: LEVELS[effort] ?? effort } };
  return { thinkingConfig: { includeThoughts: effort !== "none", thinkingBudget: BUDGETS[effort] ?? -1 } };
}

interface Content {
  readonly role: "user" | "model";
  readonly parts: unknown[];
}

type Kept = (part: ModelOutputPart) => unknown;

function encodeContents(request: ModelRequest, keptOf: Kept): readonly Content[] {
  const contents: Content[] = [];
  const ownIds = new Set<string>();
  for (const entry of request.input) {
    const role = entry.kind === "assistant" ? "model" : "user";
    const parts = encodeEntry(entry, { model: request.model, keptOf, ownIds });
    const last = contents.at(-1);
    if (parts.length === 0) continue;
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts: [...parts] });
  }
  return contents;
}

interface EntryContext {
  readonly model: string;
  readonly keptOf: Kept;
  /** Calls whose id the model gave; ids made here mean nothing to it and are not sent. */
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

/** The documented word for a call that this model did not make itself, from the third generation on. */
const FOREIGN_SIGNATURE = "skip_thought_signature_validator";

function encodeOutput(part: ModelOutputPart, { model, keptOf, ownIds }: EntryContext): readonly unknown[] {
  const own = list(keptOf(part));
  if (part.kind === "reasoning") return own;
  if (part.kind === "text") return own.length > 0 ? own : encodePart({ type: "text", text: part.text });
  const original = record(own[0]);
  const originalId = text(record(original?.["functionCall"])?.["id"]);
  if (originalId !== undefined) ownIds.add(part.callId);
  const call = {
    ...(originalId === undefined ? {} : { id: part.callId }),
    name: part.name,
    args: argumentsObject(part),
  };
  if (original !== undefined) return [{ ...original, functionCall: call }];
  return [{ functionCall: call, ...(isSecondGeneration(model) ? {} : { thoughtSignature: FOREIGN_SIGNATURE }) }];
}
