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

const INSTALL: Move = { call: "plugin/install", params: { marketplacePath: FILE, pluginName: "hello" } };

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
    id: "plugins-install",
    about: "a plugin is installed, listed as such, and uninstalled",
    files: FILES,
    moves: [
      KNOWN,
      INSTALL,
      { call: "plugin/list", params: { cwds: ["{ws}"] } },
      { call: "plugin/installed", params: { cwds: ["{ws}"] } },
      read(FILE, "hello"),
      { call: "skills/list", params: { cwds: ["{ws}"] } },
      { call: "hooks/list", params: { cwds: ["{ws}"] } },
      INSTALL,
      { call: "plugin/uninstall", params: { pluginId: "hello@ours" } },
      { call: "plugin/installed", params: {} },
      { call: "plugin/uninstall", params: { pluginId: "hello@ours" } },
    ],
  },
  {
    id: "plugins-install-refused",
    about: "plugins that cannot be installed",
    files: {
      ...FILES,
      ".agents/plugins/marketplace.json": JSON.stringify({
        name: "ours",
        plugins: [
          {
            name: "never",
            source: { source: "local", path: "./plugins/hello" },
            policy: { installation: "NOT_AVAILABLE", authentication: "ON_USE" },
          },
        ],
      }),
    },
    moves: [
      KNOWN,
      { call: "plugin/install", params: { marketplacePath: FILE, pluginName: "nope" } },
      { call: "plugin/install", params: { marketplacePath: "{ws}/none.json", pluginName: "hello" } },
      { call: "plugin/install", params: { pluginName: "hello" } },
      { call: "plugin/install", params: { marketplacePath: FILE, remoteMarketplaceName: "far", pluginName: "hello" } },
      { call: "plugin/install", params: { marketplacePath: FILE, pluginName: "never" } },
      { call: "plugin/install", params: { marketplacePath: FILE, pluginName: "../hello" } },
      { call: "plugin/uninstall", params: { pluginId: "nothing" } },
      { call: "plugin/uninstall", params: { pluginId: "no@where" } },
      { call: "plugin/uninstall", params: { pluginId: "../x@../y" } },
    ],
  },
  {
    id: "plugins-none",
    about: "a machine without plugins",
    moves: [KNOWN, { call: "plugin/list", params: {} }, { call: "plugin/installed", params: {} }],
  },
];
