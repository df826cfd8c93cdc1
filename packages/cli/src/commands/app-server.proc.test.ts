import { readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  command,
  isEndOf,
  KEY,
  kindOf,
  list,
  pointAt,
  runTurn,
  serve,
  startThread,
  startTurn,
  text,
} from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

test("a turn says what the original says, in its order", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [
      { reasoning: "Thinking hard about it", calls: [command("echo one; sleep 0.3; echo two")] },
      { text: "All done, both lines printed." },
    ],
    deltaChars: 8,
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const begun = await client.call("thread/start", { cwd: world.workspace });
  const threadId = text(begun, "thread.id");
  expect(begun).toMatchObject({
    thread: { preview: "", status: { type: "idle" }, cwd: world.workspace, source: "vscode", turns: [] },
    model: "gpt-5.5",
    modelProvider: "mock",
    approvalPolicy: "on-request",
    sandbox: { type: "readOnly", networkAccess: false },
  });
  await client.note("thread/started");
  expect(client.kinds()).toEqual(["answer", "remoteControl/status/changed", "answer", "thread/started"]);
  const { kinds, received, turnId } = await runTurn(client, threadId, "Do it");
  // As recorded from codex-cli 0.166, without its rate limits and its remarks on model metadata.
  expect(kinds.filter((kind, index) => !(kind.endsWith("elta") && kinds[index - 1] === kind))).toEqual([
    "answer",
    "thread/status/changed active",
    "turn/started",
    "item/started userMessage",
    "item/completed userMessage",
    "item/started reasoning",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/completed reasoning",
    "item/started commandExecution",
    "item/commandExecution/outputDelta",
    "item/completed commandExecution",
    "thread/tokenUsage/updated",
    "item/started agentMessage",
    "item/agentMessage/delta",
    "item/completed agentMessage",
    "thread/tokenUsage/updated",
    "thread/status/changed idle",
    "turn/completed completed",
  ]);
  expect(
    at(
      received.find((wire) => kindOf(wire) === "item/completed commandExecution"),
      "params.item",
    ),
  ).toMatchObject({
    command: "/bin/bash -c 'echo one; sleep 0.3; echo two'",
    aggregatedOutput: "one\ntwo\n",
    exitCode: 0,
    status: "completed",
  });
  const said = (method: string): string =>
    received.flatMap((wire) => (wire.method === method ? [text(wire, "params.delta")] : [])).join("");
  expect(said("item/commandExecution/outputDelta")).toBe("one\ntwo\n");
  expect(said("item/agentMessage/delta")).toBe("All done, both lines printed.");
  const notes = received.filter(({ method }) => method !== undefined);
  expect(notes.every(({ emittedAtMs }) => typeof emittedAtMs === "number")).toBe(true);
  expect(received.some((wire) => "jsonrpc" in wire)).toBe(false);
  expect(at(received.at(-1), "params.turn")).toMatchObject({
    id: turnId,
    itemsView: "summary",
    items: [{ text: "All done, both lines printed." }],
  });
  const items = list(await client.call("thread/items/list", { threadId }), "data");
  expect(items.map((entry) => at(entry, "item.type"))).toEqual([
    "userMessage",
    "reasoning",
    "commandExecution",
    "agentMessage",
  ]);
  client.end();
  expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
});

test("threads are listed, named, read in pages, forked, compacted, deleted", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: ({ number }) => ({ text: `answer ${number}` }) });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: { ...KEY, CODEX_INTERNAL_ORIGINATOR_OVERRIDE: "some_editor" } });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  expect(await client.call("thread/list")).toMatchObject({ data: [], nextCursor: null });
  for (const words of ["first", "second", "third"]) await runTurn(client, threadId, words);
  // Who started the server counts before the client.
  expect(await client.call("thread/read", { threadId })).toMatchObject({ thread: { originator: "some_editor" } });
  expect(model.requests[0]?.headers.originator).toBe("some_editor");

  const newest = await client.call("thread/turns/list", { threadId, limit: 2 });
  const asked = (page: unknown): unknown[] => list(page, "data").map((turn) => at(turn, "items.0.content.0.text"));
  expect(asked(newest)).toEqual(["third", "second"]);
  const rest = await client.call("thread/turns/list", { threadId, limit: 2, cursor: at(newest, "nextCursor") });
  expect(rest).toMatchObject({ data: [{ items: [{}, { text: "answer 0" }] }], nextCursor: null });
  const anchor = at(rest, "backwardsCursor");
  expect(asked(await client.call("thread/turns/list", { threadId, sortDirection: "asc", cursor: anchor }))).toEqual([
    "first",
    "second",
    "third",
  ]);
  const read = await client.call("thread/read", { threadId, includeTurns: true });
  expect(read).toMatchObject({ thread: { preview: "first", turns: [{ itemsView: "full" }, {}, { error: null }] } });

  await client.call("thread/name/set", { threadId, name: "My thread" });
  expect((await client.note("thread/name/updated")).params).toEqual({
    threadId,
    threadName: "My thread",
    seq: expect.any(Number),
  });
  const found = await client.call("thread/list", { searchTerm: "my THREAD" });
  expect(found).toMatchObject({ data: [{ id: threadId, name: "My thread", preview: "first" }] });
  expect(await client.call("thread/list", { cwd: "/elsewhere" })).toMatchObject({ data: [] });
  expect(await client.call("thread/list", { sourceKinds: ["exec"] })).toMatchObject({ data: [] });
  expect(await client.call("thread/loaded/list")).toEqual({ data: [threadId], nextCursor: null });

  const firstTurn = text(read, "thread.turns.0.id");
  const forked = await client.call("thread/fork", { threadId, lastTurnId: firstTurn });
  expect(forked).toMatchObject({ thread: { forkedFromId: threadId, turns: [{ id: firstTurn }] } });
  const forkId = text(forked, "thread.id");
  await runTurn(client, forkId, "in the fork");
  expect(list(await client.call("thread/turns/list", { threadId: forkId }), "data")).toHaveLength(2);

  const from = client.received.length;
  expect(await client.call("thread/compact/start", { threadId })).toEqual({});
  await client.note("turn/completed", from);
  expect((await client.note("item/completed", from)).params).toMatchObject({ item: { type: "contextCompaction" } });

  expect(await client.call("thread/unsubscribe", { threadId: forkId })).toEqual({ status: "unsubscribed" });
  expect(await client.call("thread/unsubscribe", { threadId: forkId })).toEqual({ status: "notSubscribed" });
  await client.call("thread/archive", { threadId: forkId });
  expect((await client.note("thread/archived")).params).toEqual({ threadId: forkId, seq: expect.any(Number) });
  expect(await client.call("thread/list")).toMatchObject({ data: [{ id: threadId }] });
  expect(await client.call("thread/list", { archived: true })).toMatchObject({ data: [{ id: forkId }] });
  expect((await client.ask("thread/resume", { threadId: forkId })).error?.message).toContain("is archived");
  const back = await client.call("thread/unarchive", { threadId: forkId });
  expect(back).toMatchObject({ thread: { id: forkId, status: { type: "notLoaded" } } });
  const exported = text(await client.call("thread/read", { threadId: forkId, includeTurns: true }), "thread.path");
  expect(path.basename(exported)).toMatch(new RegExp(`^rollout-.*-${forkId}\\.jsonl$`));
  expect((await readFile(exported, "utf8")).split("\n")[0]).toContain("heddle-export");
  await client.call("thread/delete", { threadId: forkId });
  await expect(readFile(exported)).rejects.toMatchObject({ code: "ENOENT" });
  expect((await client.note("thread/deleted")).params).toEqual({ threadId: forkId, seq: expect.any(Number) });
  const gone = { code: -32600, message: `thread not loaded: ${forkId}` };
  expect((await client.ask("thread/read", { threadId: forkId })).error).toEqual(gone);
});

test("input during a turn steers it; an interrupt ends it and everything in it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ number }) =>
      number === 0
        ? { calls: [command("sleep 0.7; echo slept")] }
        : number === 1
          ? { text: "Hello" }
          : { calls: [command("echo begun; exec sleep 30")] },
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const turnId = await startTurn(client, threadId, "slow");
  await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  const steer = async (expectedTurnId: string) =>
    client.ask("turn/steer", { threadId, expectedTurnId, input: [{ type: "text", text: "steered text" }] });
  expect((await steer("wrong")).error?.message).toBe(`expected active turn id \`wrong\` but found \`${turnId}\``);
  expect((await steer(turnId)).result).toEqual({ turnId });
  expect(await startTurn(client, threadId, "second")).toBe(turnId);
  await client.waitFor((wire) => isEndOf(wire, turnId));
  const messages = client.received.filter((wire) => kindOf(wire) === "item/completed userMessage");
  expect(messages.map((wire) => at(wire, "params.item.content.0.text"))).toEqual(["slow", "steered text", "second"]);
  expect((await steer(turnId)).error?.message).toBe("no active turn to steer");

  const from = client.received.length;
  const next = await startTurn(client, threadId, "int");
  await client.note("item/commandExecution/outputDelta", from);
  const interrupt = async (id: string) => client.ask("turn/interrupt", { threadId, turnId: id });
  expect((await interrupt("whatever")).error?.message).toBe(`expected active turn id whatever but found ${next}`);
  expect((await interrupt(next)).result).toEqual({});
  const ended = await client.waitFor((wire) => isEndOf(wire, next), from);
  expect(at(ended, "params.turn")).toMatchObject({ status: "interrupted", error: null, items: [] });
  // Unlike the original: what began has an end, with what it printed.
  const item = client.received.slice(from).find((wire) => kindOf(wire) === "item/completed commandExecution");
  expect(at(item, "params.item")).toMatchObject({ outcome: "interrupted", aggregatedOutput: "begun\n" });
  expect((await interrupt(next)).error?.message).toBe("no active turn to interrupt");
});

test("a turn that fails says so three times, and the next one works", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ text: "ok" }],
    faults: [
      { kind: "status", status: 400, body: { error: { message: "bad model", type: "invalid_request_error" } } },
      { kind: "status", status: 500 },
    ],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const failed = await runTurn(client, threadId, "err");
  expect(failed.kinds.slice(-3)).toEqual(["thread/status/changed systemError", "error", "turn/completed failed"]);
  expect(failed.received.at(-2)?.params).toMatchObject({ willRetry: false, error: { codexErrorInfo: "badRequest" } });
  expect(text(failed.ended, "params.turn.error.message")).toContain("bad model");
  const retried = await runTurn(client, threadId, "again");
  expect(retried.received.find(({ method }) => method === "error")?.params).toMatchObject({
    willRetry: true,
    error: { message: "Reconnecting... 1/2", codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: null } } },
  });
  expect(retried.kinds.at(-1)).toBe("turn/completed completed");
});

test("SIGTERM ends running turns with their terminal event", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo begun; exec sleep 61")] }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const threadId = await startThread(client);
  await startTurn(client, threadId, "go");
  await client.note("item/commandExecution/outputDelta");
  running.child.kill("SIGTERM");
  expect((await client.note("turn/completed")).params).toMatchObject({ turn: { status: "interrupted" } });
  expect((await running.ended).code).toBe(143);
  const shown = await run(["threads", "show", threadId], { world, env: KEY });
  expect(shown.stdout).toContain("turn.completed");
});

test("the end of standard input ends the server, its turns with their terminal event, and commands with an answer", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo begun; exec sleep 62")] }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const threadId = await startThread(client);
  await startTurn(client, threadId, "go");
  await client.note("item/commandExecution/outputDelta");
  const streamed = { processId: "p", streamStdoutStderr: true, disableTimeout: true };
  const executed = client.call("command/exec", { command: ["sh", "-c", "echo begun; exec sleep 63"], ...streamed });
  await client.note("command/exec/outputDelta");
  client.end();
  expect(await executed).toMatchObject({ exitCode: 137 });
  expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
  const shown = await run(["threads", "show", threadId], { world, env: KEY });
  expect(shown.stdout).toMatch(/turn\.completed.*interrupted/);
});

test("settings of a thread come from its client, then from the configuration", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "{}" }] });
  await pointAt(world, model.url);
  await using served = serve(["-c", 'model_reasoning_effort="low"'], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const begun = await client.call("thread/start", {
    model: "other-model",
    sandbox: "read-only",
    approvalPolicy: "never",
    config: { model_reasoning_effort: "high", features: { x: true }, frobnication: 1 },
    developerInstructions: "be brief",
  });
  expect(begun).toMatchObject({
    model: "other-model",
    reasoningEffort: "high",
    approvalPolicy: "never",
    sandbox: { type: "readOnly" },
  });
  const threadId = text(begun, "thread.id");
  expect((await client.note("warning")).params).toEqual({
    threadId,
    message: "these have no effect in heddle app-server: config.frobnication",
  });
  const from = client.received.length;
  await client.call("turn/start", {
    threadId,
    input: [{ type: "text", text: "go" }],
    effort: "medium",
    sandboxPolicy: { type: "workspaceWrite" },
    outputSchema: { type: "object" },
  });
  await client.note("turn/completed", from);
  expect(model.requests[0]?.body).toMatchObject({
    model: "other-model",
    input: [{ role: "developer", content: [{ text: "be brief" }] }, {}, {}],
    reasoning: { effort: "medium" },
  });
  expect(await client.call("thread/resume", { threadId })).toMatchObject({
    model: "other-model",
    reasoningEffort: "medium",
    sandbox: { type: "workspaceWrite" },
  });
  const elsewhere = path.join(world.root, "elsewhere");
  await world.file("elsewhere/.git/HEAD", "");
  const again = client.received.length;
  await client.call("turn/start", { threadId, cwd: elsewhere, input: [{ type: "text", text: "x" }] });
  await client.note("turn/completed", again);
  expect(await client.call("thread/read", { threadId })).toMatchObject({ thread: { cwd: elsewhere } });
});

test("what clients ask before their first turn", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "ok" }] });
  await pointAt(world, model.url);
  await world.file(
    "workspace/.agents/skills/knit/SKILL.md",
    "---\nname: knit\ndescription: Knits things\n---\nKnit.\n",
  );
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  expect(await client.call("account/read")).toEqual({
    account: null,
    requiresOpenaiAuth: false,
    workspaceRouting: null,
  });
  expect(await client.call("getAuthStatus")).toMatchObject({ authMethod: null, authToken: null });
  expect(await client.call("config/read", { includeLayers: true, cwd: world.workspace })).toMatchObject({
    config: { model: "gpt-5.5", model_provider: "mock", sandbox_mode: "read-only", review_model: null },
  });
  expect(await client.call("permissionProfile/list")).toMatchObject({ data: [{}, { id: ":workspace" }, {}] });
  const skills = await client.call("skills/list", { cwds: [world.workspace] });
  expect(skills).toMatchObject({ data: [{ skills: [{ name: "knit", description: "Knits things", scope: "repo" }] }] });
  const models = list(await client.call("model/list"), "data");
  expect(models[0]).toMatchObject({ id: "gpt-5.5", isDefault: true });
  expect(models.filter((entry) => at(entry, "isDefault") === true)).toHaveLength(1);
});
