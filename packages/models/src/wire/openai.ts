/** What both wires of OpenAI have in common. */
import type { InputPart, Usage } from "@heddle/protocol";
import { outputLimitField } from "../catalog/quirks.ts";
import { strictSchema } from "./strict-output.ts";
import { count, record, type Json } from "./untrusted.ts";
import type { WireContext } from "./wire.ts";

/** Codex's name for it: recorded answers of proxies and test servers are found by the whole request. */
export function namedSchema(outputSchema: unknown): { name: string; strict: boolean; schema: unknown } {
  const strict = strictSchema(outputSchema, "openai");
  return { name: "codex_output_schema", strict: strict !== undefined, schema: strict ?? outputSchema };
}

export function outputLimit({ provider, request: { maxOutputTokens }, info }: WireContext): Record<string, number> {
  const field = outputLimitField(provider, info);
  return maxOutputTokens === undefined || field === undefined ? {} : { [field]: maxOutputTokens };
}

/** Plain text is understood by every server; a list only by newer ones, so it is used only where an image needs it. */
export function textOrList(parts: readonly InputPart[], encodePart: (part: InputPart) => unknown): unknown {
  if (parts.every((part) => part.type === "text")) return parts.map((part) => part.text).join("\n");
  return parts.map(encodePart);
}

export function dataUrl({ mediaType, base64 }: InputPart & { type: "image" }): string {
  return `data:${mediaType};base64,${base64}`;
}

export function readUsage(value: Json, [input, output]: readonly [string, string]): Usage | undefined {
  const usage = record(value);
  if (usage === undefined) return undefined;
  const details = record(usage[`${input}_tokens_details`]);
  return {
    inputTokens: count(usage[`${input}_tokens`]) ?? 0,
    cachedInputTokens: count(details?.["cached_tokens"]) ?? count(usage["prompt_cache_hit_tokens"]) ?? 0,
    cacheWriteInputTokens: count(details?.["cache_write_tokens"]) ?? 0,
    outputTokens: count(usage[`${output}_tokens`]) ?? 0,
    reasoningOutputTokens: count(record(usage[`${output}_tokens_details`])?.["reasoning_tokens"]) ?? 0,
  };
}
