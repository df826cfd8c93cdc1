/** JSON that a peer sent, where a wrong shape is `undefined`, never an exception; and JSON for peers that are strict. */
export type Json = unknown;

export function record(value: Json): Readonly<Record<string, Json>> | undefined {
  return isRecord(value) ? value : undefined;
}

function isRecord(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function list(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: Json): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A token count or an index; anything else counts as not given. */
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
 * JSON that every parser takes. Half a surrogate pair, which models and tools write, goes out as an escape that strict
 * parsers refuse, and with it the whole request: it becomes U+FFFD, in keys too.
 */
export function writeJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes(LONE_SURROGATE) ? JSON.stringify(value, wellFormed) : json;
}

/** How `JSON.stringify` writes one; pairs it leaves as they are. */
const LONE_SURROGATE = "\\ud";

function wellFormed(_name: string, value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  const fields = record(value);
  if (fields === undefined || Object.keys(fields).every((name) => name.isWellFormed())) return value;
  return Object.fromEntries(Object.entries(fields).map(([name, entry]) => [name.toWellFormed(), entry]));
}
