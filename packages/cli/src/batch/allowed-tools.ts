/** The names of `--allow-tool`, as models know the tools or as Heddle does, into Heddle's own. An unknown name is refused. */
import type { ModelFamily } from "@heddle/models";
import { didYouMean, McpServerConfig } from "@heddle/protocol";
import { envelopeFor, toolsFor, WEB_SEARCH } from "@heddle/tools";
import { usage } from "../args.ts";

const EVERYTHING = {
  mode: "danger-full-access",
  workspace: "/",
  writableRoots: [],
  networkAccess: true,
  approval: "never",
  masked: [],
} as const;
const ANY_SERVER = McpServerConfig.parse({ name: "any", command: "true" });

export interface KnownTools {
  readonly family: ModelFamily;
  /** Names of the configured MCP servers; their tools are known only once they run. */
  readonly servers: readonly string[];
}

export function allowedTools(names: readonly string[], known: KnownTools): readonly string[] {
  const tools = new Map([...builtInTools(known.family), [WEB_SEARCH, WEB_SEARCH]]);
  return names.map((name) => {
    const own = tools.get(name) ?? [...tools.values()].find((canonical) => canonical === name);
    if (own !== undefined) return own;
    const ofServer = serverTool(name, known.servers);
    if (ofServer !== undefined) return ofServer;
    const choices = [...tools.keys(), ...known.servers.map((server) => `mcp.${server}.*`)];
    const hint = didYouMean(name, choices) || `; there are ${choices.join(", ")}`;
    throw usage(`--allow-tool "${name}": the model is offered no such tool${hint}`);
  });
}

/** Name a family of models uses → Heddle's own. */
export function builtInTools(family: ModelFamily): ReadonlyMap<string, string> {
  const everything = envelopeFor(EVERYTHING);
  // Whether there are skills is known once the home is looked at; the tool's name is known before.
  const toolset = toolsFor(family, everything, { skillFolder: "/" });
  return new Map(toolset.offered.map(({ name }) => [name, toolset.resolve(name)?.name ?? name]));
}

/** `mcp.<server>.<tool or *>`, or `mcp__<server>__<tool>` as models know it, into the name that envelopes know. */
function serverTool(name: string, servers: readonly string[]): string | undefined {
  // The longest first: `a.b` is a server of its own, not a tool of `a`.
  for (const server of servers.toSorted((a, b) => b.length - a.length)) {
    const forms = [`mcp.${server}.`, `mcp__${server}__`, `mcp__${server.replace(/[^A-Za-z0-9_-]+/gu, "_")}__`];
    const form = forms.find((beginning) => name.startsWith(beginning));
    if (form !== undefined) return patternOf(server).slice(0, -1) + name.slice(form.length);
  }
  return undefined;
}

/** `mcp.<server>.*` with the server as envelopes write it. */
function patternOf(server: string): string {
  const { tools } = envelopeFor({ ...EVERYTHING, mcpServers: [{ ...ANY_SERVER, name: server }] });
  return tools.at(-1) ?? "";
}
