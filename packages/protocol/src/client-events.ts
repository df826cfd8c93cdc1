/**
 * What a client of a server does by itself, outside any turn: a command of its own, a call of an MCP tool. Stored like the
 * acts of agents, that it is about to happen before it does, in the stream of the thread it belongs to, or in the stream `host`.
 */
import { z } from "zod";
import { Failure } from "./event-parts.ts";

const v1 = z.literal(1);
const actId = z.string();

const ClientAct = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("command"),
    /** Long words are cut, and long lists. */
    argv: z.array(z.string()),
    cwd: z.string(),
    /** Names of variables that the client set; their values are its own. */
    envNames: z.array(z.string()),
    /** False: the client asked for full access in so many words. */
    isConfined: z.boolean(),
    network: z.enum(["none", "all"]),
  }),
  z.object({
    kind: z.literal("mcpTool"),
    server: z.string(),
    tool: z.string(),
    /** JSON, cut where it is long. */
    arguments: z.string(),
  }),
]);
export type ClientAct = z.infer<typeof ClientAct>;

export const clientEvents = [
  /** Durable before the act. */
  z.object({ type: z.literal("client.intended"), v: v1, actId, client: z.string(), act: ClientAct }),
  /** An act without it was under way when the server ended: what came of it is not known. */
  z.object({
    type: z.literal("client.settled"),
    v: v1,
    actId,
    outcome: z.enum(["ok", "failed"]),
    exitCode: z.int().optional(),
    /** The beginning and the end of what it said. */
    output: z.string().optional(),
    failure: Failure.optional(),
    durationMs: z.number(),
  }),
] as const;
