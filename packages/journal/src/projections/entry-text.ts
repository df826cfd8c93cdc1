/** Names and texts of entries, each cut to what an index can hold. */
import type { EvidenceRef, InputPart } from "@heddle/protocol";

/** Of an id: a path may be longer, and is found by its beginning. */
const MAX_ID_CHARS = 1024;

export function of(type: string, id: string): EvidenceRef {
  return bounded({ type, id });
}

export function bounded({ type, id }: EvidenceRef): EvidenceRef {
  return { type, id: id.slice(0, MAX_ID_CHARS) };
}

/** Most of what is looked for is at the beginning; results of tests and errors are at the end. */
const HEAD_CHARS = 1_500;
const TAIL_CHARS = 500;
/** Of a list or an object. */
const MAX_PARTS = 256;

export function excerpt(text: string): string {
  if (text.length <= HEAD_CHARS + TAIL_CHARS) return text;
  return `${whole(text.slice(0, HEAD_CHARS))}\n…\n${whole(text.slice(-TAIL_CHARS))}`;
}

/** Never half of a surrogate pair. */
function whole(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, "").replace(/[\uD800-\uDBFF]$/, "");
}

export function failureText(failure: { readonly code: string; readonly message: string } | undefined): string {
  return failure === undefined ? "" : ` ${failure.code}: ${failure.message}`;
}

export function inputText(parts: readonly InputPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}

/** The names and texts of a value, as far as an excerpt goes: arguments may hold a whole file. */
export function plain(value: unknown): string {
  const texts: string[] = [];
  let chars = 0;
  const rest: unknown[] = [value];
  while (rest.length > 0 && chars < HEAD_CHARS) {
    const one = rest.pop();
    if (typeof one === "object" && one !== null) {
      const inner = Array.isArray(one) ? one : Object.entries(one).flat();
      rest.push(...inner.slice(0, MAX_PARTS).toReversed());
    } else if (typeof one === "string" || typeof one === "number" || typeof one === "boolean") {
      const text = String(one).slice(0, HEAD_CHARS);
      texts.push(text);
      chars += text.length + 1;
    }
  }
  return texts.join(" ");
}
