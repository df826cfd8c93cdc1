import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  isEndOf,
  KEY,
  kindOf,
  serve,
  startThread,
  startTurn,
  text,
  type Client,
} from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

/** A server whose one tool asks the user for a name before it greets. */
const SERVER = `
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
let mayAsk = false;
let waiting;
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === "initialize") {
    mayAsk = params.capabilities.elicitation !== undefined;
    const serverInfo = { name: "greeter", version: "1" };
    return say({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") {
    const inputSchema = { type: "object", properties: {} };
    return say({ id, result: { tools: [{ name: "greet", description: "Greets the user", inputSchema }] } });
  }
  if (method === "tools/call") {
    if (!mayAsk) return say({ id, result: { content: [{ type: "text", text: "nobody to ask" }] } });
    waiting = id;
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return say({ id: "q1", method: "elicitation/create", params: { message: "What is your name?", requestedSchema } });
  }
  if (id === "q1") {
    const words = error === undefined ? result.action + " " + JSON.stringify(result.content ?? null) : error.message;
    return say({ id: waiting, result: { content: [{ type: "text", text: words }] } });
  }
  if (id !== undefined) say({ id, error: { code: -32601, message: "Method not found" } });
});
`;

async function opened(world: World, url: string, more = "") {
  const file = await world.file("programs/server.mjs", SERVER);
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
base_url = "${url}/v1"
env_key = "MOCK_KEY"
[mcp_servers.greeter]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(file)}]
default_tools_approval_mode = "approve"
${more}`,
  );
}

const SCRIPT = [{ calls: [{ tool: "mcp__greeter__greet", args: {} }] }, { text: "done" }];
const ASK = "mcpServer/elicitation/request";

async function asked(client: Client): Promise<{ readonly threadId: string; readonly turnId: string }> {
  await client.initialize();
  const threadId = await startThread(client, { approvalPolicy: "on-request", sandbox: "workspace-write" });
  return { threadId, turnId: await startTurn(client, threadId, "greet me") };
}

async function result(client: Client, turnId: string): Promise<unknown> {
  await client.waitFor((wire) => isEndOf(wire, turnId));
  const item = client.received.find((wire) => kindOf(wire) === "item/completed mcpToolCall");
  return at(item, "params.item.result.content.0.text") ?? at(item, "params.item.error.message");
}

test.each([
  ["accepts", { action: "accept", content: { name: "Ada" }, _meta: null }, 'accept {"name":"Ada"}'],
  ["declines", { action: "decline", content: null, _meta: null }, "decline null"],
  ["waves it away", { action: "cancel", content: null, _meta: null }, "decline null"],
])("what an MCP server wants to know is asked, and the server hears it: the client %s", async (_what, reply, words) => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: SCRIPT });
  await opened(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { threadId, turnId } = await asked(client);
  const question = await client.note(ASK);
  expect(question).toMatchObject({
    params: {
      threadId,
      turnId,
      serverName: "greeter",
      mode: "form",
      message: "What is your name?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    },
  });
  client.send({ id: question.id, result: reply });
  expect(await client.note("serverRequest/resolved")).toMatchObject({ params: { requestId: question.id } });
  expect(await result(client, turnId)).toBe(words);
});

test("the time of the call stands still while the user is asked", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: SCRIPT });
  await opened(world, model.url, "tool_timeout_sec = 0.5\n");
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { threadId, turnId } = await asked(client);
  const question = await client.note(ASK);
  // Other calls are answered meanwhile, for longer than the tool may take.
  const until = performance.now() + 1_500;
  while (performance.now() < until) await client.call("thread/read", { threadId });
  client.send({ id: question.id, result: { action: "accept", content: { name: "Bo" } } });
  expect(await result(client, turnId)).toBe('accept {"name":"Bo"}');
});

test("an interrupt takes the question back and ends the turn once", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: SCRIPT });
  await opened(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { threadId, turnId } = await asked(client);
  const question = await client.note(ASK);
  await client.call("turn/interrupt", { threadId, turnId });
  const end = await client.waitFor((wire) => isEndOf(wire, turnId));
  expect(text(end, "params.turn.status")).toBe("interrupted");
  expect(await client.note("serverRequest/resolved")).toMatchObject({ params: { requestId: question.id } });
});

test("where nobody is asked the server is told no; in exec it hears from the start that it cannot ask", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: ({ answers }) => SCRIPT[answers % 2] ?? { text: "" } });
  await opened(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, { approvalPolicy: "never", sandbox: "workspace-write" });
  const turnId = await startTurn(client, threadId, "greet me");
  expect(await result(client, turnId)).toBe("decline null");
  client.end();
  await served.running.ended;
  const { stdout } = await run(["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "greet me"], {
    world,
    env: KEY,
  });
  expect(stdout).toContain("nobody to ask");
});
