/** Parses one JSON-RPC message; undefined for any other text. */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { z } from "zod";
import { depthOfJson } from "../calls/decode.ts";

/** What a transport answers in place of a server that cannot. */
export const INTERNAL_ERROR = -32603;

/** Far deeper than any schema in use, so that one odd tool does not cost the list; far from any stack's end. */
const MAX_DEPTH = 1000;

const id = z.union([z.string(), z.number().int()]);
const params = z.record(z.string(), z.unknown()).optional();
const version = z.literal("2.0");

const Message = z.union([
  z.object({ jsonrpc: version, id, method: z.string(), params }),
  z.object({ jsonrpc: version, method: z.string(), params }),
  z.object({ jsonrpc: version, id, result: z.record(z.string(), z.unknown()) }),
  z.object({
    jsonrpc: version,
    id: id.optional(),
    error: z.object({ code: z.number().int(), message: z.string(), data: z.unknown().optional() }),
  }),
]);

export function readMessage(text: string): JSONRPCMessage | "tooDeep" | undefined {
  if (depthOfJson(text) > MAX_DEPTH) return "tooDeep";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Programs print banners and logs where only messages belong.
    return undefined;
  }
  const parsed = Message.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}
