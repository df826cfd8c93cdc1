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

/** When a call that the envelope permits still needs an approval. */
export const ApprovalPolicy = z.enum(["never", "on-request", "untrusted"]);
export type ApprovalPolicy = z.infer<typeof ApprovalPolicy>;

/** The sandbox back-end. `none`: no kernel sandbox. */
export const SandboxLevel = z.enum(["namespaces", "bwrap", "seatbelt", "none"]);
export type SandboxLevel = z.infer<typeof SandboxLevel>;

/**
 * The limits that the kernel enforces. A cgroup and a pid namespace limit everything inside together, `rlimit` each command
 * (processes) or each process (memory). `nothing`: the host offers no way, or no limit was requested.
 */
export const SandboxHolds = z.object({
  processes: z.object({ by: z.enum(["cgroup", "pid-namespace", "rlimit", "nothing"]), max: z.int().optional() }),
  memory: z.object({ by: z.enum(["cgroup", "rlimit", "nothing"]), maxBytes: z.int().optional() }),
  /** Whether system calls are filtered; absent: not checked. */
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
