/** The built-in envelopes, made from a sandbox mode: what exists for the model, what it may touch, and when to ask. */
import { createHash } from "node:crypto";
import {
  canonical,
  type ApprovalPolicy,
  type Effect,
  type Envelope,
  type HopRequest,
  type McpServerConfig,
  type SandboxMode,
} from "@heddle/protocol";
import { isInside } from "./call-path.ts";
import { asCanonical, matchesName, serverPattern } from "../mcp/names.ts";

export interface EnvelopeOptions {
  readonly mode: SandboxMode;
  /** Absolute. */
  readonly workspace: string;
  /** Absolute folders that may be written besides the workspace; ignored under `read-only`. */
  readonly writableRoots: readonly string[];
  readonly networkAccess: boolean;
  readonly approval: ApprovalPolicy;
  readonly masked: readonly string[];
  readonly mcpServers?: readonly McpServerConfig[];
  /** A client follows the turns and can answer questions. */
  readonly isWatched?: boolean;
  /** The client carries out tools of its own. */
  readonly hasClientTools?: boolean;
  /** The agent works on a task and can report on it. */
  readonly isForTask?: boolean;
  /** The provider may search the web: where commands have the network, or in any case. */
  readonly search?: "withNetwork" | "always" | undefined;
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
  const envelope = withSearch(withPeople(envelopeOf(options), options), options);
  const servers = options.mcpServers ?? [];
  if (servers.length === 0) return envelope;
  // A remote server, or one with its own network, reaches the network whatever commands may.
  const reachesOut = servers.some((server) => "url" in server || server.network === true);
  return {
    ...envelope,
    tools: [...envelope.tools, ...servers.map(({ name }) => serverPattern(name))],
    effects: reachesOut ? [...new Set<Effect>([...envelope.effects, "net"])] : envelope.effects,
  };
}

/** A tool that the provider runs. It reaches the network from there, whatever commands may. */
export const WEB_SEARCH = "web_search";

function withSearch(envelope: Envelope, { search }: EnvelopeOptions): Envelope {
  if (search === undefined || (search === "withNetwork" && envelope.network === "none")) return envelope;
  return {
    ...envelope,
    tools: [...envelope.tools, WEB_SEARCH],
    effects: [...new Set<Effect>([...envelope.effects, "net"])],
  };
}

/** Adds the tools that need a client or a task. */
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

/** The same envelope with only these tools; `…*` stands for all names with that prefix. */
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

/** The envelope with a hop applied. Permissions are added, tools are not. */
export function widenEnvelope(envelope: Envelope, request: HopRequest): Envelope {
  const everything: readonly Effect[] = ["read", "write", "exec", "net"];
  const withEffects = (more: readonly Effect[]): Effect[] => [...new Set([...envelope.effects, ...more])];
  if (request.kind === "outside") {
    const effects = withEffects(everything);
    return { ...envelope, id: "full", effects, writeRoots: ["/"], network: "all", sandbox: "off" };
  }
  const { write, network } = request.permissions;
  return {
    ...envelope,
    effects: withEffects([...(write.length === 0 ? [] : ["write" as const]), ...(network ? ["net" as const] : [])]),
    writeRoots: [...new Set([...envelope.writeRoots, ...write])],
    network: network ? "all" : envelope.network,
  };
}

/** What of an envelope exceeds a ceiling, as text; undefined: nothing. */
export function aboveCeiling(envelope: Envelope, ceiling: Envelope): string | undefined {
  if (envelope.sandbox === "off" && ceiling.sandbox !== "off") return "running outside the sandbox";
  if (envelope.network === "all" && ceiling.network !== "all") return "the network";
  const far = envelope.writeRoots.find((path) => !ceiling.writeRoots.some((root) => isInside(path, root)));
  return far === undefined ? undefined : `writing to ${far}`;
}

export function envelopeHash(envelope: Envelope): string {
  return createHash("sha256").update(canonical(envelope)).digest("hex");
}
