import { execFileSync } from "node:child_process";
import { stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  command,
  type Client,
  isEndOf,
  KEY,
  list,
  pointAt,
  runTurn,
  type Served,
  serve,
  startThread,
  startTurn,
  text,
} from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

type Script = NonNullable<ModelServerOptions["script"]>;

interface Opened extends AsyncDisposable {
  readonly world: World;
  readonly model: ModelServer;
  readonly served: Served;
  readonly client: Client;
  /** Every request to the model, as text. */
  asked(): readonly string[];
  /** The server is killed, and another one begins on the same home. */
  restart(): Promise<Client>;
}

/** One answer for each request, whatever it holds. */
async function open(script: Script, more: { readonly config?: string } = {}): Promise<Opened> {
  const world = await openWorld();
  let next = 0;
  const model = await startModelServer({ respond: () => script[next++] ?? { text: "no more" } });
  await pointAt(world, model.url);
  const args = more.config === undefined ? [] : ["-c", more.config];
  let served = serve(args, { world, env: KEY });
  await served.client.initialize({ experimentalApi: true });
  const { client } = served;
  return {
    world,
    model,
    get served() {
      return served;
    },
    client,
    asked: () => model.requests.map(({ body }) => JSON.stringify(body)),
    async restart() {
      await served[Symbol.asyncDispose]();
      served = serve(args, { world, env: KEY });
      await served.client.initialize({ experimentalApi: true });
      return served.client;
    },
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const OPEN = { approvalPolicy: "never", sandbox: "workspace-write" };

test("a review is a turn between two marks, inline or in a thread of its own", async () => {
  await using o = await open([{ text: "Looks fine." }, { text: "Still fine." }]);
  const { client, world } = o;
  execFileSync("git", ["init", "-q", world.workspace]);
  const threadId = await startThread(client, OPEN);
  const target = { type: "uncommittedChanges" };
  const from = client.received.length;
  const started = await client.call("review/start", { threadId, target, delivery: "inline" });
  expect(started).toMatchObject({
    reviewThreadId: threadId,
    turn: { status: "inProgress", items: [{ type: "userMessage", content: [{ text: "current changes" }] }] },
  });
  const turnId = text(started, "turn.id");
  await client.waitFor((wire) => isEndOf(wire, turnId), from);
  const marks = client.received
    .slice(from)
    .filter((wire) => String(at(wire, "params.item.type")).endsWith("ReviewMode"));
  expect(marks.map((wire) => [wire.method, at(wire, "params.item.type"), at(wire, "params.item.review")])).toEqual([
    ["item/started", "enteredReviewMode", "current changes"],
    ["item/completed", "enteredReviewMode", "current changes"],
    ["item/started", "exitedReviewMode", "Looks fine."],
    ["item/completed", "exitedReviewMode", "Looks fine."],
  ]);
  expect(o.asked()[0]).toContain("git diff HEAD");
  const stored = await client.call("thread/items/list", { threadId, turnId });
  const types = list(stored, "data").map((entry) => at(entry, "item.type"));
  expect([types[0], types.at(-1)]).toEqual(["enteredReviewMode", "exitedReviewMode"]);

  const detached = await client.call("review/start", { threadId, target, delivery: "detached" });
  const reviewThreadId = text(detached, "reviewThreadId");
  expect(reviewThreadId).not.toBe(threadId);
  await client.waitFor((wire) => isEndOf(wire, text(detached, "turn.id")), from);
  const refused = await client.ask("review/start", { threadId, target: { type: "custom", instructions: " " } });
  expect(refused.error).toMatchObject({ code: -32600, message: "instructions must not be empty" });
  const unknown = await client.ask("review/start", { threadId, target: { type: "baseBranch", branch: "nowhere" } });
  expect(unknown.error?.message).toContain("nowhere");
});

test("a command of the user runs in the sandbox, and the model hears of it", async () => {
  await using o = await open([{ text: "I see." }]);
  const { client, world } = o;
  const threadId = await startThread(client, OPEN);
  const from = client.received.length;
  expect(await client.call("thread/shellCommand", { threadId, command: "echo from-user; touch ../no.txt" })).toEqual(
    {},
  );
  await client.note("turn/completed", from);
  const item = at(
    client.received.find((wire) => wire.method === "item/completed"),
    "params.item",
  );
  expect(item).toMatchObject({ type: "commandExecution", source: "userShell", exitCode: 1 });
  expect(text(item, "aggregatedOutput")).toContain("from-user\n");
  const deltas = client.received.filter(({ method }) => method === "item/commandExecution/outputDelta");
  expect(deltas.map((wire) => text(wire, "params.delta")).join("")).toBe(text(item, "aggregatedOutput"));
  await expect(stat(path.join(world.root, "no.txt"))).rejects.toThrow();
  await runTurn(client, threadId, "go on");
  expect(o.asked()[0]).toContain("from-user");
  const empty = await client.ask("thread/shellCommand", { threadId, command: "  " });
  expect(empty.error).toMatchObject({ code: -32600, message: "command must not be empty" });
});

test("injected items are durable and told with the next request; what cannot be read is refused", async () => {
  await using o = await open([{ text: "one" }, { text: "two" }]);
  const threadId = await startThread(o.client, OPEN);
  await runTurn(o.client, threadId, "first");
  const message = { type: "message", role: "user", content: [{ type: "input_text", text: "injected words" }] };
  const thought = { type: "reasoning", encrypted_content: "x" };
  expect(await o.client.call("thread/inject_items", { threadId, items: [message, thought] })).toEqual({});
  expect(text(await o.client.note("warning"), "params.message")).toContain("reasoning");
  const wrong = await o.client.ask("thread/inject_items", { threadId, items: [3] });
  expect(wrong.error?.message).toContain("items[0] is not a valid response item");
  const none = await o.client.ask("thread/inject_items", { threadId, items: [] });
  expect(none.error?.message).toBe("items must not be empty");
  const client = await o.restart();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  await runTurn(client, threadId, "second");
  expect(o.asked()[1]).toContain("injected words");
});

test("a reverted thread stops before the turn, for readers, for the model and after a restart", async () => {
  await using o = await open([{ text: "one" }, { text: "two" }, { text: "three" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  const first = await runTurn(client, threadId, "alpha");
  const second = await runTurn(client, threadId, "beta");
  const wrong = await client.ask("thread/revert", { threadId, beforeTurnId: "nope" });
  expect(wrong.error).toMatchObject({ code: -32600, message: "turn not found: nope" });
  const from = client.received.length;
  const reverted = await client.call("thread/revert", { threadId, beforeTurnId: second.turnId });
  expect(reverted).toMatchObject({ thread: { id: threadId, turns: [] }, turnsBackwardsCursor: null });
  expect((await client.note("thread/reverted", from)).params).toMatchObject({ threadId });
  expect(client.kinds(from)).toEqual(["answer", "thread/reverted"]);
  const listed = await client.call("thread/turns/list", { threadId });
  expect(list(listed, "data").map((turn) => at(turn, "id"))).toEqual([first.turnId]);
  const again = await o.restart();
  const resumed = await again.call("thread/resume", { threadId });
  expect(list(resumed, "thread.turns").map((turn) => at(turn, "id"))).toEqual([first.turnId]);
  expect(text(await again.note("deprecationNotice"), "params.summary")).toContain("excludeTurns");
  await runTurn(again, threadId, "gamma");
  expect(o.asked()[2]).toContain("alpha");
  expect(o.asked()[2]).not.toContain("beta");
});

test("metadata and settings are kept; settings hold from the next turn on, also after a restart", async () => {
  await using o = await open([{ text: "one" }, { text: "two" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  await runTurn(client, threadId, "first");
  const named = await client.call("thread/metadata/update", { threadId, gitInfo: { branch: "b1", sha: "abc" } });
  expect(named).toMatchObject({ thread: { gitInfo: { branch: "b1", sha: "abc", originUrl: null } } });
  for (const [params, message] of [
    [{ gitInfo: {} }, "gitInfo must include at least one field"],
    [{}, "thread metadata update must include at least one field"],
    [{ gitInfo: { branch: "" } }, "gitInfo.branch must not be empty"],
  ] as const) {
    const { error } = await client.ask("thread/metadata/update", { threadId, ...params });
    expect(error).toMatchObject({ code: -32600, message });
  }
  const from = client.received.length;
  const changes = { threadId, effort: "high", sandboxPolicy: { type: "readOnly" } };
  expect(await client.call("thread/settings/update", changes)).toEqual({});
  const told = await client.note("thread/settings/updated", from);
  expect(at(told, "params.threadSettings")).toMatchObject({ effort: "high", sandboxPolicy: { type: "readOnly" } });
  const file = await client.ask("thread/settings/update", { threadId, cwd: process.execPath });
  expect(file.error?.message).toBe(`${process.execPath} is not a folder`);
  expect(await client.call("thread/settings/update", { threadId })).toEqual({});
  expect(client.received.filter(({ method }) => method === "thread/settings/updated")).toHaveLength(1);
  const again = await o.restart();
  const resumed = await again.call("thread/resume", { threadId, excludeTurns: true });
  expect(resumed).toMatchObject({
    reasoningEffort: "high",
    sandbox: { type: "readOnly" },
    thread: { gitInfo: { branch: "b1" } },
  });
  await runTurn(again, threadId, "second");
  expect(o.asked()[1]).toContain('"effort":"high"');
});

test("a goal is set, changed, read by another client and cleared; its followers hear of it", async () => {
  await using o = await open([{ text: "one" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  await runTurn(client, threadId, "first");
  expect(await client.call("thread/goal/get", { threadId })).toEqual({ goal: null });
  const none = await client.ask("thread/goal/set", { threadId, status: "paused" });
  expect(none.error?.message).toBe(`cannot update goal for thread ${threadId}: no goal exists`);
  const empty = await client.ask("thread/goal/set", { threadId, objective: " " });
  expect(empty.error?.message).toBe("goal objective must not be empty");
  await client.call("thread/goal/set", { threadId, objective: "ship it", status: "paused", tokenBudget: 10 });
  const goal = { threadId, objective: "ship it", status: "paused", tokenBudget: 10, tokensUsed: 0, timeUsedSeconds: 0 };
  expect((await client.note("thread/goal/updated")).params).toMatchObject({ threadId, turnId: null, goal });
  const again = await o.restart();
  expect(await again.call("thread/goal/get", { threadId })).toMatchObject({ goal });
  await again.call("thread/resume", { threadId, excludeTurns: true });
  expect(await again.call("thread/goal/clear", { threadId })).toEqual({ cleared: true });
  await again.note("thread/goal/cleared");
  expect(await again.call("thread/goal/clear", { threadId })).toEqual({ cleared: false });
});

test("queued input waits, can be taken out, and begins when the turn before it has ended", async () => {
  await using o = await open([{ calls: [command("sleep 0.5")] }, { text: "one" }, { text: "two" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  await startTurn(client, threadId, "first");
  await client.note("item/started");
  const add = async (words: string, id: string) => {
    const input = [{ type: "text", text: words }];
    return text(
      await client.call("thread/queue/add", { threadId, input, clientUserMessageId: id }),
      "queuedSubmission.id",
    );
  };
  const [gone, kept] = [await add("never asked", "c1"), await add("asked later", "c2")];
  const waiting = await client.call("thread/queue/list", { threadId });
  expect(waiting).toMatchObject({
    data: [
      { id: gone, clientUserMessageId: "c1", input: [{ type: "text", text: "never asked" }] },
      { id: kept, clientUserMessageId: "c2" },
    ],
    nextCursor: null,
  });
  expect(await client.call("thread/queue/delete", { threadId, queuedSubmissionId: gone })).toEqual({ deleted: true });
  expect(await client.call("thread/queue/delete", { threadId, queuedSubmissionId: gone })).toEqual({ deleted: false });
  await client.waitFor((wire) => isEndOf(wire, kept));
  expect(o.asked().at(-1)).toContain("asked later");
  expect(o.asked().join()).not.toContain("never asked");
  // Two came, one was taken out, one began.
  expect(client.received.filter(({ method }) => method === "thread/queue/changed")).toHaveLength(4);
  expect(await client.call("thread/queue/list", { threadId })).toEqual({ data: [], nextCursor: null });
});

test("commands that run on are listed and ended", async () => {
  const call = { tool: "exec_command", args: { cmd: "sleep 120", yield_time_ms: 250 } };
  await using o = await open([{ calls: [call] }, { text: "it runs" }, { calls: [call] }, { text: "again" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  await runTurn(client, threadId, "start it");
  const found = await client.call("thread/backgroundTerminals/list", { threadId });
  expect(list(found, "data")).toMatchObject([{ command: "sleep 120", osPid: null }]);
  const processId = text(found, "data.0.processId");
  const terminate = (id: string) => client.call("thread/backgroundTerminals/terminate", { threadId, processId: id });
  expect(await terminate("77")).toEqual({ terminated: false });
  expect(await terminate(processId)).toEqual({ terminated: true });
  await runTurn(client, threadId, "once more");
  expect(await client.call("thread/backgroundTerminals/clean", { threadId })).toEqual({});
  expect(await client.call("thread/backgroundTerminals/list", { threadId })).toEqual({ data: [], nextCursor: null });
});

test("threads are found by what was said in them, and not by what they were taken back from", async () => {
  await using o = await open([{ text: 'a needle% in "here"' }, { text: "nothing" }, { text: "nothing" }]);
  const { client } = o;
  const threadId = await startThread(client, OPEN);
  await runTurn(client, threadId, "look");
  const other = await startThread(client, OPEN);
  const { turnId } = await runTurn(client, other, "say type and NEEDLE");
  const search = async (searchTerm: string, more = {}) =>
    list(await client.call("thread/search", { searchTerm, ...more }), "data");
  const ids = (found: readonly unknown[]) => found.map((entry) => at(entry, "thread.id"));
  expect(ids(await search("needle"))).toEqual([other, threadId]);
  expect(await search('needle% in "h')).toMatchObject([{ snippet: 'a needle% in "here"', thread: { id: threadId } }]);
  expect(await search("agentMessage")).toEqual([]);
  expect(ids(await search("needle", { limit: 1 }))).toEqual([other]);
  await client.call("thread/revert", { threadId: other, beforeTurnId: turnId });
  expect(ids(await search("needle"))).toEqual([threadId]);
  const empty = await client.ask("thread/search", { searchTerm: "" });
  expect(empty.error?.message).toBe("thread/search requires a non-empty searchTerm");
  const long = await client.ask("thread/search", { searchTerm: "x".repeat(70_000) });
  expect(long.error?.message).toBe("a search has at most 256 characters; use a shorter query");
});

test("unknown keys of the configuration are told to every client", async () => {
  await using o = await open([], { config: "no_such_key=1" });
  expect(text(await o.client.note("configWarning"), "params.summary")).toContain("no_such_key");
});

test("hooks are told as they ran", async () => {
  await using o = await open([{ text: "one" }], {
    config: 'hooks=[{event="UserPromptSubmit",command="echo noted"}]',
  });
  const threadId = await startThread(o.client, OPEN);
  const { received } = await runTurn(o.client, threadId, "first");
  const runs = received.filter(({ method }) => method?.startsWith("hook/") === true);
  expect(runs.map((wire) => [wire.method, at(wire, "params.run.status")])).toEqual([
    ["hook/started", "running"],
    ["hook/completed", "completed"],
  ]);
  expect(at(runs[1], "params.run")).toMatchObject({ eventName: "userPromptSubmit", handlerType: "command" });
});

test("F17 thread/start: the same clientThreadId is the same thread, told once; with other params it is a conflict", async () => {
  await using world = await openWorld();
  await pointAt(world, "http://127.0.0.1:9");
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const params = { clientThreadId: "mine", model: "gpt-5.5", sandbox: "read-only" };
  const first = await client.call("thread/start", params);
  const [again, third] = await Promise.all([client.call("thread/start", params), client.call("thread/start", params)]);
  expect([text(again, "thread.id"), text(third, "thread.id")]).toEqual(Array(2).fill(text(first, "thread.id")));
  const other = await client.ask("thread/start", { ...params, sandbox: "workspace-write" });
  expect(other.error).toMatchObject({
    code: -32600,
    message: expect.stringContaining("client id mine was used before"),
  });
  expect(client.received.filter(({ method }) => method === "thread/started")).toHaveLength(1);
});
