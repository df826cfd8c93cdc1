/** More rights for the calls that follow, through the doors of a server: asked for, granted in part, and ended. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, pointAt, runTurn, serve, startThread, startTurn, text } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";
import { answeredTurn, eventsOf, ON_REQUEST, PERMISSIONS, plain, wanting } from "../../test/hop-client.ts";
import { startServe } from "../../test/serve-client.ts";

test("permissions: granted for the turn they hold until it ends, and the model is told what it got", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const script = [
    { calls: [wanting([extra], true)] },
    { calls: [plain(`touch ${extra}/one.txt`)] },
    { text: "ok" },
    { calls: [plain(`touch ${extra}/two.txt`)] },
    { text: "ok" },
  ];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, ON_REQUEST);
  // The network was asked for too, and is not given.
  const { question } = await answeredTurn(client, threadId, {
    method: PERMISSIONS,
    result: { permissions: { fileSystem: { write: [extra], read: null } }, scope: "turn" },
  });
  expect(question.params).toMatchObject({
    threadId,
    cwd: world.workspace,
    reason: "Need it",
    permissions: { network: { enabled: true }, fileSystem: { write: [extra] } },
  });
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
  expect(JSON.stringify(model.requests[1]?.body)).toContain('\\"scope\\":\\"turn\\"');
  await runTurn(client, threadId, "again");
  expect(existsSync(path.join(extra, "two.txt"))).toBe(false);
  expect(await eventsOf(world, threadId, "hop.taken")).toMatchObject([
    { author: "user:owner", body: { scope: "turn", to: { network: "none", writeRoots: [world.workspace, extra] } } },
  ]);
});

test("permissions: granted for the session they hold in later turns, after a restart too; refused they give nothing", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  const other = path.join(world.root, "other");
  for (const folder of [extra, other]) await mkdir(folder);
  const script = [
    { calls: [wanting([extra])] },
    { text: "ok" },
    { calls: [plain(`touch ${extra}/one.txt`)] },
    { text: "ok" },
    { calls: [wanting([other])] },
    { calls: [plain(`touch ${other}/two.txt`)] },
    { text: "ok" },
  ];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    threadId = await startThread(served.client, ON_REQUEST);
    const result = { permissions: { fileSystem: { write: [extra], read: null } }, scope: "session" };
    await answeredTurn(served.client, threadId, { method: PERMISSIONS, result });
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  await runTurn(client, threadId, "use it");
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
  // The envelope the turn began in says so.
  const started = await eventsOf(world, threadId, "turn.started");
  expect(started.map(({ body }) => body.envelope.writeRoots)).toEqual([[world.workspace], [world.workspace, extra]]);
  await answeredTurn(client, threadId, { method: PERMISSIONS, result: { permissions: {}, scope: "turn" } });
  expect(existsSync(path.join(other, "two.txt"))).toBe(false);
});

test("permissions: over HTTP a part of them is granted, and the hop is on record", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const script = [{ calls: [wanting([extra], true)] }, { calls: [plain(`touch ${extra}/one.txt`)] }, { text: "ok" }];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const made = await served.call("POST", "/api/threads", { workspace: world.workspace });
  const threadId = text(made.json, "id");
  const params = { input: "go", approvalPolicy: "on-request", sandboxMode: "workspace-write" };
  await served.call("POST", `/api/threads/${threadId}/turns`, params);
  await served.events(threadId, ({ body }) => body.type === "approval.requested");
  const { json } = await served.call("GET", `/api/threads/${threadId}/approvals`);
  expect(json).toMatchObject({
    data: [{ question: { kind: "permissions", permissions: { write: [extra], network: true } } }],
  });
  const where = `/api/threads/${threadId}/approvals/${text(json, "data.0.id")}`;
  const granted = { read: [], write: [extra], network: false };
  expect((await served.call("POST", where, { decision: "accept", granted })).status).toBe(200);
  const events = await served.events(threadId, ({ body }) => body.type === "turn.completed");
  expect(events.find(({ body }) => body.type === "hop.taken")?.body).toMatchObject({
    scope: "turn",
    permissions: granted,
    to: { network: "none" },
  });
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
});

test("permissions: what is asked for is shown as what would be opened, whatever link leads there", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const script = [{ calls: [plain(`ln -s ${extra} link`)] }, { calls: [wanting(["link"])] }, { text: "ok" }];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  const { question } = await answeredTurn(served.client, threadId, { method: PERMISSIONS, result: {} });
  expect(at(question, "params.permissions.fileSystem.write")).toEqual([extra]);
});

test("permissions: what was started with rights for the turn ends with the turn", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const staying = { tool: "exec_command", args: { cmd: `touch ${extra}/one.txt; sleep 300`, yield_time_ms: 250 } };
  const script = [{ calls: [wanting([extra])] }, { calls: [staying] }, { text: "ok" }];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const threadId = await startThread(client, ON_REQUEST);
  const result = { permissions: { fileSystem: { write: [extra], read: null } }, scope: "turn" };
  const { received } = await answeredTurn(client, threadId, { method: PERMISSIONS, result });
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
  const command = received.find(
    ({ method, params }) => method === "item/completed" && at(params, "item.type") === "commandExecution",
  );
  expect(at(command, "params.item")).toMatchObject({ status: "failed", exitCode: expect.any(Number) });
  expect(await client.call("thread/backgroundTerminals/list", { threadId })).toMatchObject({ data: [] });
});

test("permissions: the question outlives its server, and what the next one grants holds in the same turn", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const script = [{ calls: [wanting([extra], true)] }, { calls: [plain(`touch ${extra}/one.txt`)] }, { text: "ok" }];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    threadId = await startThread(served.client, ON_REQUEST);
    await startTurn(served.client, threadId, "go");
    await served.client.note(PERMISSIONS);
    served.running.child.kill("SIGKILL");
    await served.running.ended;
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  const question = await client.note(PERMISSIONS);
  // For the session, and only a part: the network is not given.
  const result = { permissions: { fileSystem: { write: [extra], read: null } }, scope: "session" };
  client.send({ id: question.id, result });
  expect(at(await client.note("turn/completed"), "params.turn.status")).toBe("completed");
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
  expect(await eventsOf(world, threadId, "approval.requested")).toHaveLength(1);
  expect(await eventsOf(world, threadId, "hop.taken")).toMatchObject([
    { author: "user:owner", body: { scope: "thread", to: { network: "none", writeRoots: [world.workspace, extra] } } },
  ]);
});
