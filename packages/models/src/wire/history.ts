/**
 * The stored conversation in a form that services accept. Services refuse even their own output: blank text, reasoning
 * without what it led to, images for a model that takes none, calls of tools with invalid names. Such parts are left out and
 * names are replaced here, for every wire, before encoding. Pure: the record stays as it is.
 */
import type { InputPart, ModelOutputPart } from "@heddle/protocol";
import type { ModelInput } from "../requests/stream.ts";
import { kept, type WireContext } from "./wire.ts";

export function repairHistory({ provider, request, info }: WireContext): readonly ModelInput[] {
  // An item of Responses without text is empty; other wires put signatures into pieces without text.
  const isOwn = (part: ModelOutputPart): boolean =>
    kept(provider, part.opaque) !== undefined &&
    !(provider.wire === "openai-responses" && part.kind === "text" && part.text === "");
  const offered = new Set(request.tools.map(({ name }) => name));
  return request.input.flatMap((entry, at): readonly ModelInput[] => {
    if (entry.kind === "assistant") {
      const said = entry.parts.filter((part) => !isBlank(part, isOwn(part)));
      // Only answers of this wire pause; such a one goes on in the next one, from its last part.
      const mayGoOn = provider.wire === "anthropic" && (request.input[at + 1]?.kind ?? "assistant") === "assistant";
      const parts = withoutLooseReasoning(said, (part) => mayGoOn && isOwn(part));
      const named = parts.map((part) =>
        part.kind === "toolCall" ? { ...part, name: fittingName(part.name, offered) } : part,
      );
      return parts.length === 0 ? [] : [{ ...entry, parts: named }];
    }
    const seen = info.readsImages === false ? entry.parts.map(asText) : entry.parts;
    const parts = seen.filter((part) => part.type !== "text" || part.text.trim() !== "");
    const whole = parts.length > 0 ? parts : [NOTHING[entry.kind]];
    if (entry.kind === "user") return [{ ...entry, parts: whole }];
    return [{ ...entry, name: fittingName(entry.name, offered), parts: whole }];
  });
}

/** No service accepts an entry without content. */
const NOTHING: Readonly<Record<"user" | "toolResult", InputPart>> = {
  user: { type: "text", text: "(empty)" },
  toolResult: { type: "text", text: "(no output)" },
};

/** Text of nothing but white space; a piece that the provider has signed must be sent back. */
function isBlank(part: ModelOutputPart, isOwn: boolean): boolean {
  return part.kind === "text" && part.text.trim() === "" && !isOwn;
}

/** Reasoning belongs to what follows it in the same answer. With nothing after it, it was cut off and is not signed. */
function withoutLooseReasoning(
  parts: readonly ModelOutputPart[],
  goesOn: (part: ModelOutputPart) => boolean,
): readonly ModelOutputPart[] {
  return parts.slice(0, parts.findLastIndex((part) => part.kind !== "reasoning" || goesOn(part)) + 1);
}

/** What every service accepts; Gemini accepts no digit and no dash at the start. */
const TOOL_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const MAX_NAME_CHARS = 64;
const NO_NAME = "unknown_tool";

/** Models call tools that do not exist, by names that no service accepts. Such a call must not look like one of a real tool. */
function fittingName(name: string, offered: ReadonlySet<string>): string {
  if (offered.has(name) || TOOL_NAME.test(name)) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/gu, "_").replace(/^(?=[0-9-])/, "_");
  const fitting = plain.slice(0, MAX_NAME_CHARS);
  return fitting === "" || offered.has(fitting) ? NO_NAME : fitting;
}

function asText(part: InputPart): InputPart {
  if (part.type === "text") return part;
  return { type: "text", text: `[an image (${part.mediaType}) was here; this model takes no images]` };
}
