import { readFile, stat } from "node:fs/promises";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, runTurn, serve, startThread, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

/** A server of the session era: one tool that says what it gets and sees, one that writes, one resource. */
const SERVER = `
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const anything = { type: "object", properties: {} };
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    const capabilities = { tools: {}, resources: {} };
    return say({ id, result: { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "own", version: "3" } } });
  }
  if (method === "tools/list") {
    const tools = ["echo", "write", "gone", "peek"].map((name) => ({ name, description: "does " + name, inputSchema: anything }));
    return say({ id, result: { tools } });
  }
  if (method === "tools/call") {
    let words = JSON.stringify(params.arguments);
    let isError = false;
    try {
      if (params.name === "write") writeFileSync(params.arguments.file, "written");
      if (params.name === "peek") words = readFileSync(params.arguments.file, "utf8");
    } catch (error) {
      isError = true;
      words = error.message;
    }
    return say({ id, result: { content: [{ type: "text", text: words }], isError } });
  }
  if (method === "resources/list") return say({ id, result: { resources: [{ uri: "own://one", name: "one" }] } });
  if (method === "resources/read" && params.uri === "own://one") {
    return say({ id, result: { contents: [{ uri: params.uri, text: "the text of one" }] } });
  }
  say({ id, error: { code: -32601, message: "Method not found" } });
});
`;

async function opened(world: World, url = "http://127.0.0.1:9") {
  const file = await world.file("programs/server.mjs", SERVER);
  await world.file("home/secret", "key of the house");
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
base_url = "${url}/v1"
env_key = "MOCK_KEY"
[mcp_servers.own]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(file)}]
disabled_tools = ["gone"]
[mcp_servers.lost]
command = "/no/such/program"
[mcp_servers.far]
url = "http://127.0.0.1:9/mcp?key=hidden"
bearer_token_env_var = "MOCK_KEY"
`,
  );
  const served = serve([], { world, env: KEY });
  await served.client.initialize();
  return served;
}

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

const NONE = "00000000-0000-0000-0000-000000000000";

test("mcpServerStatus/list tells what each configured server has, and why one has nothing", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const { data } = (await client.call("mcpServerStatus/list", {})) as { data: readonly unknown[] };
  expect(data.map((status) => at(status, "name"))).toEqual(["own", "lost", "far"]);
  const [own, lost, far] = data;
  expect(own).toMatchObject({
    serverInfo: { name: "own", version: "3" },
    toolsError: null,
    resources: [{ uri: "own://one" }],
    resourceTemplates: [],
    authStatus: "unsupported",
    httpOrigin: null,
  });
  expect(Object.keys((own as { tools: object }).tools)).toEqual(["echo", "write", "peek"]);
  expect(text(lost, "toolsError")).toContain("/no/such/program");
  expect(far).toMatchObject({ httpOrigin: "http://127.0.0.1:9", authStatus: "bearerToken", tools: {} });
  expect(JSON.stringify(data)).not.toContain("hidden");
  expect(await client.call("mcpServerStatus/list", { serverName: "nope" })).toEqual({ data: [], nextCursor: null });
  const light = { serverName: "own", detail: "toolsAndAuthOnly" };
  expect(at(await client.call("mcpServerStatus/list", light), "data.0.resources")).toEqual([]);
  expect(await refused(client, "mcpServerStatus/list", { detail: "all" })).toMatch(/^-32600 .*unknown variant `all`/);
  expect(await refused(client, "mcpServerStatus/list", { threadId: NONE })).toBe(`-32600 thread not found: ${NONE}`);
});

test("mcpServer/tool/call calls a tool behind the wall of the thread", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  const call = (tool: string, given: unknown) =>
    client.call("mcpServer/tool/call", { threadId, server: "own", tool, arguments: given });
  expect(await call("echo", { a: 1 })).toEqual({ content: [{ type: "text", text: '{"a":1}' }], isError: false });
  const [inside, outside] = [`${world.workspace}/made.txt`, `${world.root}/made.txt`];
  await call("write", { file: inside });
  expect(await readFile(inside, "utf8")).toBe("written");
  expect(await call("write", { file: outside })).toMatchObject({ isError: true });
  await expect(stat(outside)).rejects.toThrow("ENOENT");
  const peeked = await call("peek", { file: `${world.home}/secret` });
  expect(JSON.stringify(peeked)).not.toContain("key of the house");
  const ask = (more: object) =>
    refused(client, "mcpServer/tool/call", { threadId, server: "own", tool: "echo", ...more });
  expect(await ask({ threadId: NONE })).toBe(`-32600 thread not found: ${NONE}`);
  expect(await ask({ server: "x" })).toBe("-32603 unknown MCP server 'x'");
  expect(await ask({ tool: "gone" })).toBe('-32600 the MCP server own has no tool "gone" here');
  expect(await ask({ arguments: [1] })).toBe("-32600 arguments must be an object");
  expect(await ask({ server: "lost" })).toMatch(/^-32603 .*\/no\/such\/program/);
});

test("mcpServer/resource/read, mcpServer/oauth/login and config/mcpServer/reload answer or say why not", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  expect(await client.call("mcpServer/resource/read", { server: "own", uri: "own://one" })).toEqual({
    contents: [{ uri: "own://one", text: "the text of one" }],
    originCallId: null,
  });
  expect(await refused(client, "mcpServer/resource/read", { server: "own", uri: "own://two" })).toMatch(
    /^-32603 .*Method not found/,
  );
  expect(await refused(client, "mcpServer/resource/read", { server: "x", uri: "a://b" })).toBe(
    "-32603 unknown MCP server 'x'",
  );
  expect(await refused(client, "mcpServer/oauth/login", { name: "x" })).toBe("-32600 No MCP server named 'x' found.");
  expect(await refused(client, "mcpServer/oauth/login", { name: "far" })).toContain(
    "-32600 mcp_servers.far has a token in the configuration",
  );
  expect(await client.call("config/mcpServer/reload", null)).toEqual({});
  await client.call("config/value/write", {
    keyPath: "mcp_servers.more",
    value: { command: "true" },
    mergeStrategy: "replace",
  });
  expect(await refused(client, "config/mcpServer/reload", {})).toContain("start heddle app-server again");
});

test("mcpServer/startupStatus/updated tells which servers a turn has and which it lacks", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "ok" }] });
  await using served = await opened(world, model.url);
  const { client } = served;
  const threadId = await startThread(client);
  const { received } = await runTurn(client, threadId, "go");
  const told = received.filter(({ method }) => method === "mcpServer/startupStatus/updated");
  const status = (name: string) => told.find(({ params }) => at(params, "name") === name)?.params;
  expect(status("own")).toMatchObject({ threadId, status: "ready", error: null, failureReason: null });
  expect(status("lost")).toMatchObject({ threadId, status: "failed", failureReason: null });
  expect(text(status("lost"), "error")).toContain("/no/such/program");
});
