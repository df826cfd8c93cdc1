import { startModelServer, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, isEndOf, KEY, list, pointAt, serve, startThread, startTurn, text } from "../../test/app-server-client.ts";
import { startServe } from "../../test/serve-client.ts";
import { openWorld, run, start, type World } from "../../test/heddle-process.ts";

const FEATURE = ["-c", "features.multi_agent=true"];
const call = (tool: string, args: Record<string, unknown>) => ({ calls: [{ tool, args }] });
const childId = ({ source }: RecordedRequest): string => /agent_id\\*":\\*"([0-9a-f-]{36})/.exec(source)?.[1] ?? "";

/** The parent starts a child that runs a command, waits for it and closes it. */
async function withModel(world: World): Promise<ModelServer> {
  const model = await startModelServer({
    respond(request) {
      if (request.source.includes('"text":"be the child')) {
        return request.answers === 0 ? call("exec_command", { cmd: "touch made" }) : { text: "child done" };
      }
      const steps = [
        () => call("spawn_agent", { message: "be the child" }),
        () => call("wait_agent", { targets: [childId(request)] }),
        () => call("close_agent", { target: childId(request) }),
      ];
      return steps[request.answers]?.() ?? { text: "parent done" };
    },
  });
  await pointAt(world, model.url);
  return model;
}

test("a client of the parent sees the child begin and work, is asked for it, and reads it in Codex's shapes", async () => {
  await using world = await openWorld();
  await using _model = await withModel(world);
  await using server = serve(FEATURE, { world, env: KEY });
  const { client } = server;
  await client.initialize({ experimentalApi: true });
  const threadId = await startThread(client, { approvalPolicy: "untrusted", sandbox: "workspace-write" });
  const turnId = await startTurn(client, threadId, "go");
  const asked = await client.note("item/commandExecution/requestApproval");
  const child = text(asked, "params.threadId");
  expect(child).not.toBe(threadId);
  client.send({ id: asked.id, result: { decision: "accept" } });
  expect(await client.waitFor((wire) => isEndOf(wire, turnId))).toMatchObject({
    params: { threadId, turn: { status: "completed" } },
  });

  const began = client.received.find(
    ({ method, params }) => method === "thread/started" && at(params, "thread.id") === child,
  );
  expect(at(began, "params.thread")).toMatchObject({
    parentThreadId: threadId,
    source: { subAgent: { thread_spawn: { parent_thread_id: threadId, depth: 1 } } },
  });
  const ofChild = client.received.filter(({ params }) => at(params, "threadId") === child);
  expect(ofChild.map(({ method }) => method)).toEqual(
    expect.arrayContaining(["turn/started", "item/started", "item/completed", "turn/completed"]),
  );
  const items = client.received.flatMap(({ method, params }) =>
    method === "item/completed" && at(params, "item.type") === "collabAgentToolCall" ? [at(params, "item")] : [],
  );
  const common = { senderThreadId: threadId, receiverThreadIds: [child], status: "completed", model: null };
  expect(items).toMatchObject([
    { ...common, tool: "spawnAgent", prompt: "be the child", agentsStates: { [child]: { status: "running" } } },
    { ...common, tool: "wait", agentsStates: { [child]: { status: "completed", message: "child done" } } },
    { ...common, tool: "closeAgent", agentsStates: { [child]: { status: "shutdown", message: null } } },
  ]);
  const listed = async (params: Record<string, unknown>) =>
    list(await client.call("thread/list", params), "data").map((thread) => at(thread, "id"));
  expect(await listed({})).toEqual([threadId]);
  expect(await listed({ parentThreadId: threadId, archived: true })).toEqual([child]);
  const features = list(await client.call("experimentalFeature/list", {}), "data");
  expect(features.find((feature) => at(feature, "name") === "multi_agent")).toMatchObject({ enabled: true });
});

test("exec shows the calls and not the child's own work; threads list and show name the parent; the last thread is no child", async () => {
  await using world = await openWorld();
  await using _model = await withModel(world);
  const json = await run(["exec", "--skip-git-repo-check", "--json", ...FEATURE, "-s", "workspace-write", "go"], {
    world,
    env: KEY,
  });
  expect(json.code, json.stderr).toBe(0);
  const lines = json.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
  const threadId = text(lines[0], "thread_id");
  const done = lines.filter((line) => at(line, "type") === "item.completed").map((line) => at(line, "item"));
  expect(done).toMatchObject([
    { type: "collab_tool_call", tool: "spawn_agent", status: "completed", sender_thread_id: threadId },
    { type: "collab_tool_call", tool: "wait", status: "completed" },
    { type: "collab_tool_call", tool: "close_agent", status: "completed" },
    { type: "agent_message", text: "parent done" },
  ]);
  const child = text(done[0], "receiver_thread_ids.0");
  const listed = await run(["threads", "list"], { world });
  expect(listed.stdout).toContain(`(child of ${threadId})`);
  const shown = await run(["threads", "show", child], { world });
  expect(shown.stdout).toContain(`child of ${threadId}`);
  const human = await run(["exec", "--skip-git-repo-check", "resume", "--last", ...FEATURE, "again"], {
    world,
    env: KEY,
  });
  expect(human.stderr).toContain(threadId);
  expect(human.stderr).not.toContain(`session id: ${child}`);
});

test("kill -9: neither the parent nor its child is left running, and the parent goes on when it is resumed", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: (request) => {
      if (request.source.includes("again")) return { text: "I am back" };
      // The child never hears from its model.
      if (request.source.includes('"text":"be the child')) return new Promise(() => undefined);
      return request.answers === 0
        ? call("spawn_agent", { message: "be the child" })
        : call("wait_agent", { targets: [childId(request)], timeout_ms: 600_000 });
    },
  });
  await pointAt(world, model.url);
  await using killed = start(["exec", "--skip-git-repo-check", "--json", ...FEATURE, "go"], { world, env: KEY });
  await Promise.all([0, 1, 2].map((number) => model.arrived(number)));
  await killed.sees('"tool":"wait"');
  killed.child.kill("SIGKILL");
  await killed.ended;
  const resumed = await run(["exec", "--skip-git-repo-check", "resume", "--last", ...FEATURE, "again"], {
    world,
    env: KEY,
  });
  expect(resumed.stderr).toContain("2 turns of processes that have ended were closed");
  expect(resumed.stdout).toContain("I am back");
  const rows = (await run(["threads", "list", "--json"], { world })).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
  const byDepth = Object.fromEntries(rows.map((row) => [String(at(row, "parent.depth")), at(row, "lastTurnStatus")]));
  expect(byDepth).toEqual({ "1": "interrupted", undefined: "completed" });
});

test("a question of a child does not outlive its server: the next one finds the child ended and asks nobody", async () => {
  await using world = await openWorld();
  await using _model = await withModel(world);
  let child = "";
  {
    await using server = serve(FEATURE, { world, env: KEY });
    await server.client.initialize();
    const threadId = await startThread(server.client, { approvalPolicy: "untrusted", sandbox: "workspace-write" });
    await startTurn(server.client, threadId, "go");
    child = text(await server.client.note("item/commandExecution/requestApproval"), "params.threadId");
    server.running.child.kill("SIGKILL");
    await server.running.ended;
  }
  await using server = serve(FEATURE, { world, env: KEY });
  await server.client.initialize();
  const { thread } = (await server.client.call("thread/resume", { threadId: child })) as { readonly thread: unknown };
  expect(at(thread, "status")).toEqual({ type: "idle" });
  expect(list(thread, "turns").map((turn) => at(turn, "status"))).toEqual(["interrupted"]);
  expect(server.client.kinds()).not.toContain("item/commandExecution/requestApproval");
});

test("over HTTP a child is listed with its parent alone, its question among all, and its calls are items of the parent", async () => {
  await using world = await openWorld();
  await using _model = await withModel(world);
  await using served = await startServe(world, { args: FEATURE });
  const threadId = text((await served.call("POST", "/api/threads", {})).json, "id");
  const turn = { input: "go", approvalPolicy: "untrusted", sandboxMode: "workspace-write" };
  await served.call("POST", `/api/threads/${threadId}/turns`, turn);
  await served.events(threadId, ({ body }) => body.type === "item.started" && at(body, "item.tool") === "wait");
  const children = (await served.call("GET", `/api/threads?parent=${threadId}`)).json;
  const child = text(children, "data.0.id");
  expect(children).toMatchObject({ data: [{ id: child, parent: { threadId, depth: 1 } }] });
  expect(list((await served.call("GET", "/api/threads")).json, "data").map((row) => at(row, "id"))).toEqual([threadId]);
  await served.events(child, ({ body }) => body.type === "approval.requested");
  const { json: approvals } = await served.call("GET", "/api/approvals");
  expect(approvals).toMatchObject({ data: [{ threadId: child }] });
  const where = `/api/threads/${child}/approvals/${text(approvals, "data.0.id")}`;
  await served.call("POST", where, { decision: "accept" });
  await served.events(threadId, ({ body }) => body.type === "turn.completed");
  const { json: items } = await served.call("GET", `/api/threads/${threadId}/items`);
  expect(list(items, "data").map((entry) => at(entry, "item.tool") ?? at(entry, "item.type"))).toEqual([
    "userMessage",
    "start",
    "wait",
    "close",
    "agentMessage",
  ]);
});
