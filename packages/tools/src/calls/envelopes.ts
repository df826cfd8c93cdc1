/** The built-in envelopes, made from a sandbox mode: what exists for the model, what it may touch, and when to ask. */
import { createHash } from "node:crypto";
import {
  canonical,
  type ApprovalPolicy,
  type Effect,
  type Envelope,
  type HopWish,
  type McpServerConfig,
  type SandboxMode,
} from "@heddle/protocol";
import { isInside } from "./call-path.ts";
import { asCanonical, matchesName, serverPattern } from "../mcp/names.ts";

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
  /** Somebody watches the turns, and can be asked and told. */
  readonly isWatched?: boolean;
  /** Whoever follows the turn carries out tools of its own. */
  readonly hasClientTools?: boolean;
  /** A task is worked on, and the agent can report on it. */
  readonly isForTask?: boolean;
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
/** Offered where there is something to ask for and a user to ask. */
const ASKING = ["request_permissions"];
const ENVELOPE_IDS = { "read-only": "explore", "workspace-write": "edit", "danger-full-access": "full" } as const;

export function envelopeFor(options: EnvelopeOptions): Envelope {
  const envelope = withPeople(envelopeOf(options), options);
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

/** What exists because somebody is there to ask, to carry it out or to be told. */
function withPeople(envelope: Envelope, options: EnvelopeOptions): Envelope {
  const { isWatched = false, hasClientTools = false, isForTask = false } = options;
  const tools = [...envelope.tools];
  if (isWatched && envelope.approval !== "never") tools.push("request_user_input");
  if (isWatched) tools.push("update_goal");
  if (isForTask) tools.push("task_report");
  if (hasClientTools) tools.push("client.*");
  return {
    ...envelope,
    tools,
    effects: hasClientTools ? [...envelope.effects, "message"] : envelope.effects,
  };
}

/** The same envelope with only these tools; a name of an MCP tool stands for itself, `…*` for all that begin so. */
export function narrowEnvelope(envelope: Envelope, allowed: readonly string[]): Envelope {
  const isHere = (name: string): boolean => envelope.tools.some((known) => matchesName(known, name));
  return { ...envelope, tools: [...new Set(allowed.map(asCanonical).filter(isHere))] };
}

function envelopeOf({ mode, approval, ...options }: EnvelopeOptions): Envelope {
  const isFull = mode === "danger-full-access";
  const canAsk = approval !== "never";
  // Where a user can be asked, a change can be proposed; nothing is written without an answer.
  const canWrite = mode !== "read-only" || canAsk;
  const hasNetwork = isFull || options.networkAccess;
  const write: readonly Effect[] = canWrite ? ["write"] : [];
  const roots = isFull ? ["/"] : [...new Set([options.workspace, ...options.writableRoots])];
  return {
    id: ENVELOPE_IDS[mode],
    tools: [...READING, ...(canWrite ? WRITING : []), ...(canAsk && !isFull ? ASKING : [])],
    effects: ["read", ...write, "exec", ...(hasNetwork ? (["net"] as const) : [])],
    writeRoots: mode === "read-only" ? [] : roots,
    masked: [...options.masked],
    network: hasNetwork ? "all" : "none",
    sandbox: isFull ? "off" : "required",
    approval,
  };
}

/** Where a wish leads. The tools stay as they are: rights are added, not abilities. */
export function widenEnvelope(envelope: Envelope, wish: HopWish): Envelope {
  const everything: readonly Effect[] = ["read", "write", "exec", "net"];
  const withEffects = (more: readonly Effect[]): Effect[] => [...new Set([...envelope.effects, ...more])];
  if (wish.kind === "outside") {
    const effects = withEffects(everything);
    return { ...envelope, id: "full", effects, writeRoots: ["/"], network: "all", sandbox: "off" };
  }
  const { write, network } = wish.permissions;
  return {
    ...envelope,
    effects: withEffects([...(write.length === 0 ? [] : ["write" as const]), ...(network ? ["net" as const] : [])]),
    writeRoots: [...new Set([...envelope.writeRoots, ...write])],
    network: network ? "all" : envelope.network,
  };
}

/** What of an envelope is above a ceiling, in words; undefined: nothing. */
export function aboveCeiling(envelope: Envelope, ceiling: Envelope): string | undefined {
  if (envelope.sandbox === "off" && ceiling.sandbox !== "off") return "running outside the sandbox";
  if (envelope.network === "all" && ceiling.network !== "all") return "the network";
  const far = envelope.writeRoots.find((path) => !ceiling.writeRoots.some((root) => isInside(path, root)));
  return far === undefined ? undefined : `writing to ${far}`;
}

export function envelopeHash(envelope: Envelope): string {
  return createHash("sha256").update(canonical(envelope)).digest("hex");
}
