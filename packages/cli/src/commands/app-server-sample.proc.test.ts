/** `thread/sample`: a question beside the conversation, through the door. */
import { existsSync } from "node:fs";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import {
  at,
  command,
  connectTo,
  isEndOf,
  KEY,
  kindOf,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  startTurn,
  type Client,
} from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

const EXPERIMENTAL = { experimentalApi: true };
const PROMPT = "What was the word?";

async function bodiesOf(world: World, threadId: string): Promise<readonly EventBody[]> {
  await using journal = await openJournal({ home: world.home });
  expect((await journal.verify(threadId)).damage).toEqual([]);
  return (await journal.read({ stream: threadId, after: 0 })).map(({ body }) => body);
}

async function modelFor(world: World, options: ModelServerOptions): Promise<ModelServer> {
  const model = await startModelServer(options);
  await pointAt(world, model.url);
  return model;
}

/** The second request gets no answer: it is the sample. */
const SILENT: ModelServerOptions = {
  respond: () => ({ text: "heddle" }),
  faults: ({ number }) => (number === 1 ? { kind: "stall", at: "after-headers" } : undefined),
};

async function afterOneTurn(client: Client, words = "say a word"): Promise<{ threadId: string; turnId: string }> {
  await client.initialize(EXPERIMENTAL);
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  const { turnId } = await runTurn(client, threadId, words);
  return { threadId, turnId };
}

test("a question is answered with the context of the thread, and only what it took is stored", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world, { respond: ({ number }) => ({ text: `answer ${number}` }) });
  const asked = { threadId: "", turnId: "" };
  {
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    Object.assign(asked, await afterOneTurn(client));
    const { threadId, turnId } = asked;
    const from = client.received.length;
    const params = { threadId, expectedTurnId: turnId, prompt: PROMPT, effort: "low" };
    const sampled = await client.call("thread/sample", params);
    expect(sampled).toEqual({
      responseId: expect.stringMatching(/^resp_/),
      sourceTurnId: turnId,
      text: "answer 1",
      inputTokens: expect.any(Number),
      cachedInputTokens: expect.any(Number),
      outputTokens: expect.any(Number),
    });
    expect(client.kinds(from)).toEqual(["answer"]);
    // The same beginning as the turn had, tools included; then its answer and the question.
    const [turn, sample] = model.requests.map(({ body }) => body);
    expect(at(sample, "instructions")).toEqual(at(turn, "instructions"));
    expect(at(sample, "tools")).toEqual(at(turn, "tools"));
    expect(at(sample, "reasoning.effort")).toBe("low");
    expect(at(sample, "prompt_cache_key")).toEqual(at(turn, "prompt_cache_key"));
    expect(JSON.stringify(at(sample, "input"))).toMatch(/say a word.*answer 0.*What was the word\?/s);
    // The thread goes on as if nothing had been asked.
    await runTurn(client, threadId, "go on");
    expect(JSON.stringify(model.requests[2]?.body)).not.toMatch(/answer 1|What was the word/);
  }
  const bodies = await bodiesOf(world, asked.threadId);
  expect(JSON.stringify(bodies)).not.toMatch(/answer 1|What was the word/);
  expect(bodies.filter(({ type }) => type === "turn.admitted")).toHaveLength(2);
  expect(bodies.filter(({ type }) => type === "background.ran")).toMatchObject([
    {
      purpose: "sample",
      provider: "mock",
      model: "gpt-5.5",
      outcome: "ok",
      usage: { outputTokens: expect.any(Number) },
    },
  ]);
});

test("a tool that the answer calls is not carried out, and there is no text", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world, {
    respond: ({ number }) => (number === 1 ? { text: "I look", calls: [command("touch made.txt")] } : { text: "ok" }),
  });
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { threadId, turnId } = await afterOneTurn(client);
  const from = client.received.length;
  const sampled = await client.call("thread/sample", { threadId, expectedTurnId: turnId, prompt: PROMPT });
  expect(sampled).toMatchObject({ sourceTurnId: turnId, text: null });
  await runTurn(client, threadId, "go on");
  expect(client.kinds(from).filter((kind) => kind.includes("commandExecution"))).toEqual([]);
  expect(existsSync(path.join(world.workspace, "made.txt"))).toBe(false);
});

test("what does not fit is refused before a model is asked", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world, {
    respond: ({ number }) => (number === 2 ? { calls: [command("sleep 60")] } : { text: "ok" }),
  });
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { threadId, turnId } = await afterOneTurn(client);
  const later = await runTurn(client, threadId, "another");
  const refusal = async (params: Record<string, unknown>): Promise<unknown> => {
    const { error } = await client.ask("thread/sample", {
      threadId,
      expectedTurnId: turnId,
      prompt: PROMPT,
      ...params,
    });
    return error;
  };
  expect(await refusal({})).toMatchObject({ code: -32600, data: { code: "turn.not-found", turnId: later.turnId } });
  expect(await refusal({ threadId: "019a0000-0000-7000-8000-000000000000" })).toMatchObject({
    code: -32600,
    message: "thread/sample requires a loaded source",
  });
  expect(await refusal({ threadId: "nope" })).toMatchObject({ code: -32600 });
  for (const prompt of [" ", "ä".repeat(2001)]) {
    const message = "thread/sample requires expectedTurnId and a prompt of at most 4000 bytes";
    expect(await refusal({ prompt })).toMatchObject({ code: -32600, message });
  }
  const running = await startTurn(client, threadId, "work");
  await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  expect(await refusal({ expectedTurnId: running })).toMatchObject({ code: -32600, data: { code: "turn.active" } });
  expect(await refusal({ expectedTurnId: later.turnId })).toMatchObject({ data: { code: "turn.active" } });
  await client.call("turn/interrupt", { threadId, turnId: running });
  await client.waitFor((wire) => isEndOf(wire, running));
  expect(model.requests).toHaveLength(3);
  // An interrupted turn is a finished one.
  expect(await refusal({ expectedTurnId: running })).toBeUndefined();
});

test("clients without experiments cannot ask", async () => {
  await using world = await openWorld();
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const { error } = await served.client.ask("thread/sample/cancel", { requestId: 1 });
  expect(error).toMatchObject({ code: -32600, message: "thread/sample/cancel requires experimentalApi capability" });
});

test("a cancel ends the question with that id, of its own connection alone", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world, SILENT);
  const asked = { threadId: "", turnId: "" };
  {
    await using server = await serveOnSocket(world);
    using first = await connectTo(server.socket);
    using second = await connectTo(server.socket);
    Object.assign(asked, await afterOneTurn(first.client));
    await second.client.initialize(EXPERIMENTAL);
    const params = { threadId: asked.threadId, expectedTurnId: asked.turnId, prompt: PROMPT };
    first.client.send({ id: "my sample", method: "thread/sample", params });
    await model.arrived(1);
    expect(await second.client.call("thread/sample/cancel", { requestId: "my sample" })).toEqual({});
    expect(await first.client.call("thread/sample/cancel", { requestId: "another" })).toEqual({});
    // Still there: its id is taken.
    first.client.send({ id: "my sample", method: "thread/sample", params });
    const taken = await first.client.waitFor(({ id }) => id === "my sample");
    expect(taken.error?.message).toContain("is running");
    const from = first.client.received.length;
    expect(await first.client.call("thread/sample/cancel", { requestId: "my sample" })).toEqual({});
    const { error } = await first.client.waitFor(({ id }) => id === "my sample", from);
    expect(error).toMatchObject({ code: -32603, message: "sample canceled", data: { code: "turn.interrupted" } });
    // The connection lives on, and the id is free again.
    first.client.send({ id: "my sample", method: "thread/sample", params });
    const answered = await first.client.waitFor(({ id, result }) => id === "my sample" && result !== undefined, from);
    expect(answered.result).toMatchObject({ text: "heddle" });
  }
  const ran = (await bodiesOf(world, asked.threadId)).filter(({ type }) => type === "background.ran");
  expect(ran).toMatchObject([{ outcome: "failed", failureCode: "turn.interrupted" }, { outcome: "ok" }]);
});

test.each(["the client goes", "the server stops"])("a question does not outlive its connection: %s", async (how) => {
  await using world = await openWorld();
  await using model = await modelFor(world, SILENT);
  await using server = await serveOnSocket(world);
  using watching = await connectTo(server.socket);
  await watching.client.initialize(EXPERIMENTAL);
  using asking = await connectTo(server.socket);
  const { threadId, turnId } = await afterOneTurn(asking.client);
  asking.client.send({ id: 99, method: "thread/sample", params: { threadId, expectedTurnId: turnId, prompt: PROMPT } });
  await model.arrived(1);
  if (how === "the client goes") {
    asking.socket.destroy();
    await expect.poll(() => model.openConnections, { timeout: 60_000 }).toBe(0);
    // The server has stayed, and so has the thread.
    await watching.client.call("thread/resume", { threadId });
    const params = { threadId, expectedTurnId: turnId, prompt: PROMPT };
    expect(await watching.client.call("thread/sample", params)).toMatchObject({ text: "heddle" });
  }
  server.running.child.kill("SIGTERM");
  expect((await server.running.ended).signal).toBeNull();
  const ran = (await bodiesOf(world, threadId)).filter(({ type }) => type === "background.ran");
  expect(ran[0]).toMatchObject({ purpose: "sample", outcome: "failed", failureCode: "turn.interrupted" });
});
