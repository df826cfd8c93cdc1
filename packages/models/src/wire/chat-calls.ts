/** Tool calls in the chunks of Chat Completions, of which servers leave ids and indexes out, or repeat them. */
import type { Answer } from "../requests/answer.ts";
import type { Provider } from "../providers/providers.ts";
import { argumentsPiece } from "./calls.ts";
import { count, list, parseJson, record, text, type Fields, type Json } from "./untrusted.ts";
import { requireFewParts } from "./wire.ts";

export interface CallDraft {
  id: string;
  readonly index: number | undefined;
  name: string;
  json: string;
  /** To be sent back with the call; Google signs its calls here. */
  extra: Fields | undefined;
}

export interface ChatCalls {
  /** Takes the `tool_calls` of a delta. */
  take(called: Json): void;
  readonly drafts: readonly CallDraft[];
}

export function createCalls(provider: Provider, answer: Answer): ChatCalls {
  const calls: CallDraft[] = [];

  function takeCall(call: Fields, at: number | undefined): void {
    answer.callBegan();
    const fields = record(call["function"]) ?? {};
    const id = text(call["id"]) ?? "";
    const name = text(fields["name"]) ?? "";
    const piece = argumentsPiece(fields["arguments"]);
    const draft = draftFor({ id, index: count(call["index"]) ?? at, name, piece });
    draft.id ||= id;
    // Servers that repeat the name in every chunk do not mean to append it.
    draft.name ||= name;
    if (!isWholeAgain(draft, name, piece)) draft.json += piece;
    draft.extra = record(call["extra_content"]) ?? draft.extra;
  }

  /** By the id, which is unique, then by the index, which servers leave out or repeat, then the last one. */
  function draftFor({ id, index, name, piece }: Omit<CallDraft, "extra" | "json"> & { piece: string }): CallDraft {
    const last = index === undefined ? calls.at(-1) : calls.findLast((draft) => draft.index === index);
    const own = id === "" ? undefined : calls.findLast((draft) => draft.id === id);
    const known = own ?? (id === "" || last?.id === "" ? last : undefined);
    const isElsewhere = index !== undefined && (known?.index ?? index) !== index;
    const isAnother =
      known !== undefined &&
      name !== "" &&
      (isElsewhere || name !== (known.name || name) || isNextWhole(known.json, piece));
    if (known !== undefined && !isAnother) return known;
    requireFewParts(provider, calls.length);
    const draft: CallDraft = { id: "", index, name: "", json: "", extra: undefined };
    calls.push(draft);
    return draft;
  }

  return {
    drafts: calls,
    take(value) {
      const called = list(value);
      // Of several calls in one chunk the position is an index.
      for (const [at, call] of called.entries()) takeCall(record(call) ?? {}, called.length > 1 ? at : undefined);
    },
  };
}

/** Nothing can be added to whole arguments: others after them belong to another call. */
function isNextWhole(json: string, piece: string): boolean {
  return piece !== json && isWhole(json) && isWhole(piece);
}

function isWholeAgain({ json }: CallDraft, name: string, piece: string): boolean {
  return name !== "" && piece === json && isWhole(json);
}

function isWhole(json: string): boolean {
  return /^\s*\{/.test(json) && /\}\s*$/.test(json) && record(parseJson(json)) !== undefined;
}
