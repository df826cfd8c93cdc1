/** From a spec to the envelope of a thread: names of folders become paths, and tools exist where what they need does. */
import { existsSync, lstatSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, normalize, resolve } from "node:path";
import {
  HeddleError,
  type ApprovalPolicy,
  type Effect,
  type Envelope,
  type McpServerConfig,
  type Network,
} from "@heddle/protocol";
import { attempt } from "../attempt.ts";
import { isInside } from "../calls/call-path.ts";
import { CHILD_TOOLS } from "../calls/child-threads.ts";
import { MESSAGE_TOOLS } from "../calls/messages.ts";
import { matchesName, serverPattern } from "../mcp/names.ts";
import { SETTINGS_ROOTS, SYSTEM_ROOTS, type EnvelopeSpec } from "./spec.ts";
import { systemFolders } from "./system-folders.ts";

/** What an envelope is resolved in: the workspace, the settings of the turn, and who is there. */
export interface Surroundings {
  /** Absolute. */
  readonly workspace: string;
  /** Absolute folders that may be written besides the workspace, where the envelope writes there. */
  readonly writableRoots: readonly string[];
  readonly networkAccess: boolean;
  /** The only hosts that commands reach; absent: all or none, by `networkAccess`. */
  readonly networkHosts?: readonly string[] | undefined;
  readonly approval: ApprovalPolicy;
  readonly masked: readonly string[];
  readonly mcpServers?: readonly McpServerConfig[];
  /** A client follows the turns and can answer questions. */
  readonly isWatched?: boolean;
  /** The client carries out tools of its own. */
  readonly hasClientTools?: boolean;
  /** The agent works on a task and can report on it. */
  readonly isForTask?: boolean;
  /** The thread may start child threads. */
  readonly mayStartThreads?: boolean;
  /** Agents may search the evidence and note in it. */
  readonly hasEvidence?: boolean;
  /** Agents may send messages to one another. */
  readonly hasMessages?: boolean;
  /** The envelope was chosen by name, and its ways out are the agent's to take. */
  readonly mayHop?: boolean;
  /** The provider may search the web: where commands have the network, or in any case. */
  readonly search?: "withNetwork" | "always" | undefined;
}

/** A tool that the provider runs. It reaches the network from there, whatever commands may. */
export const WEB_SEARCH = "web_search";
const CLIENT_TOOLS = "client.*";
/** Those that reach other agents. */
const SENDING = MESSAGE_TOOLS.filter((tool) => tool !== "list_agents");

export function resolveEnvelope(spec: EnvelopeSpec, given: Surroundings): Envelope {
  const approval = stricter(spec.approval, given.approval);
  const network = spec.network ?? networkOf(given);
  const asked = approval === "never" ? undefined : spec.whenAsked;
  const added = addedTools(spec, { ...given, approval }, network);
  const { exits, limits, outcome } = spec;
  const reading = spec.read === undefined ? undefined : readingOf(spec.read, given);
  return {
    id: spec.id,
    tools: [...spec.tools.filter((tool) => !isAdded(tool)), ...(asked?.tools ?? []), ...added.tools],
    effects: effectsOf([...spec.effects, ...(asked?.effects ?? [])], {
      network,
      more: spec.addsEffects === true ? added.effects : [],
    }),
    ...(reading === undefined ? {} : { readRoots: reading.roots }),
    writeRoots: rootsOf(spec.write, given),
    masked: [...new Set([...given.masked, ...rootsOf(spec.masked ?? [], given), ...(reading?.closed ?? [])])],
    network,
    sandbox: spec.sandbox,
    approval,
    ...(exits.length === 0 ? {} : { exits: [...exits] }),
    ...(limits === undefined ? {} : { limits }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(spec.manifest === true ? { manifest: true } : {}),
  };
}

function networkOf({ networkAccess, networkHosts }: Surroundings): Network {
  if (networkHosts !== undefined) return [...networkHosts];
  return networkAccess ? "all" : "none";
}

/** From the strictest on. */
export const APPROVAL_ORDER: readonly ApprovalPolicy[] = ["untrusted", "on-request", "never"];

function stricter(own: ApprovalPolicy | undefined, given: ApprovalPolicy): ApprovalPolicy {
  if (own === undefined) return given;
  return APPROVAL_ORDER.indexOf(own) < APPROVAL_ORDER.indexOf(given) ? own : given;
}

/** In one order, so that equal envelopes have equal hashes. */
const EFFECT_ORDER: readonly Effect[] = ["read", "write", "exec", "net", "spawn", "message"];

function effectsOf(
  base: readonly Effect[],
  { network, more }: { readonly network: Network; readonly more: readonly Effect[] },
): Effect[] {
  const hasNetwork = network !== "none" && base.includes("exec");
  const all = new Set<Effect>([...base, ...(hasNetwork ? (["net"] as const) : [])]);
  const first = EFFECT_ORDER.filter((effect) => all.has(effect));
  return [...new Set([...first, ...more])];
}

/** Tools that exist only with a client, a task, a provider or a server. */
function isAdded(tool: string): boolean {
  return [...Object.keys(NEEDS), WEB_SEARCH].includes(tool) || tool.startsWith("mcp.");
}

const NEEDS: Readonly<Record<string, (given: Surroundings, spec: EnvelopeSpec) => boolean>> = {
  hop: ({ mayHop }, { exits }) => mayHop === true && exits.some(({ by }) => by.includes("model")),
  request_user_input: ({ isWatched, approval }) => isWatched === true && approval !== "never",
  update_goal: ({ isWatched }) => isWatched === true,
  task_report: ({ isForTask }) => isForTask === true,
  evidence_search: ({ hasEvidence }) => hasEvidence === true,
  evidence_note: ({ hasEvidence }) => hasEvidence === true,
  ...Object.fromEntries(
    CHILD_TOOLS.map((tool) => [tool, ({ mayStartThreads }: Surroundings) => mayStartThreads === true]),
  ),
  ...Object.fromEntries(MESSAGE_TOOLS.map((tool) => [tool, ({ hasMessages }: Surroundings) => hasMessages === true])),
  [CLIENT_TOOLS]: ({ hasClientTools }) => hasClientTools === true,
};

function addedTools(
  spec: EnvelopeSpec,
  given: Surroundings,
  network: Network,
): { readonly tools: readonly string[]; readonly effects: readonly Effect[] } {
  const has = (tool: string): boolean => spec.tools.includes(tool);
  const people = Object.entries(NEEDS).flatMap(([tool, isThere]) => (has(tool) && isThere(given, spec) ? [tool] : []));
  const { search } = given;
  const searches = has(WEB_SEARCH) && (search === "always" || (search === "withNetwork" && network === "all"));
  const servers = (given.mcpServers ?? []).map((server) => ({ server, tools: serverTools(spec, server) }));
  // A remote server, or one with its own network, reaches the network whatever commands may.
  const reachesOut = servers.some(
    ({ server, tools }) => tools.length > 0 && ("url" in server || server.network === true),
  );
  return {
    tools: [...people, ...(searches ? [WEB_SEARCH] : []), ...servers.flatMap(({ tools }) => tools)],
    effects: [
      ...(CHILD_TOOLS.some((tool) => people.includes(tool)) ? (["spawn"] as const) : []),
      ...(people.includes(CLIENT_TOOLS) || SENDING.some((tool) => people.includes(tool)) ? (["message"] as const) : []),
      ...(searches || reachesOut ? (["net"] as const) : []),
    ],
  };
}

function serverTools(spec: EnvelopeSpec, { name }: McpServerConfig): readonly string[] {
  const all = serverPattern(name);
  if (spec.tools.some((tool) => tool.endsWith("*") && matchesName(tool, all))) return [all];
  return spec.tools.filter((tool) => matchesName(all, tool));
}

/** With where links lead, so that nobody follows one later. */
function readingOf(read: readonly string[], given: Surroundings): { roots: string[]; closed: readonly string[] } {
  const system = read.includes(SYSTEM_ROOTS) ? systemFolders() : { folders: [], closed: [] };
  const own = rootsOf(
    read.filter((root) => root !== SYSTEM_ROOTS),
    given,
  );
  const roots = [...new Set([...system.folders, ...own].flatMap((path) => [path, realOf(path)]))];
  const isOutermost = (path: string): boolean => !roots.some((root) => root !== path && isInside(path, root));
  return { roots: roots.filter(isOutermost), closed: system.closed };
}

function rootsOf(roots: readonly string[], given: Surroundings): string[] {
  const { workspace, writableRoots } = given;
  return [
    ...new Set(
      roots.flatMap((root) => {
        if (root === SETTINGS_ROOTS) return [...writableRoots];
        return root.endsWith("?") ? existing(root.slice(0, -1), workspace) : [rootOf(root, workspace)];
      }),
    ),
  ];
}

function rootOf(root: string, workspace: string): string {
  if (root === "~" || root.startsWith("~/")) return join(homedir(), root.slice(1));
  if (isAbsolute(root)) return normalize(root);
  const path = resolve(workspace, root);
  if (isInside(path, workspace) && isInside(realOf(path), realOf(workspace))) return path;
  const message = `the folder ${JSON.stringify(root)} of an envelope leads out of ${workspace}; write the whole path`;
  throw new HeddleError("workspace.moved", message, { details: { path } });
}

/** An agent can put a link where the folder is expected. */
function existing(root: string, workspace: string): string[] {
  const path = resolve(workspace, root);
  const isFolder = attempt(() => lstatSync(path).isDirectory()) === true;
  return isFolder && isInside(realOf(path), realOf(workspace)) ? [path] : [];
}

function realOf(path: string): string {
  return existsSync(path) ? (attempt(() => realpathSync.native(path)) ?? path) : path;
}
