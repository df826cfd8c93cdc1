/** How deep a JSON text is nested and how many values it holds, found without parsing it. */

/** Deeper than any input of Heddle; what walks it later walks by calling itself. */
const MAX_DEPTH = 64;
/** More than any input of Heddle. Reading takes longer for each value than for each byte: 8 MB of them are most of a second. */
const MAX_VALUES = 100_000;

/** Which limit it exceeds, as the end of a sentence; undefined: none. */
export function excessOf(text: string): string | undefined {
  // Each level takes a bracket at either end, and each value a character at least.
  if (text.length <= 2 * MAX_DEPTH) return undefined;
  const { depth, values } = shapeOf(text);
  if (depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
  return values > MAX_VALUES ? `holds more than ${MAX_VALUES} values` : undefined;
}

/** Brackets and commas outside of strings. */
function shapeOf(text: string): { readonly depth: number; readonly values: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (isInString) {
      if (char === 0x5c) at += 1;
      else if (char === 0x22) isInString = false;
    } else if (char === 0x22) isInString = true;
    else if (char === 0x2c) values += 1;
    else if (char === 0x7b || char === 0x5b) {
      values += 1;
      deepest = Math.max(deepest, (depth += 1));
    } else if (char === 0x7d || char === 0x5d) depth -= 1;
  }
  return { depth: deepest, values };
}
