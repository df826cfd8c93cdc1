/** A client's input with its pictures read. */
import { constants, open } from "node:fs/promises";
import path from "node:path";
import { imageTypeOf, HeddleError, hostFaultOr, type InputPart } from "@heddle/protocol";
import { inputFrom, type UserInput } from "@heddle/dialects/codex-app-server";
import { RPC, RpcError } from "../rpc/peer.ts";

/** What the largest provider takes for one image. */
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;

export async function readInput(input: readonly UserInput[], workspace: string): Promise<readonly InputPart[]> {
  requireFitting(input);
  const parts = await Promise.all(input.map((part) => readPart(part, workspace)));
  if (parts.length === 0) throw new HeddleError("prompt.empty", "input must not be empty");
  return parts;
}

/** What the original takes, in characters; clients look for the figures. */
const MAX_CHARS = 1024 * 1024;

export function requireFitting(input: readonly UserInput[]): void {
  const actual_chars = input.reduce((sum, part) => sum + (part.type === "text" ? charsIn(part.text) : 0), 0);
  if (actual_chars <= MAX_CHARS) return;
  const message = `Input exceeds the maximum length of ${MAX_CHARS} characters.`;
  throw new RpcError(RPC.invalidParams, message, {
    input_error_code: "input_too_large",
    max_chars: MAX_CHARS,
    actual_chars,
  });
}

function charsIn(text: string): number {
  return text.length - (text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)?.length ?? 0);
}

async function readPart(input: UserInput, workspace: string): Promise<InputPart> {
  const part = inputFrom(input);
  if (part.type === "unsupported") throw new HeddleError("usage.invalid", `${part.what} is not supported as input`);
  return part.type === "localImage" ? readImage(path.resolve(workspace, part.path)) : part;
}

async function readImage(file: string): Promise<InputPart> {
  const bytes = await readCapped(file);
  const mediaType = imageTypeOf(bytes);
  if (mediaType === undefined) throw new HeddleError("usage.invalid", `${file} is not a PNG, JPEG, GIF or WebP image`);
  return { type: "image", mediaType, base64: bytes.toString("base64") };
}

async function readCapped(file: string): Promise<Buffer> {
  try {
    // A pipe without a writer must not block one of the few threads that open files.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    if (!found.isFile()) throw new HeddleError("usage.invalid", `${file} is not a file`);
    if (found.size > MAX_IMAGE_BYTES) throw new HeddleError("usage.invalid", `${file} is larger than 20 MiB`);
    return await handle.readFile();
  } catch (cause) {
    if (cause instanceof HeddleError) throw cause;
    throw new HeddleError(hostFaultOr(cause, "usage.invalid"), `${file} cannot be read`, { cause });
  }
}
