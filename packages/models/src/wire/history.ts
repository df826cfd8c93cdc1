/**
 * The stored conversation as a service will take it back. Services refuse what they themselves have said: blank text,
 * reasoning that the output limit cut off from what it led to, pictures for a model without eyes, calls of tools by names
 * that no tool can have. What says nothing is left out here and names are made to fit, for every wire, before anything is
 * encoded. Pure: the record stays as it is.
 */
import type { InputPart, ModelOutputPart } from "@heddle/protocol";
import type { ModelInput } from "../stream.ts";
import { kept, type WireContext } from "./wire.ts";

export function repairHistory({ provider, request, info }: WireContext): readonly ModelInput[] {
  // An item of Responses holds nothing but its words; other wires seal signatures into pieces without any.
  const isOwn = (part: ModelOutputPart): boolean =>
    kept(provider, part.opaque) !== undefined &&
    !(provider.wire === "openai-responses" && part.kind === "text" && part.text === "");
  const offered = new Set(request.tools.map(({ name }) => name));
  return request.input.flatMap((entry): readonly ModelInput[] => {
    if (entry.kind === "assistant") {
      const parts = withoutLooseReasoning(entry.parts.filter((part) => !isBlank(part, isOwn(part))));
      const named = parts.map((part) =>
        part.kind === "toolCall" ? { ...part, name: fittingName(part.name, offered) } : part,
      );
      return parts.length === 0 ? [] : [{ ...entry, parts: named }];
    }
    const seen = info.readsImages === false ? entry.parts.map(inWords) : entry.parts;
    const parts = seen.filter((part) => part.type !== "text" || part.text.trim() !== "");
    const whole = parts.length > 0 ? parts : [NOTHING[entry.kind]];
    if (entry.kind === "user") return [{ ...entry, parts: whole }];
    return [{ ...entry, name: fittingName(entry.name, offered), parts: whole }];
  });
}

/** What stands for the words where there are none: no service takes an entry without content. */
const NOTHING: Readonly<Record<"user" | "toolResult", InputPart>> = {
  user: { type: "text", text: "(empty)" },
  toolResult: { type: "text", text: "(no output)" },
};

/** Text of nothing but white space; what the provider has sealed into a piece of it must go back all the same. */
function isBlank(part: ModelOutputPart, isOwn: boolean): boolean {
  return part.kind === "text" && part.text.trim() === "" && !isOwn;
}

/** Reasoning belongs to what follows it in the same answer. With nothing behind it it was cut off, and is not signed. */
function withoutLooseReasoning(parts: readonly ModelOutputPart[]): readonly ModelOutputPart[] {
  return parts.slice(0, parts.findLastIndex(({ kind }) => kind !== "reasoning") + 1);
}

/** What every service takes; Gemini wants no digit and no dash in front. */
const TOOL_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const MAX_NAME_CHARS = 64;
const NO_NAME = "unknown_tool";

/** Models call tools that nobody offered, by names that no service takes back. Such a call never passes for one of a real tool. */
function fittingName(name: string, offered: ReadonlySet<string>): string {
  if (offered.has(name) || TOOL_NAME.test(name)) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/gu, "_").replace(/^(?=[0-9-])/, "_");
  const fitting = plain.slice(0, MAX_NAME_CHARS);
  return fitting === "" || offered.has(fitting) ? NO_NAME : fitting;
}

function inWords(part: InputPart): InputPart {
  if (part.type === "text") return part;
  return { type: "text", text: `[an image (${part.mediaType}) was here; this model takes no images]` };
}
