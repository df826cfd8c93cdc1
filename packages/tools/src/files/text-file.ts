/**
 * Text files for the in-process tools: read whole through the race-free walk, or refused with a message a model can act
 * on.
 */
import { createHash } from "node:crypto";
import { HeddleError, isHeddleError, type Envelope } from "@heddle/protocol";
import { readFileInside } from "./paths.ts";

/** Larger files are for the shell: a tool that holds them whole would hold them several times. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;

export interface TextFile {
  readonly text: string;
  /** Of the bytes on disk. */
  readonly hash: string;
}

export interface ReadContext {
  readonly envelope: Envelope;
  readonly signal: AbortSignal;
}

/** Undefined when there is no such file. */
export async function readTextFile(path: string, context: ReadContext): Promise<TextFile | undefined> {
  const bytes = await readBytes(path, context, MAX_FILE_BYTES);
  if (bytes === undefined) return undefined;
  if (bytes.includes(0)) throw notText(path, bytes.length);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, hash: createHash("sha256").update(bytes).digest("hex") };
  } catch (error) {
    throw notText(path, bytes.length, error);
  }
}

export async function readBytes(path: string, context: ReadContext, maxBytes: number): Promise<Buffer | undefined> {
  try {
    const { bytes, sizeBytes } = await readFileInside(path, context.envelope, { maxBytes, signal: context.signal });
    if (sizeBytes > bytes.length) {
      throw new HeddleError("tool.failed", `${path} has ${sizeBytes} bytes; the limit is ${maxBytes}`);
    }
    return bytes;
  } catch (error) {
    if (isHeddleError(error) && error.details["errno"] === "ENOENT") return undefined;
    throw error;
  }
}

function notText(path: string, sizeBytes: number, cause?: unknown): HeddleError {
  return new HeddleError("tool.failed", `${path} is not a UTF-8 text file (${sizeBytes} bytes, binary)`, { cause });
}
