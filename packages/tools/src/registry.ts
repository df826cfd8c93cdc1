/**
 * The one list of tools. What a model is offered follows its family, because models do better with names and shapes they
 * were trained on; the envelope decides which of them exist. Names here are the only ones a call can use.
 *
 *   openai      exec_command write_stdin apply_patch update_plan view_image
 *   anthropic   bash bash_input read edit write list glob grep update_plan view_image   (also: other)
 *   gemini      run_shell_command shell_input read_file replace write_file list_directory glob search_file_content …
 */
import type { Effect, Envelope } from "@heddle/protocol";
import { z } from "zod";
import { applyPatch } from "./builtin/apply-patch.ts";
import { bash } from "./builtin/bash.ts";
import { edit } from "./builtin/edit.ts";
import { execCommand } from "./builtin/exec-command.ts";
import { glob } from "./builtin/glob.ts";
import { grep } from "./builtin/grep.ts";
import { list } from "./builtin/list.ts";
import { read } from "./builtin/read.ts";
import { skillTool } from "./builtin/skill.ts";
import { updatePlan } from "./builtin/update-plan.ts";
import { viewImage } from "./builtin/view-image.ts";
import { write } from "./builtin/write.ts";
import { writeStdin } from "./builtin/write-stdin.ts";
import { matchesName } from "./mcp/names.ts";
import { toolsOf, type McpServers } from "./mcp/servers.ts";
import type { Tool } from "./tool.ts";

export type ToolFamily = "openai" | "anthropic" | "gemini" | "other";

export interface OfferedTool {
  /** As the model knows it. */
  readonly name: string;
  readonly description: string;
  readonly shape: "json" | "freeform";
  /** JSON Schema of the arguments, for `json`. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** What may be known about a tool without being able to run it. */
export interface ToolInfo {
  readonly name: string;
  readonly effects: readonly Effect[];
  readonly shape: "json" | "freeform";
}

export interface Toolset {
  readonly family: ToolFamily;
  readonly offered: readonly OfferedTool[];
  /** By the name the model uses; undefined when the family has no such tool. */
  resolve(name: string): ToolInfo | undefined;
}

const TOOLS: readonly Tool[] = [
  execCommand,
  writeStdin,
  applyPatch,
  updatePlan,
  viewImage,
  bash,
  read,
  edit,
  write,
  list,
  glob,
  grep,
];
const byName = new Map(TOOLS.map((tool) => [tool.name, tool]));

/** Name the model sees → canonical name. */
const GENERAL = {
  bash: "bash",
  bash_input: "write_stdin",
  read: "read",
  edit: "edit",
  write: "write",
  list: "list",
  glob: "glob",
  grep: "grep",
  update_plan: "update_plan",
  view_image: "view_image",
} as const;

const NAMES: Readonly<Record<ToolFamily, ReadonlyMap<string, string>>> = {
  openai: new Map(
    ["exec_command", "write_stdin", "apply_patch", "update_plan", "view_image"].map((name) => [name, name]),
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
      update_plan: "update_plan",
      view_image: "view_image",
    }),
  ),
};

/** Tools by the names of one toolset; kept apart from it, so that whoever holds a toolset cannot run one. */
const toolsets = new WeakMap<Toolset, ReadonlyMap<string, Tool>>();

export interface MoreTools {
  /** The tools its servers bring now; a list that changes later is another toolset. */
  readonly mcp?: McpServers | undefined;
  /** Where skills lie that the agent cannot see. */
  readonly skillFolder?: string | undefined;
}

export function toolsFor(family: ToolFamily, envelope: Envelope, { mcp, skillFolder }: MoreTools = {}): Toolset {
  const tools = new Map<string, Tool>();
  // Built-in tools first: they cannot be shadowed, and what a server changes does not move what a provider has cached.
  for (const [name, canonicalName] of NAMES[family]) {
    const tool = byName.get(canonicalName);
    if (tool !== undefined) tools.set(name, tool);
  }
  if (skillFolder !== undefined) tools.set("skill", skillTool(skillFolder));
  for (const { offeredAs, tool } of mcp === undefined ? [] : toolsOf(mcp)) {
    if (!tools.has(offeredAs)) tools.set(offeredAs, tool);
  }
  const toolset: Toolset = {
    family,
    offered: [...tools].flatMap(([name, tool]) => (isWithin(tool, envelope) ? [offer(name, tool)] : [])),
    resolve(name) {
      const tool = tools.get(name);
      return tool === undefined ? undefined : { name: tool.name, effects: tool.effects, shape: tool.shape };
    },
  };
  toolsets.set(toolset, tools);
  return toolset;
}

/** For dispatch alone: the tool behind a model's name. */
export function findTool(toolset: Toolset, name: string): Tool | undefined {
  return toolsets.get(toolset)?.get(name);
}

/** For dispatch alone: the tool by its canonical name. */
export function toolNamed(name: string): Tool | undefined {
  return byName.get(name);
}

/** The envelope names the tool, or all tools of its server. */
export function isNamed(tool: Pick<Tool, "name">, envelope: Envelope): boolean {
  return envelope.tools.some((pattern) => matchesName(pattern, tool.name));
}

export function isWithin(tool: Pick<Tool, "name" | "effects">, envelope: Envelope): boolean {
  return isNamed(tool, envelope) && tool.effects.every((effect) => envelope.effects.includes(effect));
}

const parameters = new Map<string, Readonly<Record<string, unknown>>>();

function offer(name: string, tool: Tool): OfferedTool {
  const { description, shape } = tool;
  if (shape === "freeform") return { name, description, shape };
  if (tool.parameters !== undefined) return { name, description, shape, parameters: tool.parameters };
  const known = parameters.get(tool.name) ?? compactSchema(z.toJSONSchema(tool.input, { io: "input" }));
  parameters.set(tool.name, known);
  return { name, description, shape, parameters: known };
}

/** Bounds are checked here anyway, cost tokens in every request, and some providers refuse schemas that have them. */
const LEFT_OUT = new Set(
  "$schema additionalProperties default exclusiveMaximum exclusiveMinimum maxItems maxLength maximum minLength minimum".split(
    " ",
  ),
);

function compactSchema(schema: object): Record<string, unknown> {
  const compact: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (LEFT_OUT.has(key)) continue;
    // Below `properties` the keys are the model's own fields, not words of the schema language.
    if (key === "properties" && isRecord(value)) {
      compact[key] = Object.fromEntries(
        Object.entries(value).map(([name, field]) => [name, isRecord(field) ? compactSchema(field) : field]),
      );
    } else compact[key] = isRecord(value) ? compactSchema(value) : value;
  }
  return compact;
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
