/** Prices of models, and the cost of an answer. Without a known rate the cost is unknown, never guessed. */
import type { Usage } from "@heddle/protocol";

/** US dollars for a million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Absent: not published. A request that read from the cache then has no known cost. */
  readonly cached?: number;
  /** Absent: not published. A request that wrote to the cache then has no known cost. */
  readonly cacheWrite?: number;
  /** Of reasoning tokens, where they are not charged as output. */
  readonly reasoning?: number;
}

/** Rates of a prompt with more tokens than this; they apply to the whole prompt. */
export interface PriceTier extends Rates {
  readonly overTokens: number;
}

export interface Price extends Rates {
  /** In rising order. */
  readonly tiers?: readonly PriceTier[];
  /** Day until which the price holds. */
  readonly until?: string;
}

/** US dollars, or undefined when the price is not known. */
export function costOf(
  usage: Usage,
  { price }: { readonly price?: Price | undefined },
  now: number = Date.now(),
): number | undefined {
  if (price === undefined) return undefined;
  if (price.until !== undefined && now >= Date.parse(price.until) + 86_400_000) return undefined;
  const { input, output, cached, cacheWrite, reasoning = output } = ratesFor(price, usage.inputTokens);
  const { cachedInputTokens, cacheWriteInputTokens, reasoningOutputTokens } = usage;
  if ((cachedInputTokens > 0 && cached === undefined) || (cacheWriteInputTokens > 0 && cacheWrite === undefined)) {
    return undefined;
  }
  const fresh = Math.max(0, usage.inputTokens - cachedInputTokens - cacheWriteInputTokens);
  const read = fresh * input + cachedInputTokens * (cached ?? 0) + cacheWriteInputTokens * (cacheWrite ?? 0);
  const thought = Math.min(reasoningOutputTokens, usage.outputTokens);
  return (read + (usage.outputTokens - thought) * output + thought * reasoning) / 1_000_000;
}

function ratesFor(price: Price, inputTokens: number): Rates {
  return price.tiers?.findLast(({ overTokens }) => inputTokens > overTokens) ?? price;
}

/** A price step below this size does not limit the window. */
const MIN_STEP_TOKENS = 100_000;

/** The first step to a higher price, among those that leave enough room to work. */
export function firstPriceStep(price: Price | undefined): number | undefined {
  return price?.tiers?.find(({ overTokens, input }) => overTokens >= MIN_STEP_TOKENS && input > price.input)
    ?.overTokens;
}
