/**
 * A server's answer for the model and the record. Text keeps its beginning and its end, images stay images, everything
 * else becomes text; all of it is bounded like the output of a command.
 */
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { InputPart } from "@heddle/protocol";
import { fitText } from "../calls/fit-text.ts";
import { isWithinDepth } from "./depth.ts";

/** Like the output of a command: one answer must not push the task out of the context. */
const MAX_TEXT_BYTES = 32 * 1024;
/** For programs; models get the text, and the structure only when there is no text. */
const MAX_STRUCTURED_BYTES = 64 * 1024;
const MAX_DEPTH = 64;
/** What providers take at most, in base64. */
const MAX_IMAGE_CHARS = 5 * 1024 * 1024;
const MAX_IMAGES = 8;
/** Larger images go to the model and are only described in the item, which every client receives. */
const MAX_SHOWN_IMAGE_CHARS = 256 * 1024;
const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export interface ShapedResult {
  readonly isError: boolean;
  readonly output: readonly InputPart[];
  readonly result: { readonly content: unknown[]; readonly structuredContent?: unknown };
}

export function shapeResult(answer: CallToolResult): ShapedResult {
  const output: InputPart[] = [];
  const content: unknown[] = [];
  let room = MAX_TEXT_BYTES;
  let images = 0;
  const say = (text: string): string => {
    const fitted = fitText(text, Math.max(room, 0));
    room -= Buffer.byteLength(fitted);
    output.push({ type: "text", text: fitted });
    return fitted;
  };
  for (const block of answer.content) {
    if (block.type === "image" && isUsableImage(block) && images < MAX_IMAGES) {
      images += 1;
      output.push({ type: "image", mediaType: block.mimeType, base64: block.data });
      content.push(shownImage(block));
    } else if (room > 0) {
      const text = say(asText(block));
      content.push({ type: "text", text });
    }
  }
  const hasStructure = answer.structuredContent !== undefined && isWithinDepth(answer.structuredContent, MAX_DEPTH);
  const structured = hasStructure ? JSON.stringify(answer.structuredContent) : undefined;
  const isKept = structured !== undefined && Buffer.byteLength(structured) <= MAX_STRUCTURED_BYTES;
  if (structured !== undefined && !output.some(({ type }) => type === "text") && room > 0) say(structured);
  if (output.length === 0) say("(the tool answered with nothing)");
  return {
    isError: answer.isError === true,
    output,
    result: { content, ...(isKept ? { structuredContent: answer.structuredContent } : {}) },
  };
}

type ImageBlock = Extract<ContentBlock, { type: "image" }>;

function isUsableImage({ mimeType, data }: ImageBlock): boolean {
  return IMAGE_TYPES.has(mimeType) && data.length <= MAX_IMAGE_CHARS && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
}

function shownImage({ mimeType, data }: ImageBlock): unknown {
  if (data.length <= MAX_SHOWN_IMAGE_CHARS) return { type: "image", mimeType, data };
  return { type: "text", text: `[${mimeType}, ${data.length} base64 characters]` };
}

function asText(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} ${block.mimeType}, ${block.data.length} base64 characters, cannot be shown]`;
    case "resource_link":
      return `[resource ${block.uri}${block.title === undefined ? "" : `: ${block.title}`}]`;
    case "resource":
      return "text" in block.resource
        ? `[resource ${block.resource.uri}]\n${block.resource.text}`
        : `[resource ${block.resource.uri}, ${block.resource.blob.length} base64 characters, cannot be shown]`;
    default:
      // A later revision may add blocks.
      return "[content of an unknown kind]";
  }
}
