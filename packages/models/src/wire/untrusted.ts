/** Readers for JSON that a peer sent: a wrong shape is `undefined`, never an exception. */
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
