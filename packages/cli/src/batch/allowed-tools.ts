/** The names of `--allow-tool`, as models know the tools or as Heddle does, into Heddle's own. An unknown name is refused. */
import type { ModelFamily } from "@heddle/models";
import { envelopeFor, toolsFor } from "@heddle/tools";
import { usage } from "../args.ts";
import { didYouMean } from "../suggest.ts";

export interface KnownTools {
  readonly family: ModelFamily;
  /** Names of the configured MCP servers; their tools are known only once they run. */
  readonly servers: readonly string[];
}

export function allowedTools(names: readonly string[], known: KnownTools): readonly string[] {
  const tools = builtInTools(known.family);
  return names.map((name) => {
    const own = tools.get(name) ?? [...tools.values()].find((canonical) => canonical === name);
    if (own !== undefined) return own;
    if (isOfServer(name, known.servers)) return name;
    const choices = [...tools.keys(), ...known.servers.map((server) => `mcp.${server}.*`)];
    const hint = didYouMean(name, choices) || `; there are ${choices.join(", ")}`;
    throw usage(`--allow-tool "${name}": the model is offered no such tool${hint}`);
  });
}

/** Name a family of models uses → Heddle's own. */
export function builtInTools(family: ModelFamily): ReadonlyMap<string, string> {
  const everything = envelopeFor({
    mode: "danger-full-access",
    workspace: "/",
    writableRoots: [],
    networkAccess: true,
    approval: "never",
    masked: [],
  });
  const toolset = toolsFor(family, everything);
  return new Map(toolset.offered.map(({ name }) => [name, toolset.resolve(name)?.name ?? name]));
}

/** `mcp.<server>.<tool or *>`, or `mcp__<server>__<tool>` as models know it. */
function isOfServer(name: string, servers: readonly string[]): boolean {
  return servers.some((server) => name.startsWith(`mcp.${server}.`) || name.startsWith(`mcp__${server}__`));
}
