/** What a client sends as input of a turn. Images by path are read by the server. */
import { z } from "zod";
import type { InputPart } from "@heddle/protocol";

const offset = z.int().nonnegative();
const TextElement = z.object({
  byteRange: z.object({ start: offset, end: offset }),
  placeholder: z.string().nullish(),
});

export const UserInput = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string(), text_elements: z.array(TextElement).optional() }),
  z.object({ type: z.literal("image"), url: z.string().nullish(), fileId: z.string().nullish() }),
  z.object({ type: z.literal("localImage"), path: z.string() }),
  z.object({ type: z.literal("audio"), url: z.string().nullish() }),
  z.object({ type: z.literal("localAudio"), path: z.string() }),
  z.object({ type: z.literal("skill"), name: z.string(), path: z.string() }),
  z.object({ type: z.literal("mention"), name: z.string(), path: z.string() }),
]);
export type UserInput = z.infer<typeof UserInput>;

export type ReadInput =
  | InputPart
  | { readonly type: "localImage"; readonly path: string }
  | { readonly type: "unsupported"; readonly what: string };

const DATA_URL = /^data:(image\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=\s]*)$/;

/** undefined: the address does not hold a picture itself. */
export function dataImage(url: string): InputPart | undefined {
  const [, mediaType, base64] = DATA_URL.exec(url) ?? [];
  if (mediaType === undefined || base64 === undefined) return undefined;
  return { type: "image", mediaType, base64: base64.replaceAll(/\s/g, "") };
}

export function inputFrom(input: UserInput): ReadInput {
  switch (input.type) {
    case "text": {
      const spans = (input.text_elements ?? []).map(({ byteRange, placeholder }) => ({
        ...byteRange,
        ...(typeof placeholder === "string" ? { placeholder } : {}),
      }));
      return { type: "text", text: input.text, ...(spans.length === 0 ? {} : { spans }) };
    }
    case "image": {
      return dataImage(input.url ?? "") ?? { type: "unsupported", what: "an image that is not a data: URL" };
    }
    case "localImage":
      return { type: "localImage", path: input.path };
    case "skill":
      // Heddle's agents take up a skill when it is named so.
      return { type: "text", text: `$${input.name}`, chosen: input };
    case "mention":
      return { type: "text", text: `@${input.name} (${input.path})`, chosen: input };
    case "audio":
    case "localAudio":
      return { type: "unsupported", what: "audio" };
  }
}

/** Input as clients are shown it again. */
export function shownInput(part: InputPart): Readonly<Record<string, unknown>> {
  if (part.type === "image")
    return { type: "image", url: `data:${part.mediaType};base64,${part.base64}`, detail: null };
  if (part.chosen !== undefined) return part.chosen;
  const text_elements = (part.spans ?? []).map(({ start, end, placeholder }) => ({
    byteRange: { start, end },
    placeholder: placeholder ?? null,
  }));
  return { type: "text", text: part.text, text_elements };
}
