import { randomUUID } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, runTurn, serve, startThread, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

/** A server of the session era: one tool that says what it gets and sees, one that writes, one resource. */
const SERVER = `
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
try { appendFileSync("starts", "one\\n"); } catch {}
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
    let words = JSON.stringify(params.arguments.showMeta ? params._meta : params.arguments);
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
[mcp_servers.loud]
command = ${JSON.stringify(process.execPath)}
args = ["-e", "console.error('no entry for ' + process.env.DOOR_TOKEN); process.exit(3)"]
env = { DOOR_TOKEN = "a-token-that-is-loud" }
[mcp_servers.far]
url = "http://127.0.0.1:9/mcp?key=hidden"
bearer_token_env_var = "MOCK_KEY"
`,
  );
  const served = serve([], { world, env: KEY });
  await served.client.initialize({ experimentalApi: true });
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
  expect(data.map((status) => at(status, "name"))).toEqual(["own", "lost", "loud", "far"]);
  const [own, lost, loud, far] = data;
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
  expect(text(loud, "toolsError")).toMatch(/^the server exited with code 3; it had written: no entry for \[/);
  const threadId = text(await client.call("thread/start", {}), "thread.id");
  const call = await refused(client, "mcpServer/tool/call", { threadId, server: "loud", tool: "x" });
  expect(call).toMatch(/^-32603 the server exited with code 3; it had written: no entry for \[/);
  expect(at(await client.call("config/read", {}), "config.mcp_servers.far.url")).toBe("[hidden]");
  expect(JSON.stringify(client.received)).not.toContain("a-token-that-is-loud");
  expect(far).toMatchObject({ httpOrigin: "http://127.0.0.1:9", authStatus: "bearerToken", tools: {} });
  expect(JSON.stringify(data)).not.toContain("hidden");
  expect(await client.call("mcpServerStatus/list", { serverName: "nope" })).toEqual({ data: [], nextCursor: null });
  const light = { serverName: "own", detail: "toolsAndAuthOnly" };
  expect(at(await client.call("mcpServerStatus/list", light), "data.0.resources")).toEqual([]);
  expect(await refused(client, "mcpServerStatus/list", { detail: "all" })).toMatch(/^-32600 .*unknown variant `all`/);
  expect(await refused(client, "mcpServerStatus/list", { threadId: NONE })).toBe(`-32600 thread not found: ${NONE}`);
});

test("mcpServer/tool/call calls a tool in the sandbox of the thread, with what the client says of the call", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  const call = (tool: string, given: unknown) =>
    client.call("mcpServer/tool/call", { threadId, server: "own", tool, arguments: given });
  expect(await call("echo", { a: 1 })).toEqual({ content: [{ type: "text", text: '{"a":1}' }], isError: false });
  const said = { threadId, server: "own", tool: "echo", arguments: { showMeta: true }, _meta: { from: "the client" } };
  const shown = await client.call("mcpServer/tool/call", said);
  expect(JSON.parse(text(shown, "content.0.text"))).toMatchObject({ from: "the client" });
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

test("servers start with their thread, once, stay for its turns, and end with it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await using served = await opened(world, model.url);
  const { client, running } = served;
  const mark = `mark-${randomUUID()}`;
  const brings = (more: object = {}) => {
    const args = [`${world.root}/programs/server.mjs`, mark];
    const twice = { command: process.execPath, args };
    return {
      sandbox: "workspace-write",
      config: { mcp_servers: { mine: twice, must: { ...twice, required: true }, ...more } },
    };
  };
  const starts = async () => (await readFile(`${world.workspace}/starts`, "utf8")).trim().split("\n").length;
  const told = (threadId: string, name: string) =>
    client.received
      .filter((wire) => wire.method === STARTUP && at(wire, "params.threadId") === threadId)
      .flatMap((wire) => (at(wire, "params.name") === name ? [text(wire, "params.status")] : []));
  const settled = (threadId: string, name: string) =>
    client.waitFor((wire) => {
      const { threadId: thread, name: server, status } = (wire.params ?? {}) as Record<string, unknown>;
      return wire.method === STARTUP && thread === threadId && server === name && status !== "starting";
    });

  const threadId = await startThread(client, brings());
  for (const name of ["own", "mine", "must", "lost"]) await settled(threadId, name);
  // Two of the client's, one of the configuration.
  expect(await starts()).toBe(3);
  expect((await marked(mark)).length).toBeGreaterThanOrEqual(2);
  await runTurn(client, threadId, "one");
  // Who is asked is no matter of the sandbox.
  await client.call("thread/settings/update", { threadId, approvalPolicy: "on-request" });
  await runTurn(client, threadId, "two");
  expect(await starts()).toBe(3);
  for (const name of ["own", "mine", "must"]) expect(told(threadId, name)).toEqual(["starting", "ready"]);
  const lost = await settled(threadId, "lost");
  expect(lost.params).toMatchObject({ threadId, status: "failed", failureReason: null });
  expect(text(lost, "params.error")).toContain("/no/such/program");
  await client.call("thread/archive", { threadId });
  expect(await marked(mark)).toEqual([]);

  const broken = { command: "/no/such/program", required: true };
  expect(await refused(client, "thread/start", brings({ broken }))).toMatch(
    /^-32603 error creating thread: Fatal error: Failed to initialize session: required MCP servers failed to initialize: broken: .*\/no\/such\/program/,
  );
  // Under a name that says nothing of it.
  const env = { LOGIN: "hunter2hunter2", MODE: "production" };
  const talks = { command: "/bin/sh", args: ["-c", 'echo "no $LOGIN in $MODE" >&2; exit 1'], env, required: true };
  const said = await refused(client, "thread/start", brings({ talks }));
  expect(said).toMatch(
    /required MCP servers failed to initialize: talks: .*no \[redacted:known-secret\] in production/,
  );
  expect(JSON.stringify(client.received)).not.toContain(env.LOGIN);
  expect(await marked(mark)).toEqual([]);
  expect(at(await client.call("thread/list", {}), "data")).toEqual([]);

  const last = await startThread(client, brings());
  await settled(last, "mine");
  client.end();
  expect(await running.ended).toMatchObject({ code: 0 });
  expect(await marked(mark)).toEqual([]);
});

const STARTUP = "mcpServer/startupStatus/updated";

/** Processes that have the mark among their arguments. */
async function marked(mark: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, index) => lines[index]?.includes(mark));
}
