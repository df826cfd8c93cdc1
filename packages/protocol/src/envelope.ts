/**
 * An envelope is what a thread may do now. The resolved spec is hashed and stored with each turn,
 * so that a later reader judges a call by the rules that were in force, not by today's.
 */
import { z } from "zod";
import { SANDBOX_MODES } from "./sandbox-modes.ts";

export const SandboxMode = z.enum(SANDBOX_MODES);
export type SandboxMode = z.infer<typeof SandboxMode>;

export const Effect = z.enum(["read", "write", "exec", "net", "spawn", "message"]);
export type Effect = z.infer<typeof Effect>;

/** When a call that the envelope permits must still be put to somebody. */
export const ApprovalPolicy = z.enum(["never", "on-request", "untrusted"]);
export type ApprovalPolicy = z.infer<typeof ApprovalPolicy>;

/** What holds the wall. `none` means no kernel layer at all. */
export const SandboxLevel = z.enum(["namespaces", "bwrap", "seatbelt", "none"]);
export type SandboxLevel = z.infer<typeof SandboxLevel>;

/**
 * What the kernel holds a sandbox to. A cgroup and a pid namespace bind everything inside together, `rlimit` each command
 * (processes) or each process (memory). `nothing`: the host gives no means, or nobody asked for a limit.
 */
export const SandboxHolds = z.object({
  processes: z.object({ by: z.enum(["cgroup", "pid-namespace", "rlimit", "nothing"]), max: z.int().optional() }),
  memory: z.object({ by: z.enum(["cgroup", "rlimit", "nothing"]), maxBytes: z.int().optional() }),
  /** Whether a filter holds what commands may ask the kernel for; absent: nobody looked. */
  systemCalls: z.enum(["filtered", "open"]).optional(),
});
export type SandboxHolds = z.infer<typeof SandboxHolds>;

export const Envelope = z.strictObject({
  id: z.string(),
  /** Names of the tools that exist here; `mcp.<server>.*` is every tool of an MCP server. */
  tools: z.array(z.string()),
  /** Ceiling: a tool whose effects exceed it is refused. */
  effects: z.array(Effect),
  /** Absolute folders that may be written. Reading is everything but `masked`. */
  writeRoots: z.array(z.string()),
  /** Absolute paths that do not exist for the agent, for reading or writing. */
  masked: z.array(z.string()),
  network: z.enum(["none", "all"]),
  /** `required`: no kernel sandbox, no turn. `off` is typed by the owner and recorded. */
  sandbox: z.enum(["required", "off"]),
  approval: ApprovalPolicy,
});
export type Envelope = z.infer<typeof Envelope>;
