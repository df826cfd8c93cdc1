import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  connectTo,
  isEndOf,
  KEY,
  kindOf,
  list,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  startTurn,
  text,
  type Client,
} from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

const LOOKUP = {
  type: "function",
  name: "lookup",
  description: "Looks a ticket up",
  inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
};
const SCRIPT = [{ calls: [{ tool: "lookup", args: { id: "7" } }] }, { text: "done" }];
const EXPERIMENTAL = { experimentalApi: true };
const OPEN = { contentItems: [{ type: "inputText", text: "ticket 7 is open" }], success: true };

async function withModel(world: World, script: Parameters<typeof startModelServer>[0] = { script: SCRIPT }) {
  const model = await startModelServer(script);
  await pointAt(world, model.url);
  return model;
}

async function ended(client: Client, turnId: string) {
  const end = await client.waitFor((wire) => isEndOf(wire, turnId));
  const item = client.received.find((wire) => kindOf(wire) === "item/completed dynamicToolCall");
  return { status: text(end, "params.turn.status"), item: at(item, "params.item") };
}

test("a tool of the client is offered to the model, called over its connection, and its answer told to the model", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { dynamicTools: [LOOKUP], approvalPolicy: "untrusted" });
  const turnId = await startTurn(client, threadId, "go");
  const call = await client.note("item/tool/call");
  expect(call).toMatchObject({
    params: { threadId, turnId, namespace: null, tool: "lookup", arguments: { id: "7" } },
  });
  const shown = client.received.find((wire) => kindOf(wire) === "item/started dynamicToolCall");
  expect(at(call, "params.callId")).toBe(text(shown, "params.item.id"));
  client.send({ id: call.id, result: OPEN });
  expect(await ended(client, turnId)).toMatchObject({
    status: "completed",
    item: { tool: "lookup", namespace: null, status: "completed", success: true, contentItems: OPEN.contentItems },
  });
  const offered = list(model.requests[0]?.body, "tools").find((tool) => at(tool, "name") === "lookup");
  expect(offered).toMatchObject({ description: LOOKUP.description, parameters: LOOKUP.inputSchema });
  expect(JSON.stringify(model.requests[1]?.body)).toContain("ticket 7 is open");
  // As every tool: intent before effect, and all of it on record.
  client.end();
  await served.running.ended;
  const { stdout } = await run(["threads", "show", threadId, "--json"], { world });
  const types = [...stdout.matchAll(/"type":"((?:thread\.tools-|tool\.)[^"]*)"/g)].map(([, type]) => type);
  expect(types).toEqual(["thread.tools-declared", "tool.intended", "tool.answered", "tool.settled"]);
});

test("tools in a namespace are called with it, and one that fails says so to the model", async () => {
  await using world = await openWorld();
  await using model = await withModel(world, {
    script: [{ calls: [{ tool: "desk__lookup", args: { id: "9" } }] }, { text: "done" }],
  });
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const dynamicTools = [{ type: "namespace", name: "desk", description: "Tickets", tools: [LOOKUP] }];
  const threadId = await startThread(client, { dynamicTools });
  const turnId = await startTurn(client, threadId, "go");
  const call = await client.note("item/tool/call");
  expect(call).toMatchObject({ params: { namespace: "desk", tool: "lookup" } });
  client.send({ id: call.id, result: { contentItems: [], success: false } });
  expect(await ended(client, turnId)).toMatchObject({
    status: "completed",
    item: { namespace: "desk", status: "failed", success: false, contentItems: [] },
  });
  expect(JSON.stringify(model.requests[1]?.body)).toContain("the client's tool reported a failure");
});

test.each([
  ["refuses the call", { error: { code: -32601, message: "no such method" } }, "no such method"],
  ["answers what nobody can read", { result: { words: 1 } }, "dynamic tool response was invalid"],
  ["answers more than can be kept", { result: { ...OPEN, more: "x".repeat(5 * 1024 * 1024) } }, "larger than 4 MiB"],
])("a client that %s: the item fails and the turn continues", async (_what, reply, why) => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { dynamicTools: [LOOKUP] });
  const turnId = await startTurn(client, threadId, "go");
  client.send({ id: (await client.note("item/tool/call")).id, ...reply });
  const { status, item } = await ended(client, turnId);
  expect(status).toBe("completed");
  expect(item).toMatchObject({ status: "failed", success: false, error: expect.stringContaining(why) });
  expect(model.requests).toHaveLength(2);
});

test("a client that says nothing fails its call at the deadline, and the turn continues", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using served = serve(["-c", "client_tool_timeout_sec=0.5"], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { dynamicTools: [LOOKUP] });
  const turnId = await startTurn(client, threadId, "go");
  await client.note("item/tool/call");
  expect(await ended(client, turnId)).toMatchObject({
    status: "completed",
    item: { status: "failed", success: false, error: "the call did not finish in 500 ms" },
  });
  expect(model.requests).toHaveLength(2);
});

test("a client that goes away fails its call soon; one that comes back in time answers it", async () => {
  await using world = await openWorld();
  await using model = await withModel(world, {
    respond: ({ answers }) => SCRIPT[answers % 2] ?? { text: "" },
  });
  await using server = await serveOnSocket(world);
  const first = await connectTo(server.socket);
  await first.client.initialize(EXPERIMENTAL);
  const threadId = await startThread(first.client, { dynamicTools: [LOOKUP] });
  await startTurn(first.client, threadId, "go");
  await first.client.note("item/tool/call");
  first[Symbol.dispose]();
  using second = await connectTo(server.socket);
  await second.client.initialize(EXPERIMENTAL);
  await second.client.call("thread/resume", { threadId, excludeTurns: true });
  const again = await second.client.note("item/tool/call");
  expect(again).toMatchObject({ params: { tool: "lookup" } });
  second.client.send({ id: again.id, result: OPEN });
  const end = await second.client.note("turn/completed");
  expect(end).toMatchObject({ params: { turn: { status: "completed" } } });

  const third = await connectTo(server.socket);
  await third.client.initialize(EXPERIMENTAL);
  await third.client.call("thread/resume", { threadId, excludeTurns: true });
  await second.client.call("thread/unsubscribe", { threadId });
  const turnId = await startTurn(third.client, threadId, "once more");
  await third.client.note("item/tool/call");
  third[Symbol.dispose]();
  const over = await second.client.waitFor(
    (wire) => kindOf(wire) === "thread/status/changed idle",
    second.client.received.length,
  );
  expect(over).toBeDefined();
  const turns = list(await second.client.call("thread/turns/list", { threadId, itemsView: "full" }), "data");
  const failed = turns.find((turn) => at(turn, "id") === turnId);
  expect(failed).toMatchObject({ status: "completed" });
  expect(list(failed, "items").find((item) => at(item, "type") === "dynamicToolCall")).toMatchObject({
    status: "failed",
    error: "no client is connected that could run the tool",
  });
  expect(model.requests).toHaveLength(4);
});

test("an interrupt while a tool of the client works ends the turn once, and a late answer changes nothing", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { dynamicTools: [LOOKUP] });
  const turnId = await startTurn(client, threadId, "go");
  const call = await client.note("item/tool/call");
  await client.call("turn/interrupt", { threadId, turnId });
  expect(await ended(client, turnId)).toMatchObject({ status: "interrupted", item: { status: "failed" } });
  client.send({ id: call.id, result: OPEN });
  await client.call("thread/loaded/list");
  expect(client.kinds().filter((kind) => kind.startsWith("turn/completed"))).toEqual(["turn/completed interrupted"]);
  expect(model.requests).toHaveLength(1);
});

test("a second server of the same home offers the tools again; exec does not", async () => {
  await using world = await openWorld();
  await using model = await withModel(world, {
    respond: ({ answers }) => (answers === 1 ? SCRIPT[0] : undefined) ?? { text: "done" },
  });
  const offers = (index: number) => list(model.requests[index]?.body, "tools").map((tool) => at(tool, "name"));
  const first = serve([], { world, env: KEY });
  await first.client.initialize(EXPERIMENTAL);
  const threadId = await startThread(first.client, { dynamicTools: [LOOKUP], sandbox: "workspace-write" });
  await runTurn(first.client, threadId, "hello");
  first.client.end();
  await first.running.ended;

  const second = serve([], { world, env: KEY });
  const { client } = second;
  await client.initialize(EXPERIMENTAL);
  await client.call("thread/resume", { threadId, excludeTurns: true });
  const turnId = await startTurn(client, threadId, "go");
  client.send({ id: (await client.note("item/tool/call")).id, result: OPEN });
  expect(await ended(client, turnId)).toMatchObject({ status: "completed", item: { success: true } });
  client.end();
  await second.running.ended;

  await run(["exec", "--skip-git-repo-check", "resume", threadId, "go on"], { world, env: KEY });
  expect(offers(1)).toContain("lookup");
  expect(offers(3)).not.toContain("lookup");
});

test("tools that cannot be are refused in the original's words, and names of Heddle's own are told of", async () => {
  await using world = await openWorld();
  await using _model = await withModel(world);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const refused = async (...dynamicTools: readonly unknown[]) =>
    (await client.ask("thread/start", { dynamicTools })).error?.message;
  expect(await refused({ ...LOOKUP, name: "look up" })).toBe(
    "dynamic tool name must match ^[a-zA-Z0-9_-]+$ to match Responses API: look up",
  );
  expect(await refused(LOOKUP, LOOKUP)).toBe("duplicate dynamic tool name: lookup");
  expect(await refused({ ...LOOKUP, name: "mcp__a__b" })).toBe("dynamic tool name is reserved: mcp__a__b");
  expect(await refused({ type: "namespace", name: "desk", description: "", tools: [] })).toBe(
    "dynamic tool namespace must contain at least one tool: desk",
  );
  await startThread(client, { dynamicTools: [{ ...LOOKUP, name: "exec_command" }] });
  expect(await client.note("warning")).toMatchObject({
    params: { message: expect.stringContaining("dynamicTools.exec_command") },
  });
});
