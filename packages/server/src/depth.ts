/** How deep a text in JSON is nested, told without reading it. */

/** Deeper than any input of Heddle; what walks it later walks by calling itself. */
export const MAX_DEPTH = 64;

export function isTooDeep(text: string): boolean {
  // Each level takes a bracket at either end.
  return text.length > 2 * MAX_DEPTH && depthOf(text) > MAX_DEPTH;
}

/** Brackets outside of strings; of text that is not JSON the answer does not matter. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (isInString) {
      if (char === 0x5c) at += 1;
      else if (char === 0x22) isInString = false;
    } else if (char === 0x22) isInString = true;
    else if (char === 0x7b || char === 0x5b) deepest = Math.max(deepest, (depth += 1));
    else if (char === 0x7d || char === 0x5d) depth -= 1;
  }
  return deepest;
}
