/**
 * The conversation without parts that a provider refused. Pure, and complete in the event: a resumed thread leaves out
 * the same. The input of the running turn is never changed.
 */
import type { EventOf, InputPart, ModelOutputPart } from "@heddle/protocol";
import type { ModelInput } from "@heddle/models";
import { textOf } from "./compacted-context.ts";
import { entryOf, userText, type ContextEntry } from "./context-entry.ts";

export type LeftOut = Pick<EventOf<"context.left-out">, "parts" | "turnId">;

export function withoutParts(entries: readonly ContextEntry[], { parts, turnId }: LeftOut): ContextEntry[] {
  return entries.flatMap((entry) => {
    if (entry.role === "message" && entry.name === turnId) return [entry];
    const input = REDUCE[parts](entry.input);
    if (input === entry.input) return [entry];
    return input === undefined ? [] : [entryOf(entry.role, input, entry.name)];
  });
}

export function hasParts(entries: readonly ContextEntry[], leftOut: LeftOut): boolean {
  const reduced = withoutParts(entries, leftOut);
  return reduced.length !== entries.length || reduced.some((entry, index) => entry !== entries[index]);
}

/** The same object when nothing was left out; undefined when nothing else remains. */
type Reduce = (input: ModelInput) => ModelInput | undefined;

const REDUCE: Readonly<Record<LeftOut["parts"], Reduce>> = {
  sealed(input) {
    if (input.kind !== "assistant" || !input.parts.some(isSealed)) return input;
    const parts = input.parts.flatMap(unsealed);
    return parts.length === 0 ? undefined : { ...input, parts };
  },
  images(input) {
    if (input.kind === "assistant" || !input.parts.some(({ type }) => type === "image")) return input;
    return { ...input, parts: input.parts.map(asText) };
  },
  structure(input) {
    if (input.kind === "toolResult") return userText(`Result of ${input.name}: ${textOf(input.parts.map(asText))}`);
    if (input.kind === "user") return REDUCE.images(input);
    if (input.parts.every((part) => part.kind === "text" && part.opaque === undefined)) return input;
    const text = input.parts.flatMap(outputTexts).join("\n");
    return text.trim() === "" ? undefined : { kind: "assistant", parts: [{ kind: "text", text }] };
  },
};

function isSealed(part: ModelOutputPart): boolean {
  return part.kind === "reasoning" || part.opaque !== undefined;
}

function unsealed(part: ModelOutputPart): ModelOutputPart[] {
  const { opaque: _, ...open } = part;
  return open.kind === "reasoning" ? [] : [open];
}

function asText(part: InputPart): InputPart {
  if (part.type === "text") return part;
  return { type: "text", text: `[an image (${part.mediaType}) was here; the provider refused it]` };
}

function outputTexts(part: ModelOutputPart): string[] {
  if (part.kind === "text") return [part.text];
  return part.kind === "reasoning" ? [] : [`[called ${part.name}: ${part.input}]`];
}
