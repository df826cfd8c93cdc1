import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { command, connectTo, KEY, pointAt, startThread } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";
import { call, isTurnEnd, newThread, startServe } from "../../test/serve-client.ts";

test("a turn is started, followed and read over HTTP, with what it used", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo hi")] }, { text: "done" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const threadId = await newThread(served);
  const begun = await served.call("POST", `/api/threads/${threadId}/turns`, { input: "say hi", clientId: "one" });
  expect(begun).toMatchObject({ status: 202, json: { threadId, clientId: "one", settings: { model: "gpt-5.5" } } });
  const events = await served.events(threadId, isTurnEnd);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
  const turn = await served.call("GET", `/api/threads/${threadId}/turns/${String(begun.json["id"])}`);
  expect(turn.json).toMatchObject({ status: "completed", sandboxLevel: "namespaces", runner: "embedded" });
  expect(turn.json["usage"]).toEqual(events.at(-1)?.body["usage"]);
  const items = await served.call("GET", `/api/threads/${threadId}/items?limit=2`);
  expect(items.json).toMatchObject({
    data: [{ item: { type: "userMessage" } }, { item: { type: "commandExecution", status: "completed", exitCode: 0 } }],
  });
  const rest = await served.call("GET", `/api/threads/${threadId}/items?after=${String(items.json["nextAfter"])}`);
  expect(rest.json).toMatchObject({ data: [{ item: { type: "agentMessage", text: "done" } }], nextAfter: null });
});

test("F17 G2: a hundred requests with one client id are one turn, and other words with it are a conflict", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "once" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const threadId = await newThread(served);
  const start = (input: string, clientId: string, more: object = {}) =>
    served.call("POST", `/api/threads/${threadId}/turns`, { input, clientId, ...more });
  const answers = await Promise.all(Array.from({ length: 100 }, () => start("hello", "c-1")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  const ids = new Set(answers.map(({ json }) => json["id"]));
  expect(ids.size).toBe(1);
  await served.events(threadId, isTurnEnd);
  expect(await start("other words", "c-1")).toMatchObject({
    status: 409,
    json: { error: { code: "store.id-conflict" } },
  });
  expect(await start("hello", "c-1", { model: "other" })).toMatchObject({ status: 409 });
  // Another turn with other settings in between does not change what the first request meant.
  await start("next", "c-2", { model: "other" });
  await served.events(
    threadId,
    ({ body, seq }) => body.type === "turn.completed" && seq > 0,
    await lastSeq(served, threadId),
  );
  expect((await start("hello", "c-1")).json["id"]).toBe([...ids][0]);
  expect(model.requests).toHaveLength(2);
});

async function lastSeq(served: Awaited<ReturnType<typeof startServe>>, threadId: string): Promise<number> {
  const { json } = await served.call("GET", `/api/threads/${threadId}/turns`);
  const [newest] = json["data"] as readonly { readonly seq: number }[];
  return newest?.seq ?? 0;
}

test("F16: a client that vanishes changes nothing, and finds everything when it comes back", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [command("echo begun; sleep 1; echo over")] }, { text: "done" }],
  });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const threadId = await newThread(served);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  const before = await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const after = await served.events(threadId, isTurnEnd, before.at(-1)?.seq ?? 0);
  const all = [...before, ...after];
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, at) => at + 1));
  expect(all.at(-1)?.body).toMatchObject({ type: "turn.completed", status: "completed" });
});

test("F29: a question is listed, the first answer stands, and a viewer cannot give it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("touch asked")] }, { text: "done" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const { stdout } = await run(["token", "add", "viewer", "vic"], { world });
  const threadId = await newThread(served);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go", approvalPolicy: "untrusted" });
  await served.events(threadId, ({ body }) => body.type === "approval.requested");
  const { json } = await served.call("GET", "/api/approvals");
  const [question] = json["data"] as readonly { readonly id: string }[];
  expect(question).toMatchObject({ threadId, question: { kind: "command", command: "touch asked" } });
  const where = `/api/threads/${threadId}/approvals/${question?.id ?? ""}`;
  const viewer = { url: served.url, token: stdout.trim() };
  expect((await call(viewer, "GET", "/api/approvals")).status).toBe(200);
  expect((await call(viewer, "POST", where, { decision: "accept" })).status).toBe(403);
  const answers = await Promise.all([1, 2, 3].map(() => served.call("POST", where, { decision: "accept" })));
  expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(["200", "409", "409"]);
  await served.events(threadId, isTurnEnd);
  expect((await served.call("GET", "/api/approvals")).json).toEqual({ data: [] });
});

test("F31: a turn is steered and interrupted, and the next one starts", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [command("echo begun; exec sleep 61")] }, { text: "next" }],
  });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const threadId = await newThread(served);
  const { json } = await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go" });
  const turn = `/api/threads/${threadId}/turns/${String(json["id"])}`;
  await served.events(threadId, ({ body }) => body.type === "tool.intended");
  const busy = await served.call("POST", `/api/threads/${threadId}/turns`, { input: "too soon" });
  expect(busy).toMatchObject({ status: 409, json: { error: { code: "turn.active" } } });
  expect((await served.call("POST", `${turn}/steer`, { input: "also this" })).status).toBe(202);
  expect((await served.call("POST", `${turn}/interrupt`, {})).status).toBe(202);
  const events = await served.events(threadId, isTurnEnd);
  expect(events.at(-1)?.body).toMatchObject({ status: "interrupted" });
  expect(events.some(({ body }) => body.type === "turn.steered")).toBe(true);
  expect((await served.call("POST", `${turn}/interrupt`, {})).status).toBe(404);
  const after = events.at(-1)?.seq ?? 0;
  expect((await served.call("POST", `/api/threads/${threadId}/turns`, { input: "again" })).status).toBe(202);
  expect((await served.events(threadId, isTurnEnd, after)).at(-1)?.body).toMatchObject({ status: "completed" });
});

test("a fork, an archive and a deletion", async () => {
  await using world = await openWorld();
  await using served = await startServe(world);
  const threadId = await newThread(served);
  const fork = await served.call("POST", `/api/threads/${threadId}/fork`, {});
  expect(fork).toMatchObject({ status: 201, json: { forkedFrom: { threadId, seq: 1 } } });
  expect(await served.call("DELETE", `/api/threads/${threadId}`)).toMatchObject({ status: 409 });
  expect((await served.call("DELETE", `/api/threads/${String(fork.json["id"])}`)).json).toEqual({ ok: true });
  expect((await served.call("POST", `/api/threads/${threadId}/archive`, {})).json).toMatchObject({ isArchived: true });
  const refused = await served.call("POST", `/api/threads/${threadId}/turns`, { input: "x" });
  expect(refused).toMatchObject({ status: 400 });
  expect((await served.call("POST", `/api/threads/${threadId}/unarchive`, {})).json).toMatchObject({
    isArchived: false,
  });
});

test("JSON-RPC on the private socket and HTTP on the port are doors of one engine", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "hello from both" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const socket = path.join(world.home, "serve.sock");
  expect((await stat(socket)).mode & 0o777).toBe(0o600);
  using connected = await connectTo(socket);
  await connected.client.initialize();
  const threadId = await startThread(connected.client);
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "from HTTP" });
  const ended = await connected.client.note("turn/completed");
  expect(ended.params).toMatchObject({ threadId, turn: { status: "completed" } });
  const published = JSON.parse(
    await readFile(path.join(import.meta.dirname, "../../../../schemas/http-openapi.json"), "utf8"),
  ) as Readonly<Record<string, unknown>>;
  expect((await served.call("GET", "/api/openapi.json")).json["paths"]).toEqual(published["paths"]);
  const printed = await run(["schema", "http"], { world, env: KEY });
  expect(JSON.parse(printed.stdout)).toEqual(published);
});

test("a run of exec beside the server is followed and read like any other", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo beside")] }, { text: "done" }] });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const running = run(["exec", "-s", "workspace-write", "go"], { world, env: KEY });
  const listed = async () =>
    (await served.call("GET", "/api/threads")).json["data"] as readonly { readonly id: string }[];
  await expect.poll(async () => (await listed()).length, { timeout: 60_000 }).toBe(1);
  const [thread] = await listed();
  const events = await served.events(thread?.id ?? "", isTurnEnd);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
  expect(events.at(-1)?.body).toMatchObject({ status: "completed" });
  expect((await running).code).toBe(0);
});

test("the example of the documentation runs, and is short", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "hello from the example" }] });
  await pointAt(world, model.url);
  await using _served = await startServe(world);
  const example = path.join(import.meta.dirname, "../../../../examples/http-sse.mjs");
  const ran = await run(["say hello"], { world, launcher: example });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toMatch(/^hello from the example\ncompleted, \d+ output tokens\n$/);
  expect((await readFile(example, "utf8")).trimEnd().split("\n").length).toBeLessThanOrEqual(60);
});
