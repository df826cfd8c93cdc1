/** What another program has written, cut to what a record can hold and a reader can walk. */
import type { Item } from "@heddle/protocol";

/** Of one text of an item: more than a person reads. */
const MAX_CHARS = 256 * 1024;
/** Of arguments and results, which may be nested as their tool likes. */
const MAX_DEPTH = 64;

/** Whether a JSON text is nested deeper than anything means it to be. */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0, isText = false; at < text.length; at += 1) {
    const char = text[at];
    if (isText) {
      if (char === "\\") at += 1;
      else if (char === '"') isText = false;
    } else if (char === '"') isText = true;
    else if (char === "{" || char === "[") {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (char === "}" || char === "]") depth -= 1;
  }
  return false;
}

export function fittedItem(item: Item): Item {
  // Only texts are cut; every one of an item may be of any length.
  return fitted(item) as Item;
}

function fitted(value: unknown): unknown {
  if (typeof value === "string") return value.length <= MAX_CHARS ? value : cut(value);
  if (Array.isArray(value)) return value.map(fitted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fitted(inner)]));
}

function cut(text: string): string {
  const kept = text.slice(0, MAX_CHARS).replace(/[\uD800-\uDBFF]$/, "");
  return `${kept}… (${text.length - kept.length} characters are left out)`;
}
