/** An object with every long text in it cut in the middle, at any depth: what an agent can take in beside its work. */
import { fitText } from "@heddle/tools";

export function cutTexts(value: Readonly<Record<string, unknown>>, maxBytes: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, cut(part, maxBytes)]));
}

function cut(value: unknown, maxBytes: number): unknown {
  if (typeof value === "string") return fitText(value, maxBytes);
  if (Array.isArray(value)) return value.map((part) => cut(part, maxBytes));
  return typeof value === "object" && value !== null ? cutTexts({ ...value }, maxBytes) : value;
}
