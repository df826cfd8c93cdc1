/** The body of a request: JSON and nothing else, of a size, a depth and a number of values that can be dealt with. */
import type { IncomingMessage } from "node:http";
import { breathe, LONG_CHARS } from "@heddle/journal";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { excessOf } from "../rpc/depth.ts";
import { LINES_TYPE } from "./answer.ts";

const MAX_BODY_BYTES = 8 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  requireJson(request.headers["content-type"]);
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  return whole(request);
}

async function whole(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of request) {
      if (!Buffer.isBuffer(part)) continue;
      size += part.length;
      if (size > MAX_BODY_BYTES) throw tooLarge();
      parts.push(part);
    }
  } catch (cause) {
    if (isHeddleError(cause)) throw cause;
    // The client went away in the middle of it, or took too long: nothing that is wrong inside.
    throw new HeddleError("usage.invalid", "the body is incomplete", { cause });
  }
  return Buffer.concat(parts, size);
}

/** A page can send any other type without asking first. */
function requireJson(type: string | undefined): void {
  if (/^application\/json\s*(;\s*charset=("?)utf-8\2\s*)?$/i.test(type ?? "")) return;
  throw new HeddleError("door.json-only", "the body must be JSON: content-type: application/json");
}

/** As of JSON: a page of another origin has to ask first. */
export function requireLines(type: string | undefined): void {
  if (type?.split(";")[0]?.trim().toLowerCase() === LINES_TYPE) return;
  throw new HeddleError("door.json-only", `the body must be JSON lines: content-type: ${LINES_TYPE}`);
}

/** What has no bound of its own is counted by whoever reads it. */
export async function* incoming(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const part of request) if (Buffer.isBuffer(part)) yield part;
  } catch (cause) {
    throw new HeddleError("usage.invalid", "the body is incomplete", { cause });
  }
}

function tooLarge(): HeddleError {
  return new HeddleError("door.too-large", `a body has at most ${MAX_BODY_BYTES} bytes`, {
    details: { maxBytes: MAX_BODY_BYTES },
  });
}

/** Other work runs between the steps of parsing a long body. */
export async function parseBody(bytes: Buffer): Promise<unknown> {
  const pause = async (): Promise<void> => (bytes.length > LONG_CHARS ? breathe() : undefined);
  await pause();
  const text = bytes.toString("utf8");
  if (text.trim() === "") return {};
  await pause();
  const excess = excessOf(text);
  if (excess !== undefined) throw new HeddleError("usage.invalid", `the body ${excess}`);
  await pause();
  try {
    return JSON.parse(text);
  } catch {
    throw new HeddleError("usage.invalid", "the body is not JSON");
  } finally {
    await pause();
  }
}
