/** Values in messages: on one line, quoted, and cut. */
import { visiblePath } from "@heddle/protocol";

const MAX_CHARS = 120;

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
}

export function listed(values: readonly string[], most = 5): string {
  const rest = values.length - most;
  return rest > 0 ? `${values.slice(0, most).join(", ")} and ${rest} more` : values.join(", ");
}

/** Of files, whose names agents choose. */
export function listedNames(names: readonly string[], most = 5): string {
  return listed(names.map(visiblePath), most);
}
