/** Bounds the time of patterns that others wrote: one can be written that takes hours for forty letters. */
import type { Context, Script } from "node:vm";

/** A text this short is fast with any pattern. */
const MAX_FREE_CHARS = 16;
const MAX_MATCHING_MS = 250;

/** What takes longer in total does not match. */
export function boundedMatcher(): (pattern: RegExp, text: string) => boolean {
  let leftMs = MAX_MATCHING_MS;
  return (pattern, text) => {
    if (text.length <= MAX_FREE_CHARS) return pattern.test(text);
    if (leftMs < 1) return false;
    const startedAt = performance.now();
    try {
      return matchWithin(leftMs, pattern, text);
    } finally {
      leftMs = Math.floor(leftMs - (performance.now() - startedAt));
    }
  };
}

function matchWithin(timeout: number, pattern: RegExp, text: string): boolean {
  const { script, context } = (matcher ??= makeContext());
  try {
    Object.assign(context, { pattern, text });
    return script.runInContext(context, { timeout }) === true;
  } catch (error) {
    // From the other context, so it is not an instance of this one's Error.
    if (Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  } finally {
    Object.assign(context, { pattern: undefined, text: undefined });
  }
}

let matcher: { readonly script: Script; readonly context: Context } | undefined;

/** Made when first needed: most runs have no schema. */
function makeContext(): NonNullable<typeof matcher> {
  const vm = process.getBuiltinModule("node:vm");
  return { script: new vm.Script("pattern.test(text)"), context: vm.createContext({}) };
}
