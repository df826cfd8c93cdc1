/** Plugins of this machine, by the marketplace file of the user. */
import { initialize, type Move, type Scenario } from "../scenario.ts";

const FILE = "{root}/.agents/plugins/marketplace.json";
const KNOWN = initialize({ isExperimental: true });

const read = (marketplacePath: string, pluginName: string): Move => ({
  call: "plugin/read",
  params: { marketplacePath, pluginName },
});

const FILES = {
  ".agents/plugins/marketplace.json": JSON.stringify({
    name: "ours",
    plugins: [
      {
        name: "hello",
        source: { source: "local", path: "./plugins/hello" },
        policy: { installation: "AVAILABLE", authentication: "ON_INSTALL" },
        category: "Dev",
      },
    ],
  }),
  "plugins/hello/.codex-plugin/plugin.json": JSON.stringify({
    name: "hello",
    version: "1.0.0",
    description: "Says hello",
    skills: "./skills/",
    mcpServers: "./.mcp.json",
    hooks: "./hooks.json",
  }),
  "plugins/hello/hooks.json": JSON.stringify({
    hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "true" }] }] },
  }),
  "plugins/hello/.mcp.json": JSON.stringify({ mcpServers: { echo: { command: "cat" } } }),
  "plugins/hello/skills/greet/SKILL.md": "---\nname: greet\ndescription: greets\n---\nHi\n",
};

export const PLUGINS: readonly Scenario[] = [
  {
    id: "plugins-read",
    about: "plugins are listed and read, with their skills, hooks and MCP servers",
    files: FILES,
    moves: [
      KNOWN,
      { call: "plugin/list", params: { cwds: ["{ws}"] } },
      { call: "plugin/installed", params: { cwds: ["{ws}"] } },
      { call: "plugin/reconcile", params: {} },
      read(FILE, "hello"),
      read(FILE, "nope"),
      read("{ws}/none.json", "hello"),
    ],
  },
  {
    id: "plugins-none",
    about: "a machine without plugins",
    moves: [KNOWN, { call: "plugin/list", params: {} }, { call: "plugin/installed", params: {} }],
  },
];
