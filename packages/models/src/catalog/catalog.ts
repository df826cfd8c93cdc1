/**
 * What is known of models: how much they read and write, what that costs, and which tool names they are used to.
 * The rows here are maintained by hand for the makers' newest models; everything else is looked up in the catalog.
 * A model that no list has works too; its price is unknown.
 */
import { defined } from "@heddle/protocol";
import { firstPriceStep, type Price, type PriceTier, type Rates } from "./price.ts";
import type { Provider } from "../providers/providers.ts";
import { traitsOf } from "./quirks.ts";

export type ModelFamily = "openai" | "anthropic" | "gemini" | "other";

/** The source of what is known of a model: these rows, the catalog of the program, its copy in the home. */
export interface InfoOrigin {
  readonly kind: "built-in" | "snapshot" | "refreshed";
  readonly date: string;
}

export interface ModelInfo {
  readonly model: string;
  readonly family: ModelFamily;
  readonly contextTokens?: number;
  /** The window to use by default: a longer prompt would be refused, or cost more per token. */
  readonly windowTokens?: number;
  readonly maxOutputTokens?: number;
  /** Absent: not known. */
  readonly isReasoning?: boolean;
  /** Under which name it wants a limit of its output over Chat Completions; absent: `max_tokens`. */
  readonly outputLimit?: "max_completion_tokens";
  /** Absent when the provider is not known to charge this price. */
  readonly price?: Price;
  /** Absent: not known. */
  readonly readsImages?: boolean;
  /** It takes `verbosity`. */
  readonly hasVerbosity?: boolean;
  /** Reasoning efforts that it takes; absent: not known. */
  readonly efforts?: readonly string[];
  readonly released?: string;
  /** Absent: nothing is known. */
  readonly origin?: InfoOrigin;
}

/** The month in which the rows below were last checked. */
const CHECKED = "2026-11";

interface Entry {
  readonly context: number;
  /** The longest prompt, where it is shorter than the window. */
  readonly input?: number;
  readonly output: number;
  readonly price?: Price;
}

type Step = Pick<PriceTier, "overTokens" | "input" | "output">;

/** The whole prompt at other rates once it is longer; what is read from and written to the cache follows the input. */
function withStep(rates: Rates, { overTokens, input, output }: Step): Price {
  const { cached, cacheWrite } = rates;
  const cache = defined({ cached: cached && cached * input, cacheWrite: cacheWrite && cacheWrite * input });
  return { ...rates, tiers: [{ overTokens, input: rates.input * input, output: rates.output * output, ...cache }] };
}

const OPENAI_STEP: Step = { overTokens: 272_000, input: 2, output: 1.5 };
const GEMINI_STEP: Step = { overTokens: 200_000, input: 2, output: 1.5 };

const gpt = (input: number, output: number, cached: number): Price =>
  withStep({ input, output, cached, cacheWrite: input * 1.25 }, OPENAI_STEP);

/** Anthropic: a five-minute cache write costs a quarter more than input, a cache read a tenth of it unless a row says less. */
const claude = (input: number, output: number, cached = input / 10): Rates => ({
  input,
  output,
  cached,
  cacheWrite: input * 1.25,
});

const M1 = { context: 1_000_000, output: 128_000 };
const GPT6 = { context: 1_050_000, input: 922_000, output: 128_000 };
const GPT5 = { context: 400_000, input: 272_000, output: 128_000 };
const GEMINI = { context: 1_048_576, output: 65_536 };

const MODELS: Readonly<Record<string, Entry>> = {
  "gpt-6.1-sol": { ...GPT6, price: gpt(2, 10, 0.1) },
  "gpt-6.1-terra": { ...GPT6, price: gpt(1, 5, 0.05) },
  "gpt-6-astra": { ...GPT6, price: gpt(10, 50, 1) },
  "gpt-6-sol": { ...GPT6, price: gpt(2, 10, 0.2) },
  "gpt-6-luna": { ...GPT6, price: gpt(0.1, 0.5, 0.01) },
  "gpt-5.6": { ...GPT6, price: gpt(4, 20, 0.4) },
  "gpt-5.6-sol": { ...GPT6, price: gpt(4, 20, 0.4) },
  "gpt-5.6-terra": { ...GPT6, price: gpt(2, 12, 0.2) },
  "gpt-5.6-luna": { ...GPT6, price: gpt(0.2, 1.2, 0.02) },
  "gpt-5.5": { ...GPT6, price: withStep({ input: 5, cached: 0.5, output: 30 }, OPENAI_STEP) },
  "gpt-5.4": { ...GPT6, price: withStep({ input: 2.5, cached: 0.25, output: 15 }, OPENAI_STEP) },
  "gpt-5.4-mini": { ...GPT5, price: { input: 0.75, cached: 0.075, output: 4.5 } },
  "gpt-5": { ...GPT5, price: { input: 1.25, cached: 0.125, output: 10 } },
  "gpt-5-mini": { ...GPT5, price: { input: 0.25, cached: 0.025, output: 2 } },
  "claude-fable-5-1": { ...M1, price: claude(10, 50, 0.25) },
  "claude-mythos-5-1": { ...M1, price: claude(10, 50, 0.25) },
  "claude-opus-5-5": { ...M1, price: claude(4, 20, 0.2) },
  "claude-opus-5": { ...M1, price: claude(5, 25) },
  "claude-opus-4-8": { ...M1, price: claude(5, 25) },
  "claude-sonnet-5-5": { ...M1, price: claude(2, 10, 0.1) },
  "claude-sonnet-5": { ...M1, price: claude(2, 10) },
  "claude-haiku-5-5": { ...M1, price: withStep(claude(0.1, 0.5), { overTokens: 100_000, input: 5, output: 5 }) },
  "claude-sonnet-4-5": { context: 200_000, output: 64_000, price: claude(3, 15) },
  "claude-haiku-4-5": { context: 200_000, output: 64_000, price: claude(1, 5) },
  "gemini-3.8-flash": { ...GEMINI, price: { input: 0.75, cached: 0.075, output: 3.75, until: "2026-12-31" } },
  "gemini-3.1-pro-preview": { ...GEMINI, price: withStep({ input: 2, cached: 0.2, output: 12 }, GEMINI_STEP) },
  "gemini-2.5-pro": { ...GEMINI, price: withStep({ input: 1.25, cached: 0.125, output: 10 }, GEMINI_STEP) },
  "gemini-2.5-flash": { ...GEMINI, price: { input: 0.3, cached: 0.03, output: 2.5 } },
};

/** Names of the models that are listed here, newest first for each maker. */
export function knownModels(): readonly string[] {
  return Object.keys(MODELS);
}

/** The script is played here; it costs nothing. */
const FREE: Price = { input: 0, cached: 0, cacheWrite: 0, output: 0 };

export type InfoSource = Pick<Provider, "wire" | "vendor" | "family" | "catalog" | "prices">;

export function modelInfo(provider: InfoSource, model: string): ModelInfo {
  const bare = bareName(model);
  const family = provider.family ?? familyOf(provider, bare);
  if (provider.wire === "scripted") return { model, family, price: FREE };
  const row = Object.hasOwn(MODELS, bare) ? MODELS[bare] : undefined;
  const isMakers = row !== undefined && provider.vendor === familyByName(bare);
  const facts = factsOf({ provider, model, row, isMakers });
  return { model, family, ...traitsOf(bare), ...facts, ...defined({ price: ownPrice(provider, model) }) };
}

function ownPrice({ prices = {} }: InfoSource, model: string): Price | undefined {
  return Object.hasOwn(prices, model) ? prices[model] : undefined;
}

interface Known {
  readonly provider: InfoSource;
  readonly model: string;
  readonly row: Entry | undefined;
  /** The provider is the maker of the model, so its own list prices apply. */
  readonly isMakers: boolean;
}

type Facts = Omit<ModelInfo, "model" | "family">;

/** A copy that was fetched after the rows were checked is newer; the snapshot fills what the rows do not have. */
function factsOf({ provider: { catalog }, model, row, isMakers }: Known): Facts {
  const fetched = catalog?.refreshed(model);
  const refreshed = fetched !== undefined && fetched.date >= CHECKED ? fetched : undefined;
  const isKept = isMakers && refreshed === undefined;
  const listed = isKept ? undefined : (refreshed ?? catalog?.snapshot(model));
  const own = isMakers ? undefined : catalog?.listed(model);
  const entry = isKept || listed === undefined ? row : undefined;
  const price = isKept ? row?.price : listed?.model.price;
  const contextTokens = own?.contextTokens ?? entry?.context ?? listed?.model.contextTokens;
  const maxOutputTokens = own?.maxOutputTokens ?? entry?.output ?? listed?.model.maxOutputTokens;
  const readsImages = own?.readsImages ?? listed?.model.input.includes("image");
  // Lists often leave out the steps and limits that a model has at its maker.
  const bounds = [
    contextTokens,
    row?.input,
    listed?.model.maxInputTokens,
    firstPriceStep(row?.price),
    firstPriceStep(listed?.model.price),
  ].filter((bound) => bound !== undefined);
  const { efforts, released } = listed?.model ?? {};
  const origin = entry === undefined ? listed : ({ kind: "built-in", date: CHECKED } as const);
  return defined({
    contextTokens,
    windowTokens: contextTokens === undefined ? undefined : Math.min(...bounds),
    maxOutputTokens,
    price,
    readsImages,
    efforts,
    released,
    origin: origin && { kind: origin.kind, date: origin.date },
  });
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
