/**
 * What a client of a server does outside any turn: a command of its own, a call of an MCP tool. Stored like the acts of
 * agents, before it happens, in the stream of the thread it belongs to, or in the stream `host`.
 */
import { z } from "zod";
import { Network } from "../envelopes/envelope.ts";
import { event, Failure } from "./event-parts.ts";

const actId = z.string();

const ClientAct = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("command"),
    /** Long arguments and long lists are cut. */
    argv: z.array(z.string()),
    cwd: z.string(),
    /** Names of variables that the client set; their values are its own. */
    envNames: z.array(z.string()),
    /** False: the client explicitly asked for full access. */
    isConfined: z.boolean(),
    network: Network,
  }),
  z.object({
    kind: z.literal("mcpTool"),
    server: z.string(),
    tool: z.string(),
    /** JSON, cut where it is long. */
    arguments: z.string(),
  }),
  z.object({
    kind: z.literal("input"),
    /** A command of the thread that ran. */
    processId: z.string(),
    command: z.string(),
    /** What was typed, cut where it is long; empty: nothing but the end of its input. */
    text: z.string(),
    isEnd: z.boolean(),
  }),
  z.object({ kind: z.literal("endProcess"), pid: z.int(), command: z.string() }),
]);
export type ClientAct = z.infer<typeof ClientAct>;

export const clientEvents = [
  /** Durable before the act. */
  event("client.intended", { actId, client: z.string(), act: ClientAct }),
  /** An act without it was running when the server ended: its outcome is not known. */
  event("client.settled", {
    actId,
    outcome: z.enum(["ok", "failed"]),
    exitCode: z.int().optional(),
    /** The beginning and the end of what it printed. */
    output: z.string().optional(),
    failure: Failure.optional(),
    durationMs: z.number(),
  }),
] as const;
