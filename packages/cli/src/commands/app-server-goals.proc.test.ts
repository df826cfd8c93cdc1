import { mkdir, rmdir } from "node:fs/promises";
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
  serve,
  startThread,
  startTurn,
  text,
} from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

test("an active goal is worked for in turns of its own until the agent says that it is reached", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [
      { calls: [command("echo one")] },
      { text: "a step" },
      { calls: [{ tool: "update_goal", args: { status: "complete" } }] },
      { text: "reached" },
    ],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  await client.call("thread/goal/set", { threadId, objective: "ship it" });
  const done = await client.waitFor((wire) => at(wire, "params.goal.status") === "complete");
  expect(done).toMatchObject({ method: "thread/goal/updated", params: { threadId, goal: { objective: "ship it" } } });
  expect(client.kinds().filter((kind) => kind.startsWith("turn/completed"))).toHaveLength(2);
  expect(client.kinds()).not.toContain("item/started userMessage");
  expect(model.requests).toHaveLength(4);
  expect(JSON.stringify(model.requests[0]?.body)).toContain(String.raw`<objective>\nship it\n</objective>`);
});

test.each([
  ["an agent that only talks blocks it after three turns", {}, "blocked", 3],
  ["a budget that is used up ends it", { tokenBudget: 100 }, "budgetLimited", 2],
])("a goal does not run for ever: %s", async (_what, more, status, turns) => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: () => ({ text: "words" }) });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  await client.call("thread/goal/set", { threadId, objective: "ship it", ...more });
  await client.waitFor((wire) => at(wire, "params.goal.status") === status);
  expect(model.requests).toHaveLength(turns);
  expect(await client.call("thread/goal/get", { threadId })).toMatchObject({ goal: { status } });
});

test("an interrupt of a turn for the goal pauses the goal", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: () => ({ calls: [command("sleep 60")] }) });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  await client.call("thread/goal/set", { threadId, objective: "ship it" });
  const begun = await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  await client.call("turn/interrupt", { threadId, turnId: text(begun, "params.turnId") });
  await client.waitFor((wire) => at(wire, "params.goal.status") === "paused");
  expect(model.requests).toHaveLength(1);
});

test("a command of the user runs beside a turn, as an item of it, and the model hears of it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [command("until test -e go; do sleep 0.05; done; echo seen")] }, { text: "done" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  const turnId = await startTurn(client, threadId, "wait");
  await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  expect(await client.call("thread/shellCommand", { threadId, command: "echo by the user" })).toEqual({});
  await client.waitFor((wire) => kindOf(wire) === "item/completed commandExecution");
  await world.file("workspace/go", "");
  await client.waitFor((wire) => isEndOf(wire, turnId));
  const items = client.received.filter((wire) => kindOf(wire) === "item/completed commandExecution");
  expect(items.map((wire) => [at(wire, "params.turnId"), at(wire, "params.item.source")])).toEqual([
    [turnId, "userShell"],
    [turnId, "agent"],
  ]);
  expect(JSON.stringify(model.requests[1]?.body)).toContain("by the user");
  expect(client.kinds().filter((kind) => kind.startsWith("turn/"))).toEqual([
    "turn/started",
    "turn/completed completed",
  ]);
});

test("a command of the user that outlasts the work of the turn is waited for, and an interrupt ends it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("sleep 0.2")] }, { text: "done" }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, { sandbox: "workspace-write" });
  const turnId = await startTurn(client, threadId, "go");
  await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  await client.call("thread/shellCommand", { threadId, command: "sleep 60" });
  await client.waitFor((wire) => kindOf(wire) === "item/completed agentMessage");
  await client.call("turn/interrupt", { threadId, turnId });
  const end = await client.waitFor((wire) => isEndOf(wire, turnId));
  expect(text(end, "params.turn.status")).toBe("interrupted");
  const turns = list(await client.call("thread/turns/list", { threadId, itemsView: "full" }), "data");
  const shell = list(turns, "0.items").find((item) => at(item, "source") === "userShell");
  expect(shell).toMatchObject({ status: "failed", outcome: "interrupted" });
});

test("a thread is made without a key, and its first turn says what is missing", async () => {
  await using world = await openWorld();
  await pointAt(world, "http://127.0.0.1:9");
  await using served = serve([], { world, env: {} });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const turnId = await startTurn(client, threadId, "hello");
  const end = await client.waitFor((wire) => isEndOf(wire, turnId));
  expect(end).toMatchObject({
    params: {
      turn: {
        status: "failed",
        error: { code: "auth.missing", codexErrorInfo: "unauthorized", message: expect.stringContaining("MOCK_KEY") },
      },
    },
  });
  expect(client.kinds()).toContain("item/completed userMessage");
});

test("a goal that no turn can be begun for is blocked, and works once the reason is gone", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ answers }) =>
      answers === 0 ? { calls: [{ tool: "update_goal", args: { status: "complete" } }] } : { text: "reached" },
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const cwd = path.join(world.root, "gone");
  await mkdir(cwd);
  const threadId = await startThread(client, { cwd });
  await rmdir(cwd);
  await client.call("thread/goal/set", { threadId, objective: "ship it" });
  await client.waitFor((wire) => at(wire, "params.goal.status") === "blocked");
  expect(model.requests).toHaveLength(0);
  await mkdir(cwd);
  await client.call("thread/goal/set", { threadId, status: "active" });
  await client.waitFor((wire) => at(wire, "params.goal.status") === "complete");
});
