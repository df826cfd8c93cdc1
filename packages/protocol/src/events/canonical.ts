/**
 * Canonical JSON (RFC 8785 rules): sorted keys, no undefined, no NaN, lone surrogates replaced.
 * What is hashed is exactly what is stored, so the text made here is both.
 */
export function canonical(value: unknown): string {
  const text = write(value);
  if (text === undefined) throw new TypeError("undefined has no canonical form");
  return text;
}

function write(value: unknown): string | undefined {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.isWellFormed() ? value : value.toWellFormed());
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`);
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
      return undefined;
    case "object":
      return Array.isArray(value) ? writeArray(value) : writeObject(value as Record<string, unknown>);
    default:
      throw new TypeError(`a ${typeof value} has no canonical form`);
  }
}

function writeArray(values: readonly unknown[]): string {
  return `[${values.map((value) => write(value) ?? "null").join(",")}]`;
}

function writeObject(record: Record<string, unknown>): string {
  const parts: string[] = [];
  // RFC 8785 sorts by UTF-16 code units, which is what the default sort does.
  for (const key of Object.keys(record).sort()) {
    const text = write(record[key]);
    if (text !== undefined) parts.push(`${write(key)}:${text}`);
  }
  return `{${parts.join(",")}}`;
}
