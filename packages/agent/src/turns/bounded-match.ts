/**
 * Matches patterns that somebody else wrote, for a moment and no longer: one can be written that takes hours for forty
 * letters, and everybody would wait for it.
 */
import type { Context, Script } from "node:vm";

/** A text so short is soon done with, whatever the pattern. */
const MAX_FREE_CHARS = 16;
/** For all of one value. */
const MAX_MATCHING_MS = 250;

/** What takes longer, all together, does not match. */
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
  const { script, context } = (place ??= makePlace());
  try {
    Object.assign(context, { pattern, text });
    return script.runInContext(context, { timeout }) === true;
  } catch (error) {
    // An error of that other place, so no instance of this one's Error.
    if (Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  } finally {
    Object.assign(context, { pattern: undefined, text: undefined });
  }
}

let place: { readonly script: Script; readonly context: Context } | undefined;

/** Made when it is first needed: most runs have no schema. */
function makePlace(): NonNullable<typeof place> {
  const vm = process.getBuiltinModule("node:vm");
  return { script: new vm.Script("pattern.test(text)"), context: vm.createContext({}) };
}
