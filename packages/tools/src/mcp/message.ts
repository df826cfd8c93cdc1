/** One JSON-RPC message from its text; undefined for everything that is none, whatever it is. */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { z } from "zod";
import { depthOfJson } from "../decode.ts";

/** Of JSON-RPC; what a transport answers in the place of a server that cannot. */
export const INTERNAL_ERROR = -32603;

/** Deeper than any schema in use, and far from what a parser of results could stumble over. */
const MAX_DEPTH = 200;

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

export function readMessage(text: string): JSONRPCMessage | undefined {
  if (depthOfJson(text) > MAX_DEPTH) return undefined;
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
