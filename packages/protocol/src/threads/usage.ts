/** Arithmetic on token counts. Apart from their schema, because every run adds and few runs parse. */
import type { Usage } from "./model-output.ts";

export const NO_USAGE: Usage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 0,
  reasoningOutputTokens: 0,
};

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteInputTokens: a.cacheWriteInputTokens + b.cacheWriteInputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningOutputTokens: a.reasoningOutputTokens + b.reasoningOutputTokens,
  };
}

export function lessUsage(usage: Usage, less: Usage): Usage {
  return {
    inputTokens: usage.inputTokens - less.inputTokens,
    cachedInputTokens: usage.cachedInputTokens - less.cachedInputTokens,
    cacheWriteInputTokens: usage.cacheWriteInputTokens - less.cacheWriteInputTokens,
    outputTokens: usage.outputTokens - less.outputTokens,
    reasoningOutputTokens: usage.reasoningOutputTokens - less.reasoningOutputTokens,
  };
}

/** As columns and as most wires name them. */
export function usageInSnakeCase(usage: Usage): {
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
} {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_input_tokens: usage.cacheWriteInputTokens,
    output_tokens: usage.outputTokens,
    reasoning_output_tokens: usage.reasoningOutputTokens,
  };
}
