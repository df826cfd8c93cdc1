/** A prompt as Heddle's input: texts, images, files that are named, and files that came whole. */
import { HeddleError, type ClientContext, type InputPart } from "@heddle/protocol";
import type { ContentBlock } from "./params.ts";

export interface AcpInput {
  readonly input: readonly InputPart[];
  /** Of files that came whole: the model is told them before the input, once as long as they are the same. */
  readonly context: readonly ClientContext[];
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function inputFrom(prompt: readonly ContentBlock[]): AcpInput {
  const context = new Map<string, ClientContext>();
  const input = prompt.map((block): InputPart => {
    switch (block.type) {
      case "text":
        return { type: "text", text: block.text };
      case "image":
        return image(block.mimeType, block.data);
      case "audio":
        throw new HeddleError("usage.invalid", "audio is not supported as input");
      case "resource_link":
        return mention(block.name, block.uri);
      case "resource": {
        const { resource } = block;
        if ("blob" in resource) {
          const { mimeType, uri, blob } = resource;
          if (mimeType?.startsWith("image/") === true) return image(mimeType, blob);
          throw new HeddleError(
            "usage.invalid",
            `${uri} is neither text nor an image, so it cannot be part of a prompt`,
          );
        }
        const name = shownUri(resource.uri);
        context.set(name, { name, kind: "untrusted", text: resource.text });
        return mention(name.slice(name.lastIndexOf("/") + 1), resource.uri);
      }
    }
  });
  return { input: input.filter((part) => part.type !== "text" || part.text !== ""), context: [...context.values()] };
}

function image(mediaType: string, data: string): InputPart {
  const base64 = data.replaceAll(/\s/g, "");
  if (!/^image\/[a-z0-9.+-]+$/.test(mediaType) || !BASE64.test(base64)) {
    throw new HeddleError("usage.invalid", "an image is not valid base64 of a picture");
  }
  return { type: "image", mediaType, base64 };
}

function mention(name: string, uri: string): InputPart {
  const path = shownUri(uri);
  return { type: "text", text: `@${name} (${path})`, chosen: { type: "mention", name, path } };
}

/** A file by its path; anything else as it is. */
function shownUri(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  const path = uri.slice("file://".length).replace(/^localhost(?=\/)/, "");
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** A slash command: the first word of a prompt, if it is one. */
export interface SlashCommand {
  readonly name: string;
  readonly rest: string;
}

export function slashCommand(prompt: readonly ContentBlock[]): SlashCommand | undefined {
  const [first] = prompt;
  const found = first?.type === "text" ? /^\/([\w.:-]+)(?:\s+([\s\S]*))?$/.exec(first.text.trim()) : null;
  return found === null ? undefined : { name: found[1] ?? "", rest: found[2] ?? "" };
}

/** Heddle's agents take up a skill when it is named with a dollar sign. */
export function skillInput(prompt: readonly ContentBlock[], { name, rest }: SlashCommand, path: string): AcpInput {
  const { input, context } = inputFrom([{ type: "text", text: rest }, ...prompt.slice(1)]);
  return { input: [{ type: "text", text: `$${name}`, chosen: { type: "skill", name, path } }, ...input], context };
}
