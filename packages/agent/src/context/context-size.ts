/** How many tokens something is likely to cost: an estimate on the safe side. A provider's own figures go first. */
import type { InputPart, ModelOutputPart, TurnSettings } from "@heddle/protocol";
import type { ModelInput } from "@heddle/models";

export const BYTES_A_TOKEN = 3;
/** What providers charge for an image of ordinary size. */
const IMAGE_TOKENS = 1600;
/** Role, ids and brackets of every entry. */
const ENTRY_TOKENS = 8;

export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN);
}

export function inputTokens(input: ModelInput): number {
  if (input.kind === "assistant") return ENTRY_TOKENS + sum(input.parts, outputTokens);
  const name = input.kind === "toolResult" ? textTokens(input.callId) + textTokens(input.name) : 0;
  return ENTRY_TOKENS + name + sum(input.parts, partTokens);
}

function partTokens(part: InputPart): number {
  return part.type === "text" ? textTokens(part.text) : IMAGE_TOKENS;
}

function outputTokens(part: ModelOutputPart): number {
  const opaque = part.opaque === undefined ? 0 : textTokens(JSON.stringify(part.opaque.data) ?? "");
  switch (part.kind) {
    case "text":
      return opaque + textTokens(part.text);
    case "reasoning":
      return opaque + sum(part.summary, textTokens) + textTokens(part.text ?? "");
    case "toolCall":
      return opaque + textTokens(part.callId) + textTokens(part.name) + textTokens(part.input);
  }
}

function sum<T>(values: readonly T[], tokensOf: (value: T) => number): number {
  return values.reduce((total, value) => total + tokensOf(value), 0);
}

/** For unknown models: what nearly all of today's have. */
const DEFAULT_WINDOW_TOKENS = 128_000;
const COMPACT_AT_SHARE = 0.8;

/** Settings go before what the catalog knows of the model. */
export function windowOf(
  settings: Pick<TurnSettings, "contextTokens" | "compactAtTokens">,
  knownTokens: number | undefined,
): { readonly tokens: number; readonly compactAtTokens: number } {
  const tokens = settings.contextTokens ?? knownTokens ?? DEFAULT_WINDOW_TOKENS;
  return { tokens, compactAtTokens: settings.compactAtTokens ?? Math.floor(tokens * COMPACT_AT_SHARE) };
}
