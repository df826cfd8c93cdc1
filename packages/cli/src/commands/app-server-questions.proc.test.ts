import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  connectTo,
  isEndOf,
  KEY,
  list,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  text,
  type Client,
} from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

const EXPERIMENTAL = { experimentalApi: true };
const PLAN = { mode: "plan", settings: { model: "gpt-5.5", reasoning_effort: null, developer_instructions: null } };
const QUESTION = {
  id: "which",
  header: "Pick",
  question: "Which of them?",
  options: [
    { label: "A", description: "the first" },
    { label: "B", description: "the second" },
  ],
};
const ASK = { calls: [{ tool: "request_user_input", args: { questions: [QUESTION] } }] };
const SCRIPT = [ASK, { text: "done" }];

async function withModel(world: World) {
  // Other requests (titles of chats) are no part of the script.
  const model = await startModelServer({
    respond: ({ body }) => (JSON.stringify(body).includes("function_call_output") ? { text: "done" } : ASK),
  });
  await pointAt(world, model.url);
  return model;
}

async function plan(client: Client, threadId: string): Promise<string> {
  const input = [{ type: "text", text: "plan it" }];
  return text(await client.call("turn/start", { threadId, input, collaborationMode: PLAN }), "turn.id");
}

function told(model: Awaited<ReturnType<typeof startModelServer>>): string {
  return JSON.stringify(model.requests.at(-1)?.body);
}

const tools = (body: unknown) => list(body, "tools").map((tool) => at(tool, "name"));

test("two clients are asked what the agent asks; the first answer counts, the other is told, the model hears it", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using server = await serveOnSocket(world);
  using one = await connectTo(server.socket);
  using two = await connectTo(server.socket);
  await one.client.initialize(EXPERIMENTAL);
  await two.client.initialize(EXPERIMENTAL);
  const threadId = await startThread(one.client, { approvalPolicy: "on-request" });
  await two.client.call("thread/resume", { threadId });
  const turnId = await plan(one.client, threadId);
  const [first, second] = [
    await one.client.note("item/tool/requestUserInput"),
    await two.client.note("item/tool/requestUserInput"),
  ];
  expect(first).toMatchObject({
    params: {
      threadId,
      turnId,
      questions: [{ ...QUESTION, isOther: true, isSecret: false }],
      isBlocking: true,
      autoResolutionMs: null,
    },
  });
  expect(second.id).toBe(first.id);
  expect(one.client.kinds()).toContain("thread/status/changed active waitingOnUserInput");
  two.client.send({ id: second.id, result: { answers: { which: { answers: ["B", "or none"] } } } });
  one.client.send({ id: first.id, result: { answers: { which: { answers: ["A"] } } } });
  for (const { client } of [one, two]) {
    const over = await client.note("serverRequest/resolved");
    expect(over).toMatchObject({ params: { threadId, requestId: first.id } });
    expect(await client.waitFor((wire) => isEndOf(wire, turnId))).toMatchObject({
      params: { turn: { status: "completed" } },
    });
  }
  expect(told(model)).toContain(
    JSON.stringify(JSON.stringify({ answers: { which: { answers: ["B", "or none"] } } })).slice(1, -1),
  );
  expect(tools(model.requests[0]?.body)).toContain("request_user_input");
  expect(at(model.requests[0]?.body, "instructions")).toContain("The user wants a plan");
  // The mode stays until another is chosen.
  const resumed = await two.client.call("thread/resume", { threadId, excludeTurns: true });
  expect(at(resumed, "collaborationMode.mode")).toBe("plan");
});

test("with ask_user the agent may ask without planning; over HTTP the question is listed, answered, and who answered is on record", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using served = await startServe(world, { args: ["-c", "ask_user=true"] });
  const threadId = text((await served.call("POST", "/api/threads", {})).json, "id");
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go", approvalPolicy: "on-request" });
  const asked = await served.events(threadId, ({ body }) => body.type === "approval.requested");
  const { data } = (await served.call("GET", "/api/approvals")).json as { readonly data: readonly unknown[] };
  expect(data).toMatchObject([{ threadId, question: { kind: "userInput", questions: [QUESTION] } }]);
  const where = `/api/threads/${threadId}/approvals/${text(data, "0.id")}`;
  const wrong = await served.call("POST", where, { decision: "accept", answers: { other: ["A"] } });
  expect(wrong).toMatchObject({
    status: 400,
    json: { error: { message: expect.stringContaining("there are: which") } },
  });
  const answered = await served.call("POST", where, { decision: "accept", answers: { which: ["A"] } });
  expect(answered.status).toBe(200);
  const rest = await served.events(threadId, ({ body }) => body.type === "turn.completed", asked.at(-1)?.seq ?? 0);
  expect(rest.find(({ body }) => body.type === "approval.resolved")).toMatchObject({
    author: "user:owner",
    body: { decision: "accept", answers: { which: ["A"] } },
  });
  expect(told(model)).toContain("which");
});

test("a chat that plans is asked the same question, and answers it", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  await using server = await serveOnSocket(world);
  using chat = await connectTo(server.socket);
  const { client } = chat;
  await client.call("events.subscribe", { topic: "chat.*" });
  const chatId = text(
    await client.call("chat.create", { settings: { collaboration_mode: { mode: "plan" } } }),
    "chat_id",
  );
  await client.call("chat.message.send", { chat_id: chatId, message: "plan it" });
  const asked = await client.note("chat.approval.required");
  expect(asked).toMatchObject({
    params: {
      kind: "userInput",
      questions: [QUESTION],
      chat_id: chatId,
      available_decisions: ["accept", "decline", "cancel"],
    },
  });
  const request_id = text(asked, "params.request_id");
  const answers = { which: ["B"] };
  await client.call("chat.approval.respond", { request_id, decision: "accept", answers });
  expect(await client.note("chat.approval.resolved")).toMatchObject({
    params: { decision: "accept", by: "user:owner", answers },
  });
  expect(await client.note("chat.turn.completed")).toMatchObject({ params: { status: "completed" } });
  const results = model.requests.map(({ body }) => JSON.stringify(body));
  expect(results.some((body) => body.includes("function_call_output") && body.includes("B"))).toBe(true);
});

test("an interrupt while the user is asked ends the turn once and takes the question back", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: SCRIPT });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { approvalPolicy: "on-request" });
  const turnId = await plan(client, threadId);
  const question = await client.note("item/tool/requestUserInput");
  await client.call("turn/interrupt", { threadId, turnId });
  await client.waitFor((wire) => isEndOf(wire, turnId));
  client.send({ id: question.id, result: { answers: {} } });
  await client.call("thread/loaded/list");
  expect(client.kinds().filter((kind) => kind.startsWith("turn/completed"))).toEqual(["turn/completed interrupted"]);
  expect(await client.note("serverRequest/resolved")).toMatchObject({ params: { requestId: question.id } });
  expect(model.requests).toHaveLength(1);
});

test("words of a client for its mode take the place of Heddle's", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "a plan" }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client);
  const collaborationMode = { mode: "plan", settings: { ...PLAN.settings, developer_instructions: "Be brief." } };
  await client.call("turn/start", { threadId, input: [{ type: "text", text: "go" }], collaborationMode });
  await client.note("turn/completed");
  const told = JSON.stringify(model.requests[0]?.body);
  expect(told).toContain("Be brief.");
  expect(told).not.toContain("proposed_plan");
});

test("where nobody can be asked the tool is not there, and a call of it is answered so", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ body }) => (JSON.stringify(body).includes("function_call_output") ? { text: "done" } : ASK),
  });
  await pointAt(world, model.url);
  await using served = serve(["-c", "ask_user=true"], { world, env: KEY });
  const { client } = served;
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { approvalPolicy: "never" });
  const { ended } = await runTurn(client, threadId, "go");
  expect(ended).toMatchObject({ params: { turn: { status: "completed" } } });
  expect(tools(model.requests[0]?.body)).not.toContain("request_user_input");
  expect(told(model)).toContain("request_user_input is not available");
  client.end();
  await served.running.ended;
  const exec = await run(["exec", "--skip-git-repo-check", "-c", "ask_user=true", "go"], { world, env: KEY });
  expect(exec.code).toBe(0);
  expect(tools(model.requests.at(-2)?.body)).not.toContain("request_user_input");
});

test("a chat is told how a running item stands, about once a second", async () => {
  await using world = await openWorld();
  const sh = "until test -e stop; do echo tick; sleep 0.2; done";
  await using model = await startModelServer({
    respond: ({ body }) =>
      JSON.stringify(body).includes("function_call_output")
        ? { text: "done" }
        : { calls: [{ tool: "exec_command", args: { cmd: sh, yield_time_ms: 30_000 } }] },
  });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using chat = await connectTo(server.socket);
  const { client } = chat;
  await client.call("events.subscribe", { topic: "chat.item.*" });
  const settings = { sandbox: "workspace-write", approval_policy: "never" };
  const chatId = text(await client.call("chat.create", { settings }), "chat_id");
  await client.call("chat.message.send", { chat_id: chatId, message: "run it" });
  const updated = await client.note("chat.item.updated");
  expect(updated).toMatchObject({
    params: { live: true, chat_id: chatId, item: { type: "commandExecution", status: "inProgress" } },
  });
  expect(text(updated, "params.item.aggregatedOutput")).toMatch(/^(tick\n)+$/);
  const started = await client.note("chat.item.started");
  expect(at(updated, "params.seq")).toBeGreaterThanOrEqual(Number(at(started, "params.seq")));
  await world.file("workspace/stop", "");
  const over = await client.waitFor(
    (wire) => wire.method === "chat.item.completed" && at(wire, "params.item.type") === "commandExecution",
  );
  expect(at(over, "params.itemId")).toBe(at(updated, "params.itemId"));
});

test("a question to the user outlives its server: the next one asks it again, and the answer lets the turn go on", async () => {
  await using world = await openWorld();
  await using model = await withModel(world);
  const first = await serveOnSocket(world);
  using one = await connectTo(first.socket);
  await one.client.initialize(EXPERIMENTAL);
  const threadId = await startThread(one.client, { approvalPolicy: "on-request" });
  const turnId = await plan(one.client, threadId);
  const asked = await one.client.note("item/tool/requestUserInput");
  first.running.child.kill("SIGKILL");
  await first.running.ended;

  await using second = await serveOnSocket(world);
  using two = await connectTo(second.socket);
  await two.client.initialize(EXPERIMENTAL);
  await two.client.call("thread/resume", { threadId, excludeTurns: true });
  const again = await two.client.note("item/tool/requestUserInput");
  expect(again.params).toEqual(asked.params);
  expect(again).toMatchObject({ params: { threadId, turnId, questions: [{ id: "which" }] } });
  two.client.send({ id: again.id, result: { answers: { which: { answers: ["B"] } } } });
  const end = await two.client.waitFor((wire) => isEndOf(wire, turnId));
  expect(end).toMatchObject({ params: { turn: { status: "completed" } } });
  expect(told(model)).toContain(String.raw`\"which\":{\"answers\":[\"B\"]}`);
});
