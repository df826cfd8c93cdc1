import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { at, refused, text } from "../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../test/chat-world.ts";

async function put(root: string, files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}

const MARKETPLACE = ".agents/plugins/marketplace.json";

test("plugins of a repository are listed and read: skills, hooks and MCP servers; what is none is named", async () => {
  await using world = await openChatWorld();
  const root = world.workspace;
  const local = (name: string, folder: string) => ({ name, source: { source: "local", path: folder } });
  await put(root, {
    ".git/HEAD": "ref: refs/heads/main\n",
    [MARKETPLACE]: {
      name: "ours",
      plugins: [
        { ...local("hello", "./plugins/hello"), policy: { authentication: "ON_USE" }, category: "Dev" },
        local("gone", "./plugins/gone"),
        local("outside", "../outside"),
        local("linked", "./plugins/linked"),
        { name: "far", source: { source: "url", url: "https://example.invalid" } },
      ],
    },
    "plugins/hello/.codex-plugin/plugin.json": {
      name: "hello",
      version: "1.2.0",
      description: "Greets",
      skills: "./skills/",
    },
    "plugins/hello/skills/greet/SKILL.md": "---\nname: greet\ndescription: greets\n---\nHi\n",
    "plugins/hello/hooks/hooks.json": { hooks: { PreToolUse: [{ matcher: "x", hooks: [{}, {}] }] } },
    "plugins/hello/.mcp.json": { mcpServers: { echo: { command: "cat" } } },
    "inner/file": "",
  });
  await put(world.root, { "outside/.codex-plugin/plugin.json": { name: "outside" } });
  await symlink(path.join(world.root, "home"), path.join(root, "plugins/linked"));
  const client = await codexClient(world);
  const marketplacePath = path.join(root, MARKETPLACE);
  const found = await client.call("plugin/list", { cwds: [path.join(root, "inner")] });
  const problem = (name: string) => ({
    marketplacePath,
    message: `plugin \`${name}\` is no folder with a manifest below ${root}`,
  });
  expect(found).toMatchObject({
    marketplaces: [{ name: "ours", path: marketplacePath, interface: null }],
    marketplaceLoadErrors: ["gone", "outside", "linked", "far"].map(problem),
  });
  const summary = at(found, "marketplaces.0.plugins.0");
  expect(at(found, "marketplaces.0.plugins")).toEqual([summary]);
  expect(summary).toMatchObject({
    id: "hello@ours",
    name: "hello",
    localVersion: "1.2.0",
    source: { type: "local", path: path.join(root, "plugins/hello") },
    installed: false,
    enabled: false,
    authPolicy: "ON_USE",
    interface: { category: "Dev" },
  });
  expect(at(await client.call("plugin/read", { marketplacePath, pluginName: "hello" }), "plugin")).toMatchObject({
    marketplaceName: "ours",
    summary,
    description: "Greets",
    skills: [{ name: "hello:greet", path: path.join(root, "plugins/hello/skills/greet/SKILL.md") }],
    hooks: [0, 1].map((index) => ({
      key: `hello@ours:hooks/hooks.json:pre_tool_use:0:${index}`,
      eventName: "preToolUse",
    })),
    mcpServers: ["echo"],
  });
  expect(await refused(client, "plugin/read", { marketplacePath, pluginName: "nope" })).toBe(
    "-32600 plugin `nope` was not found in marketplace `ours`",
  );
  expect(await refused(client, "plugin/read", { marketplacePath: `${root}/none`, pluginName: "x" })).toBe(
    `-32600 marketplace file \`${root}/none\` does not exist`,
  );
  expect(await refused(client, "plugin/read", { pluginName: "x" })).toContain("needs marketplacePath");
  expect(
    await refused(client, "plugin/read", {
      marketplacePath: path.join(root, "plugins/hello/.mcp.json"),
      pluginName: "x",
    }),
  ).toBe(`-32600 ${root}/plugins/hello/.mcp.json has a wrong or missing value at name`);
  await put(root, { [MARKETPLACE]: "{" });
  expect(await client.call("plugin/list", { cwds: [root] })).toMatchObject({
    marketplaces: [],
    marketplaceLoadErrors: [{ message: `${marketplacePath} is not JSON` }],
  });
  expect(await client.call("plugin/installed", {})).toEqual({ marketplaces: [], marketplaceLoadErrors: [] });
  const { error } = await client.ask("plugin/install", { marketplacePath, pluginName: "hello" });
  expect([error?.code, text(error, "data.instead")]).toEqual([
    -32601,
    expect.stringContaining("skills/extraRoots/set"),
  ]);
});
