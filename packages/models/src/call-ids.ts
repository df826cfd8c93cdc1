/**
 * Ids of tool calls as a provider will take them. A conversation may hold calls of several providers, each with its own idea
 * of an id: two may have used the same one, and what one allows another refuses. What fits goes out as it is; what does not
 * gets an id that depends only on what stands before it, so that the beginning of a conversation never changes.
 */
import type { WireName } from "./providers.ts";
import type { ModelInput } from "./stream.ts";

/** OpenAI takes no longer one. */
const MAX_CHARS = 64;

export function withFittingCallIds(input: readonly ModelInput[], wire: WireName): readonly ModelInput[] {
  const used = new Set<string>();
  /** The id in the record → the id sent; a later answer may use an id again. */
  const sent = new Map<string, string>();
  const rename = (callId: string): string => {
    const id = freshId(fitting(callId, wire), used);
    used.add(id);
    sent.set(callId, id);
    return id;
  };
  return input.map((entry): ModelInput => {
    if (entry.kind === "user") return entry;
    if (entry.kind === "toolResult") return { ...entry, callId: sent.get(entry.callId) ?? entry.callId };
    const parts = entry.parts.map((part) =>
      part.kind === "toolCall" ? { ...part, callId: rename(part.callId) } : part,
    );
    return { ...entry, parts };
  });
}

function fitting(callId: string, wire: WireName): string {
  const allowed = wire === "anthropic" ? callId.replace(/[^a-zA-Z0-9_-]/g, "_") : callId;
  return allowed.slice(0, MAX_CHARS);
}

function freshId(id: string, used: ReadonlySet<string>): string {
  if (!used.has(id)) return id;
  for (let number = 2; ; number += 1) {
    const suffix = `_${number}`;
    const other = `${id.slice(0, MAX_CHARS - suffix.length)}${suffix}`;
    if (!used.has(other)) return other;
  }
}
