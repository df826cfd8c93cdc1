/** What is on record of an agent program: the process of its program, its own name for the conversation, and the end. */
import { z } from "zod";
import { Network, SandboxLevel } from "../envelopes/envelope.ts";
import { Failure, Holder, turnEvent } from "./event-parts.ts";

/** How the agent came to what was said before. `retold`: a new conversation that was told it as text. */
export const HandleOrigin = z.enum(["new", "resumed", "forked", "retold"]);
export type HandleOrigin = z.infer<typeof HandleOrigin>;

/** `exited`: by itself. `left`: the process that ran it has died, and whoever closed the turn made sure that it is gone. */
export const AgentEnd = z.enum(["exited", "stopped", "killed", "left"]);
export type AgentEnd = z.infer<typeof AgentEnd>;

export const agentEvents = [
  /** Durable before its program is sent anything. */
  turnEvent("agent.started", {
    runner: z.string(),
    /** What was started; without values of variables. */
    command: z.array(z.string()),
    version: z.string().optional(),
    /** The outermost process that is only for it; later processes tell by it whether it still runs. */
    process: Holder,
    /** Its sandbox: that of the turn, and what it needs of its own. */
    sandboxLevel: SandboxLevel,
    network: Network,
    writeRoots: z.array(z.string()),
    /** Everything that was said on its wire, as a path in the home. Absent: a person has it in a terminal. */
    transcript: z.string().optional(),
  }),
  /** As soon as it is known. */
  turnEvent("agent.connected", {
    runner: z.string(),
    handle: z.string(),
    origin: HandleOrigin,
    /** What the program says it runs with. */
    model: z.string().optional(),
    /** For a person who takes the conversation over, in the same folder. */
    resumeCommand: z.array(z.string()).optional(),
  }),
  turnEvent("agent.ended", {
    runner: z.string(),
    pid: z.int(),
    end: AgentEnd,
    exitCode: z.int().optional(),
    signal: z.string().optional(),
    failure: Failure.optional(),
    /** Messages that Heddle does not know, by how often they came. */
    unknown: z.record(z.string(), z.int()).optional(),
  }),
] as const;

/** How a person continues a thread in its agent's own interface. */
export const Takeover = z.object({
  command: z.string().describe("To copy: stops what runs, holds the thread meanwhile, and records what happened"),
  program: z
    .array(z.string())
    .describe("What that starts, by its arguments; started by hand, Heddle knows nothing of it"),
  folder: z.string().describe("Where it must be started"),
  join: z.string().optional().describe("To copy: joins the turn that runs, which continues; absent: nobody can"),
});
export type Takeover = z.infer<typeof Takeover>;

/** What the program itself said of the end of a turn, and how far Heddle relies on it. */
export const NativeEnd = z.object({
  reason: z.string(),
  /** `likely`: the program calls every end so. `unsure`: nothing was done or said. */
  confidence: z.enum(["certain", "likely", "unsure"]),
});
export type NativeEnd = z.infer<typeof NativeEnd>;
