/**
 * Ids of tool calls in the form that a provider accepts. A conversation may have calls of several providers with ids of
 * different forms: two may have used the same one, and one refuses what another allows. An id that fits is sent as it is;
 * any other is replaced by one that depends only on what is before it, so that the beginning of a conversation never changes.
 */
import type { CallIdRule } from "../catalog/quirks.ts";
import type { ModelInput } from "../requests/stream.ts";

interface IdForm {
  /** What is replaced. */
  readonly foreign: RegExp;
  readonly filler: string;
  readonly minChars: number;
  readonly maxChars: number;
}

/** OpenAI accepts at most 64 characters. */
const FORMS: Readonly<Record<CallIdRule, IdForm>> = {
  any: { foreign: /(?!)/g, filler: "_", minChars: 1, maxChars: 64 },
  anthropic: { foreign: /[^a-zA-Z0-9_-]/g, filler: "_", minChars: 1, maxChars: 64 },
  "nine-characters": { foreign: /[^a-zA-Z0-9]/g, filler: "0", minChars: 9, maxChars: 9 },
};

export function withFittingCallIds(input: readonly ModelInput[], rule: CallIdRule): readonly ModelInput[] {
  const form = FORMS[rule];
  const used = new Set<string>();
  /** The id in the record → the id sent; a later answer may use an id again. */
  const sent = new Map<string, string>();
  const rename = (callId: string): string => {
    const id = freshId(fitting(callId, form), used, form);
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

function fitting(callId: string, { foreign, filler, minChars, maxChars }: IdForm): string {
  return cutTo(callId.toWellFormed().replace(foreign, filler), maxChars).padEnd(minChars, filler);
}

/** Never inside a surrogate pair. */
function cutTo(id: string, maxChars: number): string {
  const head = id.slice(0, maxChars);
  return head.isWellFormed() ? head : head.slice(0, -1);
}

function freshId(id: string, used: ReadonlySet<string>, { filler, maxChars }: IdForm): string {
  if (!used.has(id)) return id;
  for (let number = 2; ; number += 1) {
    const suffix = `${filler}${number}`;
    const other = `${cutTo(id, maxChars - suffix.length)}${suffix}`;
    if (!used.has(other)) return other;
  }
}
