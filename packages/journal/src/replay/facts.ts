/** Reads stored JSON without believing its shape: what is not there, or of another kind, is absent. */

export type Facts = Readonly<Record<string, unknown>>;

const NOTHING: Facts = {};

export function isFacts(value: unknown): value is Facts {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function factsIn(from: Facts, key: string): Facts {
  const value = from[key];
  return isFacts(value) ? value : NOTHING;
}

export function textIn(from: Facts, key: string): string | undefined {
  const value = from[key];
  return typeof value === "string" ? value : undefined;
}

export function numberIn(from: Facts, key: string): number | undefined {
  const value = from[key];
  return typeof value === "number" ? value : undefined;
}

/** undefined: not a list of texts alone. */
export function textsIn(from: Facts, key: string): readonly string[] | undefined {
  const value = from[key];
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
}

export function listIn(from: Facts, key: string): readonly Facts[] {
  const value = from[key];
  return Array.isArray(value) ? value.filter(isFacts) : [];
}

/** One stored event. `body` is absent when it was purged, cannot be read, or is of a type that nothing here looks at. */
export interface Entry {
  readonly stream: string;
  readonly version: number;
  readonly at: number;
  readonly author: string;
  readonly type: string;
  readonly body?: Facts | undefined;
  /** Its body would be looked at, and cannot be: it was purged, or is no JSON. */
  readonly isUnread?: boolean;
  /** It answers an entry that is not in the store, or not before it; a bundle may hold only one of the two. */
  readonly isOrphan?: boolean;
}

/** Types whose bodies are looked at; of all others only who, when and in which order. */
export const READ_TYPES: ReadonlySet<string> = new Set([
  "thread.created",
  "thread.moved",
  "turn.admitted",
  "turn.started",
  "turn.completed",
  "tool.intended",
  "tool.settled",
  "item.started",
  "item.completed",
  "approval.requested",
  "approval.resolved",
  "hop.taken",
  "envelope.entered",
  "envelope.left",
  "files.compared",
  "gate.passed",
  "gate.refused",
  "network.used",
  "path.violated",
  "client.intended",
  "client.settled",
  "evidence.noted",
  "evidence.collected",
  "message.received",
  "message.settled",
]);

export function bodyOf(type: string, body: string | null | undefined): Facts | undefined {
  if (typeof body !== "string" || !READ_TYPES.has(type)) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    return isFacts(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
