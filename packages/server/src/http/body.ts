/** The body of a request: JSON and nothing else, of a size and depth that can be dealt with. */
import type { IncomingMessage } from "node:http";
import { HeddleError } from "@heddle/protocol";

const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Deeper than any input of Heddle; what walks it later walks by calling itself. */
const MAX_DEPTH = 64;

export async function readBody(request: IncomingMessage): Promise<unknown> {
  requireJson(request.headers["content-type"]);
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    if (!Buffer.isBuffer(part)) continue;
    size += part.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    parts.push(part);
  }
  return parse(Buffer.concat(parts, size).toString("utf8"));
}

/** A page can send any other type without asking first. */
function requireJson(type: string | undefined): void {
  if (/^application\/json\s*(;\s*charset=("?)utf-8\2\s*)?$/i.test(type ?? "")) return;
  throw new HeddleError("door.json-only", "the body must be JSON: content-type: application/json");
}

function tooLarge(): HeddleError {
  return new HeddleError("door.too-large", `a body has at most ${MAX_BODY_BYTES} bytes`, {
    details: { maxBytes: MAX_BODY_BYTES },
  });
}

function parse(text: string): unknown {
  if (text.trim() === "") return {};
  if (depthOf(text) > MAX_DEPTH) {
    throw new HeddleError("usage.invalid", `the body is nested deeper than ${MAX_DEPTH} levels`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new HeddleError("usage.invalid", "the body is not JSON");
  }
}

/** Brackets outside of strings; of text that is not JSON the answer does not matter. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (isInString) {
      if (char === 0x5c) at += 1;
      else if (char === 0x22) isInString = false;
    } else if (char === 0x22) isInString = true;
    else if (char === 0x7b || char === 0x5b) deepest = Math.max(deepest, (depth += 1));
    else if (char === 0x7d || char === 0x5d) depth -= 1;
  }
  return deepest;
}
