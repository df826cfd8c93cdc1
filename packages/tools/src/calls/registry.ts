/**
 * The one list of tools. What a model is offered follows its family, because models do better with names and shapes they
 * were trained on; the envelope decides which of them exist. Names here are the only ones a call can use.
 *
 *   openai      exec_command write_stdin apply_patch update_plan view_image          (all: request_permissions)
 *   anthropic   bash bash_input read edit write list glob grep update_plan view_image   (also: other)
 *   gemini      run_shell_command shell_input read_file replace write_file list_directory glob search_file_content …
 */
import type { Effect, Envelope } from "@heddle/protocol";
import {
  loadAskTool,
  loadClientTool,
  loadGoalTool,
  loadNoteTool,
  loadHopTool,
  loadReportTool,
  loadSearchTool,
  loadSkillTool,
  loadTool,
  loadTools,
} from "../builtin/load.ts";
import offers from "../builtin/offers.json" with { type: "json" };
import type { ChildToolset } from "./child-threads.ts";
import type { MessageToolEntry } from "./messages.ts";
import { clientToolName, offeredClientName, type ClientTools } from "./client-tools.ts";
import { matchesName } from "../mcp/names.ts";
import { toolsOf, type McpServers } from "../mcp/named-tools.ts";
import { withSandboxRequests } from "../commands/shell-request.ts";
import type { EnvelopeHops, EvidencePort, GoalEnd, Tool } from "./tool.ts";

export type ToolFamily = "openai" | "anthropic" | "gemini" | "other";

export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly shape: "json" | "freeform";
  /** JSON Schema, for `json`. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

type ToolInfo = Pick<Tool, "name" | "effects" | "shape">;

export interface Toolset {
  readonly family: ToolFamily;
  readonly offered: readonly OfferedTool[];
  /** By the name the model uses; undefined when the family has no such tool. */
  resolve(name: string): ToolInfo | undefined;
}

/**
 * Descriptions of the built-in tools, by canonical name. Generated from them by `npm run offers` and checked to be up
 * to date, because tools and their schemas are loaded only by a call.
 */
const OFFERS: ReadonlyMap<string, Offer> = new Map(Object.entries(offers as Record<string, Offer>));

export interface Offer extends Omit<OfferedTool, "name"> {
  readonly effects: readonly Effect[];
}

/** Name the model sees → canonical name. */
const COMMON = {
  update_plan: "update_plan",
  view_image: "view_image",
  request_permissions: "request_permissions",
} as const;
const GENERAL = {
  bash: "bash",
  bash_input: "write_stdin",
  read: "read",
  edit: "edit",
  write: "write",
  list: "list",
  glob: "glob",
  grep: "grep",
  ...COMMON,
} as const;

const NAMES: Readonly<Record<ToolFamily, ReadonlyMap<string, string>>> = {
  openai: new Map(
    Object.entries({ exec_command: "exec_command", write_stdin: "write_stdin", apply_patch: "apply_patch", ...COMMON }),
  ),
  anthropic: new Map(Object.entries(GENERAL)),
  other: new Map(Object.entries(GENERAL)),
  gemini: new Map(
    Object.entries({
      run_shell_command: "bash",
      shell_input: "write_stdin",
      read_file: "read",
      replace: "edit",
      write_file: "write",
      list_directory: "list",
      glob: "glob",
      search_file_content: "grep",
      ...COMMON,
    }),
  ),
};

const ASK_USER = "request_user_input";
const GOAL = "update_goal";
const REPORT = "task_report";
const SEARCH = "evidence_search";
const NOTE = "evidence_note";
/** Changes the envelope for the calls after it, so it runs alone. */
export const HOP = "hop";

/** No other tool can have the name of a built-in one. */
export function isBuiltInName(name: string): boolean {
  const others = [ASK_USER, GOAL, REPORT, SEARCH, NOTE, HOP];
  return others.includes(name) || Object.values(NAMES).some((names) => names.has(name));
}

/** Kept apart from the toolset, so that holding one is not enough to run a tool. */
const toolsets = new WeakMap<Toolset, ReadonlyMap<string, Entry>>();

/** A tool that is loaded when it is called. */
interface Entry extends ToolInfo {
  readonly offer: OfferedTool;
  load(): Promise<Tool | undefined>;
}

export interface MoreTools {
  /** Its tools as of now; when the list changes, a new toolset is made. */
  readonly mcp?: McpServers | undefined;
  /** Skills in Heddle's home, which the agent cannot read otherwise. */
  readonly skillFolder?: string | undefined;
  readonly mayAskUser?: boolean;
  /** The thread has a goal; called when the agent ends it. */
  readonly goal?: GoalEnd | undefined;
  /** For the tools of the evidence, where the envelope names them. */
  readonly evidence?: EvidencePort | undefined;
  /** The thread can change its envelope; the tool exists where the envelope names it. */
  readonly hops?: EnvelopeHops | undefined;
  readonly client?: ClientTools | undefined;
  /** The thread may start others; which tools for that exist is decided by the envelope. */
  readonly children?: ChildToolset | undefined;
  /** For messages to other agents; which of them exist is decided by the envelope. */
  readonly messages?: readonly MessageToolEntry[] | undefined;
  /** False: the model would refuse a picture, and every later request with it. */
  readonly readsImages?: boolean | undefined;
}

const VIEW_IMAGE = "view_image";

export function toolsFor(family: ToolFamily, envelope: Envelope, more: MoreTools = {}): Toolset {
  const { mcp, skillFolder, mayAskUser = false, goal, evidence, hops, client, children, messages = [] } = more;
  const { readsImages = true } = more;
  const entries = new Map<string, Entry>();
  const add = (canonicalName: string, load: Entry["load"], name = canonicalName): void =>
    void entries.set(name, builtIn(name, canonicalName, load));
  // Built-in tools first: they cannot be shadowed, and the prefix that a provider has cached stays the same.
  for (const [name, canonicalName] of NAMES[family]) {
    if (canonicalName === VIEW_IMAGE && !readsImages) continue;
    add(canonicalName, () => loadTool(canonicalName), name);
  }
  if (skillFolder !== undefined) add("skill", () => loadSkillTool(skillFolder));
  if (mayAskUser) add(ASK_USER, loadAskTool);
  if (goal !== undefined) add(GOAL, () => loadGoalTool(goal));
  if (envelope.tools.includes(REPORT)) add(REPORT, loadReportTool);
  if (evidence !== undefined && envelope.tools.includes(SEARCH)) add(SEARCH, () => loadSearchTool(evidence));
  if (evidence !== undefined && envelope.tools.includes(NOTE)) add(NOTE, () => loadNoteTool(evidence));
  if (hops !== undefined && isNamed({ name: HOP }, envelope)) add(HOP, () => loadHopTool(hops));
  if (children !== undefined && envelope.effects.includes("spawn")) {
    for (const child of children(family)) entries.set(child.offeredAs, entryOf(child));
  }
  for (const message of messages) {
    if (envelope.tools.includes(message.name)) entries.set(message.offeredAs, entryOf(message));
  }
  for (const [name, entry] of client === undefined ? [] : fromClient(client)) {
    if (!entries.has(name)) entries.set(name, entry);
  }
  for (const { offeredAs, tool } of mcp === undefined ? [] : toolsOf(mcp)) {
    if (!entries.has(offeredAs)) entries.set(offeredAs, fromServer(offeredAs, tool));
  }
  for (const entry of entries.values()) requireEffects(entry);
  const toolset: Toolset = {
    family,
    offered: [...entries.values()].flatMap((entry) => (isWithin(entry, envelope) ? [offerOf(entry, envelope)] : [])),
    resolve(name) {
      const entry = entries.get(name);
      // Without `load`: only dispatch can run a tool.
      return entry && { name: entry.name, effects: entry.effects, shape: entry.shape };
    },
  };
  toolsets.set(toolset, entries);
  return toolset;
}

/** At run time too: a tool whose effects nobody declared would be within every envelope. */
export function requireEffects({ name, effects }: { readonly name: string; readonly effects?: unknown }): void {
  if (!Array.isArray(effects)) throw new TypeError(`the tool ${name} declares no effects`);
}

const SHELLS: ReadonlySet<string> = new Set(["exec_command", "bash"]);

/** A command can leave its sandbox where it has one and a user can be asked. */
function offerOf({ name, offer }: Entry, envelope: Envelope): OfferedTool {
  const { approval, sandbox } = envelope;
  if (name === HOP) return { ...offer, description: `${offer.description} ${exitsText(envelope)}` };
  return SHELLS.has(name) && approval !== "never" && sandbox === "required" ? withSandboxRequests(offer) : offer;
}

function exitsText({ id, exits = [] }: Envelope): string {
  const ways = exits.flatMap(({ to, by, approval, guards = [], carry }) => {
    if (!by.includes("model")) return [];
    const notes = [
      ...(approval === "ask" ? ["the user is asked"] : []),
      ...(guards.length === 0 ? [] : [`checked: ${guards.map(({ kind }) => kind).join(", ")}`]),
      ...(carry === undefined ? [] : [`carry: ${JSON.stringify(carry)}`]),
    ];
    return [notes.length === 0 ? to : `${to} (${notes.join("; ")})`];
  });
  return `Now in ${id}; ways out: ${ways.join(", ") || "none but back"}.`;
}

function builtIn(name: string, canonicalName: string, load: Entry["load"]): Entry {
  const offer = OFFERS.get(canonicalName);
  if (offer === undefined) throw new TypeError(`builtin/offers.json does not know ${canonicalName}`);
  return entryOf({ name: canonicalName, offeredAs: name, offer, load });
}

interface Described extends Pick<Entry, "name" | "load"> {
  readonly offeredAs: string;
  readonly offer: Offer;
}

function entryOf({ name, offeredAs, offer: { effects, ...told }, load }: Described): Entry {
  return { name, effects, shape: told.shape, offer: { name: offeredAs, ...told }, load };
}

function fromServer(name: string, tool: Tool): Entry {
  const { description, shape, effects, parameters } = tool;
  const offer: OfferedTool = { name, description, shape, ...(parameters === undefined ? {} : { parameters }) };
  return { name: tool.name, effects, shape, offer, load: () => Promise.resolve(tool) };
}

function fromClient(client: ClientTools): readonly (readonly [string, Entry])[] {
  return client.tools.map((definition) => {
    const { description, parameters } = definition;
    const name = offeredClientName(definition);
    const load = (): Promise<Tool> => loadClientTool(definition, client);
    const offer: OfferedTool = { name, description, shape: "json", parameters };
    return [name, { name: clientToolName(definition), effects: ["message"], shape: "json", offer, load }] as const;
  });
}

/** Loads the built-in tools ahead of the first call, in idle time. */
export async function warmTools(): Promise<void> {
  await loadTools();
}

/** For dispatch only. */
export async function findTool(toolset: Toolset, name: string): Promise<Tool | undefined> {
  return toolsets.get(toolset)?.get(name)?.load();
}

/** For dispatch only: by canonical name. */
export { loadTool as toolNamed } from "../builtin/load.ts";

/** The envelope names the tool, or all tools of its server. */
export function isNamed(tool: Pick<Tool, "name">, envelope: Envelope): boolean {
  return envelope.tools.some((pattern) => matchesName(pattern, tool.name));
}

export function isWithin(tool: Pick<Tool, "name" | "effects">, envelope: Envelope): boolean {
  return isNamed(tool, envelope) && tool.effects.every((effect) => envelope.effects.includes(effect));
}
