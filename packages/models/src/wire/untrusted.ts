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

/** What people read of a search, beside the item that is sent back as it came: a longer text is not read by anybody. */
const MAX_BRIEF_CHARS = 2_000;
/** Queries of one search, and searches that are told with one answer. */
export const MAX_QUERIES = 100;

export function briefText(value: Json): string | undefined {
  const whole = text(value);
  if (whole === undefined || whole.length <= MAX_BRIEF_CHARS) return whole;
  return `${whole.slice(0, MAX_BRIEF_CHARS).toWellFormed()}…`;
}

/** Programs make links of it: an address of the web, and nothing that hides in one. */
export function webAddress(url: string | undefined): string | undefined {
  return url !== undefined && /^https?:\/\/[^\s\p{Cc}\p{Cf}]+$/iu.test(url) ? url : undefined;
}

/** Of one answer; a longer list is made to fill the conversation, and is not sent back with its text. */
const MAX_CITATION_CHARS = 128 * 1024;

export function hasTooManyCitations(citations: readonly Json[]): boolean {
  return JSON.stringify(citations).length > MAX_CITATION_CHARS;
}

/** Of one text; more are not read by anybody. */
const MAX_SOURCES = 100;

/** Pages that a provider names for a text: each once. */
export class Sources {
  readonly #found = new Map<string, Source>();

  add(named: readonly Json[]): void {
    for (const one of named) {
      const fields = record(one);
      const url = webAddress(text(fields?.["url"]) ?? text(fields?.["uri"])) ?? "";
      const title = briefText(fields?.["title"]) ?? "";
      // Half an address leads elsewhere.
      if (url === "" || url.length > MAX_BRIEF_CHARS || this.#found.has(url)) continue;
      if (this.#found.size === MAX_SOURCES) return;
      this.#found.set(url, title === "" ? { url } : { url, title });
    }
  }

  /** As a field of a part, which is not there where nothing was named. */
  get field(): { readonly sources?: Source[] } {
    return this.#found.size === 0 ? {} : { sources: [...this.#found.values()] };
  }
}

export function sourcesIn(named: readonly Json[]): Sources["field"] {
  const sources = new Sources();
  sources.add(named);
  return sources.field;
}
