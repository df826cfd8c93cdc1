/** The built-in envelopes, made from a sandbox mode: what exists for the model, what it may touch, and when to ask. */
import { createHash } from "node:crypto";
import {
  canonical,
  never,
  type ApprovalPolicy,
  type Effect,
  type Envelope,
  type McpServerConfig,
  type SandboxMode,
} from "@heddle/protocol";
import { asCanonical, matchesName, serverPattern } from "./mcp/names.ts";

export interface EnvelopeOptions {
  readonly mode: SandboxMode;
  /** Absolute. */
  readonly workspace: string;
  /** Absolute folders that may be written besides the workspace; they mean nothing under `read-only`. */
  readonly writableRoots: readonly string[];
  readonly networkAccess: boolean;
  readonly approval: ApprovalPolicy;
  readonly masked: readonly string[];
  /** Servers whose tools exist here. */
  readonly mcpServers?: readonly McpServerConfig[];
}

const READING = [
  "exec_command",
  "write_stdin",
  "bash",
  "read",
  "list",
  "glob",
  "grep",
  "view_image",
  "update_plan",
  "skill",
];
const WRITING = ["apply_patch", "edit", "write"];

export function envelopeFor(options: EnvelopeOptions): Envelope {
  const envelope = envelopeOf(options);
  const servers = options.mcpServers ?? [];
  if (servers.length === 0) return envelope;
  // A server at an address, or with a network of its own, reaches out whatever commands may.
  const reachesOut = servers.some((server) => "url" in server || server.network === true);
  return {
    ...envelope,
    tools: [...envelope.tools, ...servers.map(({ name }) => serverPattern(name))],
    effects: reachesOut ? [...new Set<Effect>([...envelope.effects, "net"])] : envelope.effects,
  };
}

/** The same envelope with only these tools; a name of an MCP tool stands for itself, `…*` for all that begin so. */
export function narrowEnvelope(envelope: Envelope, allowed: readonly string[]): Envelope {
  const isHere = (name: string): boolean => envelope.tools.some((known) => matchesName(known, name));
  return { ...envelope, tools: [...new Set(allowed.map(asCanonical).filter(isHere))] };
}

function envelopeOf(options: EnvelopeOptions): Envelope {
  const { mode, workspace, writableRoots, networkAccess, approval } = options;
  const masked = [...options.masked];
  const network = networkAccess ? "all" : "none";
  switch (mode) {
    case "read-only":
      return {
        id: "explore",
        tools: [...READING],
        effects: networkAccess ? ["read", "exec", "net"] : ["read", "exec"],
        writeRoots: [],
        masked,
        network,
        sandbox: "required",
        approval,
      };
    case "workspace-write":
      return {
        id: "edit",
        tools: [...READING, ...WRITING],
        effects: networkAccess ? ["read", "write", "exec", "net"] : ["read", "write", "exec"],
        writeRoots: [...new Set([workspace, ...writableRoots])],
        masked,
        network,
        sandbox: "required",
        approval,
      };
    case "danger-full-access":
      return {
        id: "full",
        tools: [...READING, ...WRITING],
        effects: ["read", "write", "exec", "net"],
        writeRoots: ["/"],
        masked,
        network: "all",
        sandbox: "off",
        approval,
      };
    default:
      return never(mode);
  }
}

export function envelopeHash(envelope: Envelope): string {
  return createHash("sha256").update(canonical(envelope)).digest("hex");
}
