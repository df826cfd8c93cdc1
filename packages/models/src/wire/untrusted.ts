/** JSON from a peer, where a wrong shape is `undefined`, never an exception; and JSON for strict peers. */
import type { Source } from "@heddle/protocol";

export type Json = unknown;
export type Fields = Readonly<Record<string, Json>>;

export function record(value: Json): Fields | undefined {
  return isRecord(value) ? value : undefined;
}

function isRecord(value: Json): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function list(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: Json): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A token count or an index; anything else is ignored. */
export function count(value: Json): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

export function parseJson(source: string): Json {
  try {
    return JSON.parse(source);
  } catch {
    return undefined;
  }
}

/**
 * JSON that every parser accepts. Half a surrogate pair, which models and tools write, would be an escape that strict
 * parsers refuse together with the whole request: it becomes U+FFFD, in keys too.
 */
export function writeJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes(LONE_SURROGATE) ? JSON.stringify(value, wellFormed) : json;
}

/** How `JSON.stringify` writes one; it does not escape pairs. */
const LONE_SURROGATE = "\\ud";

function wellFormed(_name: string, value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  const fields = record(value);
  if (fields === undefined || Object.keys(fields).every((name) => name.isWellFormed())) return value;
  return Object.fromEntries(Object.entries(fields).map(([name, entry]) => [name.toWellFormed(), entry]));
}

/** Of one text; more are not read by anybody. */
const MAX_SOURCES = 100;

/** Pages that a provider names for a text, as a field of a part: each once, none where nothing was named. */
export function sourcesIn(named: readonly Json[]): { readonly sources?: Source[] } {
  const found = new Map<string, Source>();
  for (const one of named) {
    const fields = record(one);
    const url = text(fields?.["url"]) ?? text(fields?.["uri"]) ?? "";
    const title = text(fields?.["title"]) ?? "";
    if (url === "" || found.has(url)) continue;
    if (found.size === MAX_SOURCES) break;
    found.set(url, title === "" ? { url } : { url, title });
  }
  return found.size === 0 ? {} : { sources: [...found.values()] };
}
