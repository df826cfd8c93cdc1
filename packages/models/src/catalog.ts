/**
 * What is known of models: how much they read and write, what that costs, and which tool names they are used to.
 * A model that is not listed works too; its price is unknown and said to be. Figures are list prices, as of 2026-11.
 */
import type { Usage } from "@heddle/protocol";
import type { Provider } from "./providers.ts";

export type ModelFamily = "openai" | "anthropic" | "gemini" | "other";

/** US dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** Absent: not published. A request that wrote to the cache then has no known cost. */
  readonly cacheWrite?: number;
  /** A longer prompt is charged at other rates, the whole of it. */
  readonly long?: { readonly overTokens: number; readonly inputFactor: number; readonly outputFactor: number };
  /** Day until which the price holds. */
  readonly until?: string;
}

export interface ModelInfo {
  readonly model: string;
  readonly family: ModelFamily;
  readonly contextTokens?: number;
  readonly maxOutputTokens?: number;
  /** Absent when the provider is not the maker of the model, or the model is not listed. */
  readonly price?: Price;
}

interface Entry {
  readonly context: number;
  readonly output: number;
  readonly price?: Price;
}

const OPENAI_LONG = { overTokens: 272_000, inputFactor: 2, outputFactor: 1.5 };
const GEMINI_LONG = { overTokens: 200_000, inputFactor: 2, outputFactor: 1.5 };

/** Anthropic: a cache read costs a tenth of the input price, a five-minute cache write a quarter more. */
const claude = (input: number, output: number): Price => ({
  input,
  cached: input / 10,
  cacheWrite: input * 1.25,
  output,
});

const M1 = { context: 1_000_000, output: 128_000 };
const GPT6 = { context: 1_050_000, output: 128_000 };

const MODELS: Readonly<Record<string, Entry>> = {
  "gpt-6.1-sol": { ...GPT6, price: { input: 2, cached: 0.1, output: 10, long: OPENAI_LONG } },
  "gpt-6.1-terra": { ...GPT6, price: { input: 1, cached: 0.05, output: 5, long: OPENAI_LONG } },
  "gpt-6-astra": { ...GPT6, price: { input: 10, cached: 1, cacheWrite: 12.5, output: 50, long: OPENAI_LONG } },
  "gpt-6-sol": { ...GPT6, price: { input: 2, cached: 0.2, cacheWrite: 2.5, output: 10, long: OPENAI_LONG } },
  "gpt-6-luna": { ...GPT6, price: { input: 0.1, cached: 0.01, cacheWrite: 0.125, output: 0.5, long: OPENAI_LONG } },
  // Repriced since their release; what they cost now is not known here.
  "gpt-5.6-sol": GPT6,
  "gpt-5.6-terra": GPT6,
  "gpt-5.6-luna": GPT6,
  "gpt-5.5": { ...GPT6, price: { input: 5, cached: 0.5, output: 30, long: OPENAI_LONG } },
  "gpt-5.4": { ...GPT6, price: { input: 2.5, cached: 0.25, output: 15, long: OPENAI_LONG } },
  "gpt-5.4-mini": { context: 400_000, output: 128_000, price: { input: 0.75, cached: 0.075, output: 4.5 } },
  "gpt-5": { context: 400_000, output: 128_000, price: { input: 1.25, cached: 0.125, output: 10 } },
  "gpt-5-mini": { context: 400_000, output: 128_000, price: { input: 0.25, cached: 0.025, output: 2 } },
  "claude-fable-5-1": { ...M1, price: claude(10, 50) },
  "claude-opus-5-5": { ...M1, price: claude(4, 20) },
  "claude-opus-5": { ...M1, price: claude(5, 25) },
  "claude-opus-4-8": { ...M1, price: claude(5, 25) },
  "claude-sonnet-5-5": { ...M1, price: claude(2, 10) },
  "claude-sonnet-5": { ...M1, price: claude(2, 10) },
  "claude-haiku-5-5": {
    ...M1,
    price: { ...claude(0.1, 0.5), long: { overTokens: 100_000, inputFactor: 5, outputFactor: 5 } },
  },
  "claude-sonnet-4-5": { context: 200_000, output: 64_000, price: claude(3, 15) },
  "claude-haiku-4-5": { context: 200_000, output: 64_000, price: claude(1, 5) },
  "gemini-3.8-flash": {
    context: 1_048_576,
    output: 65_536,
    price: { input: 0.75, cached: 0.075, output: 3.75, until: "2026-12-31" },
  },
  "gemini-3.1-pro-preview": {
    context: 1_048_576,
    output: 65_536,
    price: { input: 2, cached: 0.2, output: 12, long: GEMINI_LONG },
  },
  "gemini-2.5-pro": {
    context: 1_048_576,
    output: 65_536,
    price: { input: 1.25, cached: 0.125, output: 10, long: GEMINI_LONG },
  },
  "gemini-2.5-flash": { context: 1_048_576, output: 65_536, price: { input: 0.3, cached: 0.03, output: 2.5 } },
};

/** Names of the models that are listed here, newest first for each maker. */
export function knownModels(): readonly string[] {
  return Object.keys(MODELS);
}

/** The script is played here; it costs nothing. */
const FREE: Price = { input: 0, cached: 0, cacheWrite: 0, output: 0 };

export type InfoSource = Pick<Provider, "wire" | "vendor" | "family">;

export function modelInfo(provider: InfoSource, model: string): ModelInfo {
  const bare = bareName(model);
  const entry = Object.hasOwn(MODELS, bare) ? MODELS[bare] : undefined;
  const family = provider.family ?? familyOf(provider, bare);
  const price = provider.wire === "scripted" ? FREE : provider.vendor === familyByName(bare) ? entry?.price : undefined;
  return {
    model,
    family,
    ...(entry === undefined ? {} : { contextTokens: entry.context, maxOutputTokens: entry.output }),
    ...(price === undefined ? {} : { price }),
  };
}

/** US dollars, or undefined when the price is not known. */
export function costOf(usage: Usage, info: Pick<ModelInfo, "price">, now: number = Date.now()): number | undefined {
  const { price } = info;
  if (price === undefined) return undefined;
  if (price.until !== undefined && now >= Date.parse(price.until) + 86_400_000) return undefined;
  if (usage.cacheWriteInputTokens > 0 && price.cacheWrite === undefined) return undefined;
  const isLong = price.long !== undefined && usage.inputTokens > price.long.overTokens;
  const inputFactor = isLong ? price.long.inputFactor : 1;
  const outputFactor = isLong ? price.long.outputFactor : 1;
  const fresh = Math.max(0, usage.inputTokens - usage.cachedInputTokens - usage.cacheWriteInputTokens);
  const read = fresh * price.input + usage.cachedInputTokens * price.cached;
  const written = usage.cacheWriteInputTokens * (price.cacheWrite ?? 0);
  return ((read + written) * inputFactor + usage.outputTokens * price.output * outputFactor) / 1_000_000;
}

/** `vendor/model` of a gateway, `models/model` of Gemini, and dated snapshots are the same model. */
function bareName(model: string): string {
  const last = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  const undated = last.replace(/[-@](\d{8}|\d{4}-\d{2}-\d{2})$/, "").replace(/:[a-z-]+$/, "");
  // Gateways write the version with a dot where Anthropic writes a dash.
  return undated.startsWith("claude") ? undated.replaceAll(".", "-") : undated;
}

function familyOf(provider: InfoSource, bare: string): ModelFamily {
  const named = familyByName(bare);
  if (named !== undefined) return named;
  if (provider.vendor !== undefined) return provider.vendor;
  if (provider.wire === "anthropic" || provider.wire === "gemini") return provider.wire;
  return provider.wire === "openai-responses" ? "openai" : "other";
}

function familyByName(bare: string): "openai" | "anthropic" | "gemini" | undefined {
  if (/^(gpt|chatgpt|codex|o\d)/.test(bare)) return "openai";
  if (bare.includes("claude")) return "anthropic";
  return bare.startsWith("gemini") ? "gemini" : undefined;
}
