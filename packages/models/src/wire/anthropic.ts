/**
 * Anthropic Messages. Thinking blocks and their signatures go back unmodified. Cache breakpoints stand after the tools,
 * the system prompt and the last user message. `outputSchema` goes the documented way, as `output_config.format`.
 */
import { defined, type InputPart, type ModelOutputPart } from "@heddle/protocol";
import { tierOf } from "./answering.ts";
import type { ModelInfo } from "../catalog/catalog.ts";
import type { Provider } from "../providers/providers.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../requests/stream.ts";
import { decodeAnthropic } from "./anthropic-answer.ts";
import { argumentsObject } from "./calls.ts";
import { strictSchema } from "./strict-output.ts";
import { list, record, text, type Fields } from "./untrusted.ts";
import {
  instructionTexts,
  kept,
  offeredTool,
  schemaAsText,
  type Wire,
  type WireCall,
  type WireContext,
} from "./wire.ts";

const API_VERSION = "2023-06-01";
/** For models that are not in the catalog; the wire demands a figure. */
const DEFAULT_MAX_TOKENS = 32_000;
/** The wire allows four; three are used. */
const CACHE = { cache_control: { type: "ephemeral" } } as const;

export const anthropic: Wire = { encode, decode: decodeAnthropic };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const maxTokens = request.maxOutputTokens ?? info.maxOutputTokens ?? DEFAULT_MAX_TOKENS;
  const { outputSchema } = request;
  const format = strictSchema(outputSchema, "anthropic");
  const isAsText = outputSchema !== undefined && format === undefined;
  const system = [...instructionTexts(context), ...(isAsText ? [schemaAsText(outputSchema)] : [])];
  const isBound = bindsThinking(provider, request.model);
  return {
    path: "/messages",
    headers: { "anthropic-version": API_VERSION, ...(isBound ? { "anthropic-beta": BINDING_BETA } : {}) },
    body: {
      model: request.model,
      max_tokens: maxTokens,
      ...(system.length === 0
        ? {}
        : { system: system.map((text, index) => textBlock(text, index === system.length - 1)) }),
      messages: encodeMessages(request.input, provider),
      ...encodeAllTools(request, info),
      ...encodeThinking(request, info, { maxTokens, format, isBound }),
      ...defined({ service_tier: tierOf(request, provider, info) }),
      stream: true,
    },
  };
}

function textBlock(text: string, isLast: boolean): Record<string, unknown> {
  return { type: "text", text, ...(isLast ? CACHE : {}) };
}

/** Of searches for one answer; each is paid for. */
const MAX_SEARCHES = 8;

function encodeSearch({ webSearch, searchOptions = {} }: ModelRequest): readonly unknown[] {
  if (webSearch === undefined) return [];
  const { allowedDomains, location } = searchOptions;
  return [
    {
      type: "web_search_20250305",
      name: "web_search",
      max_uses: MAX_SEARCHES,
      ...(allowedDomains === undefined ? {} : { allowed_domains: allowedDomains }),
      ...(location === undefined ? {} : { user_location: { type: "approximate", ...location } }),
    },
  ];
}

function encodeAllTools(request: ModelRequest, info: ModelInfo): Record<string, unknown> {
  const { tools } = request;
  const search = encodeSearch(request);
  return tools.length + search.length === 0 ? {} : { tools: [...search, ...encodeTools(tools, info)] };
}

function encodeTools(tools: readonly ToolSpec[], info: ModelInfo): unknown[] {
  return tools.map((tool, index) => {
    const { parameters, ...told } = offeredTool(tool, { ...info, family: "anthropic" });
    return { ...told, input_schema: parameters, ...(index === tools.length - 1 ? CACHE : {}) };
  });
}

/** Anthropic refuses thinking without a signature, which an output limit leaves; others sign nothing at all. */
function thinkingOf(provider: Provider, { opaque }: ModelOutputPart): Fields | undefined {
  const block = record(kept(provider, opaque));
  const isUnsigned = block?.["type"] === "thinking" && (text(block["signature"]) ?? "") === "";
  return provider.vendor === "anthropic" && isUnsigned ? undefined : block;
}

/** Claude since 5.1 ties its thinking to everything before it: system prompt, tools and messages. */
const FIRST_BOUND_VERSION = 5.1;
const BINDING_BETA = "thinking-binding-controls-2026-08-01";
/** Tools change with their servers, and a compaction changes what comes before: such thinking is dropped, not refused. */
const BINDING = { block_binding: { prefix_mismatch_behavior: "drop_block" } } as const;

/** Only Anthropic is known to accept the field; behind a gateway a refused block is left out like any refused part. */
function bindsThinking({ vendor }: Provider, model: string): boolean {
  return vendor === "anthropic" && (claudeVersion(model) ?? 0) >= FIRST_BOUND_VERSION;
}

/** Claude since 4.6 takes an effort; older ones take a budget of tokens. */
function encodeThinking(
  { effort, model, summary }: ModelRequest,
  info: ModelInfo,
  { maxTokens, format: schema, isBound }: { maxTokens: number; format: unknown; isBound: boolean },
): Record<string, unknown> {
  const format = schema === undefined ? {} : { format: { type: "json_schema", schema } };
  const hint = effort === undefined ? {} : { effort: EFFORTS[effort] ?? effort };
  const version = claudeVersion(model);
  if (info.family !== "anthropic" || version === undefined) return outputConfig(format);
  if (version >= 4.6)
    return {
      thinking: {
        type: "adaptive",
        display: summary === "none" ? "omitted" : "summarized",
        ...(isBound ? BINDING : {}),
      },
      ...outputConfig({ ...hint, ...format }),
    };
  const budget = Math.min(BUDGETS[effort ?? ""] ?? 0, maxTokens - 1024);
  const thinking = budget < 1024 ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
  return { ...thinking, ...outputConfig(format) };
}

/** Names of other providers for the lowest effort. */
const EFFORTS: Readonly<Record<string, string>> = { none: "low", minimal: "low" };
const BUDGETS: Readonly<Record<string, number>> = {
  low: 4096,
  medium: 12_288,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};

function outputConfig(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.keys(fields).length === 0 ? {} : { output_config: fields };
}

/** claude-sonnet-4-5-20250929, claude-opus-5, claude-3-7-sonnet-latest; undefined when the name has no version. */
function claudeVersion(model: string): number | undefined {
  const match = /claude\D*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(model);
  return match === null ? undefined : Number(`${match[1]}.${match[2] ?? 0}`);
}

interface Message {
  readonly role: "user" | "assistant";
  content: Record<string, unknown>[];
}

/** Results of tools must come together, first in one user message, so neighbours of one role are joined. */
function encodeMessages(input: readonly ModelInput[], provider: Provider): readonly Message[] {
  const messages: Message[] = [];
  for (const entry of input) {
    const role = entry.kind === "assistant" ? "assistant" : "user";
    const content = encodeEntry(entry, provider);
    const last = messages.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role && role === "user") last.content.push(...content);
    else messages.push({ role, content });
  }
  const lastUser = messages.findLast((message) => message.role === "user");
  const lastBlock = lastUser?.content.at(-1);
  if (lastUser !== undefined && lastBlock !== undefined)
    lastUser.content = [...lastUser.content.slice(0, -1), { ...lastBlock, ...CACHE }];
  return messages;
}

function encodeEntry(entry: ModelInput, provider: Provider): Record<string, unknown>[] {
  switch (entry.kind) {
    case "user":
      return entry.parts.flatMap(encodePart);
    case "assistant":
      return entry.parts.flatMap((part) => encodeOutput(part, provider));
    case "toolResult":
      return [
        {
          type: "tool_result",
          tool_use_id: safeId(entry.callId),
          content: entry.parts.flatMap((part) => encodePart(entry.isError ? textOnly(part) : part)),
          ...(entry.isError ? { is_error: true } : {}),
        },
      ];
  }
}

/** The result of a call that failed holds nothing but text. */
function textOnly(part: InputPart): InputPart {
  return part.type === "text" ? part : { type: "text", text: `[an image (${part.mediaType}) was left out]` };
}

/** The wire refuses empty text. */
function encodePart(part: InputPart): Record<string, unknown>[] {
  if (part.type === "image") {
    return [{ type: "image", source: { type: "base64", media_type: part.mediaType, data: part.base64 } }];
  }
  return part.text === "" ? [] : [{ type: "text", text: part.text }];
}

function encodeOutput(part: ModelOutputPart, provider: Provider): Record<string, unknown>[] {
  switch (part.kind) {
    case "reasoning": {
      const thinking = thinkingOf(provider, part);
      return thinking === undefined ? [] : [{ ...thinking }];
    }
    case "text": {
      const cited = list(kept(provider, part.opaque)).map((block) => ({ ...record(block) }));
      return cited.length > 0 ? cited : encodePart({ type: "text", text: part.text });
    }
    case "toolCall":
      return [{ type: "tool_use", id: safeId(part.callId), name: part.name, input: argumentsObject(part) }];
  }
}

/** Ids made by another provider may hold characters that this one refuses. */
function safeId(callId: string): string {
  return callId.replace(/[^a-zA-Z0-9_-]/g, "_");
}
