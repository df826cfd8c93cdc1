/**
 * An envelope is what a thread may do now. The resolved spec is hashed and stored with each turn,
 * so that a later reader judges a call by the rules that were in force, not by today's.
 */
import { z } from "zod";
import { EvidenceQuery } from "../evidence/evidence-query.ts";
import { HOST_RULE_FORM, HOST_RULE_TEXT, hostRuleProblem } from "./hosts.ts";
import { SANDBOX_MODES } from "./sandbox-modes.ts";

export const SandboxMode = z.enum(SANDBOX_MODES);
export type SandboxMode = z.infer<typeof SandboxMode>;

export const Effect = z.enum(["read", "write", "exec", "net", "spawn", "message"]);
export type Effect = z.infer<typeof Effect>;

/** When a call that the envelope permits still needs an approval. */
export const ApprovalPolicy = z.enum(["never", "on-request", "untrusted"]);
export type ApprovalPolicy = z.infer<typeof ApprovalPolicy>;

/** The sandbox back-end. `none`: no kernel sandbox. */
export const SandboxLevel = z.enum(["namespaces", "bwrap", "seatbelt", "none"]);
export type SandboxLevel = z.infer<typeof SandboxLevel>;

/**
 * The limits that the kernel enforces. A cgroup and a pid namespace limit everything inside together, `rlimit` each command
 * (processes) or each process (memory, computing time). `nothing`: the host offers no way, or no limit was requested.
 */
export const SandboxHolds = z.object({
  processes: z.object({ by: z.enum(["cgroup", "pid-namespace", "rlimit", "nothing"]), max: z.int().optional() }),
  memory: z.object({ by: z.enum(["cgroup", "rlimit", "nothing"]), maxBytes: z.int().optional() }),
  /** Of each process; absent: no limit was requested. */
  cpu: z.object({ by: z.literal("rlimit"), maxSec: z.int() }).optional(),
  /** Whether system calls are filtered; absent: not checked. */
  systemCalls: z.enum(["filtered", "open"]).optional(),
});
export type SandboxHolds = z.infer<typeof SandboxHolds>;

/**
 * A host that commands may reach: an exact name, `*.` and a name for every name below it, or an IP address. `:port` after it,
 * or the ports of HTTP. An address of this machine or of a private network is reached only when it is listed itself.
 */
export const HostRule = z
  .string()
  .max(260)
  .regex(HOST_RULE_FORM, HOST_RULE_TEXT)
  .refine((rule) => hostRuleProblem(rule) === undefined, {
    error: ({ input }) => hostRuleProblem(String(input)) ?? "",
    when: ({ issues }) => issues.length === 0,
  });
export type HostRule = z.infer<typeof HostRule>;

export const Network = z.union([z.enum(["none", "all"]), z.array(HostRule).min(1).max(200)]);
export type Network = z.infer<typeof Network>;

/** What has to be true before an envelope is left by an edge. Heddle looks itself; what the agent says is no guard. */
export const PlainGuard = z.discriminatedUnion("kind", [
  /** Runs in the sandbox of the envelope that is left. */
  z.strictObject({
    kind: z.literal("command"),
    command: z.array(z.string()).min(1).max(100),
    exitCode: z.int().min(0).max(255).optional(),
    timeoutMs: z.int().min(1).max(600_000).optional(),
  }),
  z.strictObject({
    kind: z.literal("files"),
    exist: z.array(z.string()).max(100).optional(),
    absent: z.array(z.string()).max(100).optional(),
  }),
  /** At least `min` entries are found; `sinceEntered`: only those since the envelope was entered. */
  z.strictObject({
    kind: z.literal("evidence"),
    query: EvidenceQuery,
    min: z.int().min(1).max(1000).optional(),
    sinceEntered: z.boolean().optional(),
  }),
  /** The hop carries an outcome that has the shape `outcome` of the envelope. */
  z.strictObject({ kind: z.literal("outcome") }),
]);
export type PlainGuard = z.infer<typeof PlainGuard>;

/** More would be a program. */
const MAX_GUARDS = 16;

export const GateName = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, "must be a short name in lower case");

/** A named sequence of guards, as it was declared; its hash is that of its canonical JSON. */
export const Gate = z.strictObject({ name: GateName, guards: z.array(PlainGuard).min(1).max(MAX_GUARDS) });
export type Gate = z.infer<typeof Gate>;

/** By its name in a file; with its guards in an envelope that a thread is in, so that its hash holds them too. */
const GateGuard = z.strictObject({ kind: z.literal("gate"), name: GateName, guards: Gate.shape.guards.optional() });

export const HopGuard = z.discriminatedUnion("kind", [...PlainGuard.options, GateGuard]);
export type HopGuard = z.infer<typeof HopGuard>;

/** Who asks for a hop: the channel it came by, never what the request says. */
export const HopChannel = z.enum(["model", "user", "task"]);
export type HopChannel = z.infer<typeof HopChannel>;

/** A way from one envelope to another. */
export const HopEdge = z.strictObject({
  to: z.string(),
  by: z.array(HopChannel).min(1),
  /** `ask`: a user is asked first. */
  approval: z.enum(["auto", "ask"]),
  guards: z.array(HopGuard).max(MAX_GUARDS).optional(),
  /** JSON Schema of what the hop may carry into the next envelope; absent: nothing. */
  carry: z.record(z.string(), z.unknown()).optional(),
});
export type HopEdge = z.infer<typeof HopEdge>;

/** From entering to leaving. `hopsPerTurn` counts hops of the model. */
export const EnvelopeLimits = z.strictObject({
  calls: z.int().min(1).optional(),
  bytesWritten: z.int().min(0).optional(),
  wallMs: z.int().min(1).optional(),
  childThreads: z.int().min(0).optional(),
  hopsPerTurn: z.int().min(0).optional(),
  /** Of the kernel, for all processes together. */
  processes: z.int().min(1).optional(),
  memoryBytes: z.int().min(1).optional(),
  /** Of the kernel, for each process: seconds of computing time. */
  cpuSec: z.int().min(1).optional(),
});
export type EnvelopeLimits = z.infer<typeof EnvelopeLimits>;

/** Optional keys are absent in older events: everything may be read, no hop by name, no limits of its own. */
export const Envelope = z.strictObject({
  id: z.string(),
  /** Names of the tools that exist here; `mcp.<server>.*` is every tool of an MCP server. */
  tools: z.array(z.string()),
  /** Ceiling: a tool whose effects exceed it is refused. */
  effects: z.array(Effect),
  /** Absolute paths that may be read, besides what may be written, with where their links lead; absent: everything but `masked`. */
  readRoots: z.array(z.string()).optional(),
  /** Absolute folders that may be written. */
  writeRoots: z.array(z.string()),
  /** Absolute paths that do not exist for the agent, for reading or writing. */
  masked: z.array(z.string()),
  network: Network,
  /** `required`: no kernel sandbox, no turn. `off` is typed by the owner and recorded. */
  sandbox: z.enum(["required", "off"]),
  approval: ApprovalPolicy,
  exits: z.array(HopEdge).optional(),
  limits: EnvelopeLimits.optional(),
  /** JSON Schema of what the envelope is left with when its work is done. */
  outcome: z.record(z.string(), z.unknown()).optional(),
  /** The files of the write roots are listed with their hashes when it is entered and left. */
  manifest: z.literal(true).optional(),
});
export type Envelope = z.infer<typeof Envelope>;
