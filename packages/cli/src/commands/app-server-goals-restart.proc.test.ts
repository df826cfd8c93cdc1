/** Goals outlive their server: the next one goes on with them as soon as their thread is taken up. */
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  command,
  KEY,
  kindOf,
  list,
  pointAt,
  runTurn,
  serve,
  startThread,
  text,
  type Client,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

type Ending = "SIGKILL" | "SIGTERM" | "EOF";

interface Left {
  readonly settings?: Record<string, unknown>;
  /** What the client waits for before the server ends. */
  readonly until: string;
  readonly tokenBudget?: number;
  readonly how?: Ending;
}

/** A server ends in the middle of a turn for a goal. */
async function leaveAtWork(world: World, { settings = {}, until, tokenBudget, how = "SIGKILL" }: Left) {
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const threadId = await startThread(client, { sandbox: "workspace-write", ...settings });
  await client.call("thread/goal/set", { threadId, objective: "ship it", tokenBudget });
  const begun = await client.waitFor((wire) => kindOf(wire) === until);
  if (how === "EOF") client.end();
  else running.child.kill(how);
  await running.ended;
  return { threadId, turnId: text(begun, "params.turnId") };
}

const WORKING = "item/started commandExecution";
const SLEEP = { calls: [command("sleep 60")] };
const REACHED = { calls: [{ tool: "update_goal", args: { status: "complete" } }] };

async function scripted(world: World, script: readonly object[]): Promise<ModelServer> {
  let next = 0;
  const model = await startModelServer({ respond: () => script[next++] ?? { text: "words" } });
  await pointAt(world, model.url);
  return model;
}

async function turnsOf(client: Client, threadId: string): Promise<readonly unknown[]> {
  const turns = list(await client.call("thread/turns/list", { threadId, sortDirection: "asc" }), "data");
  return turns.map((turn) => at(turn, "status"));
}

test.each(["SIGKILL", "SIGTERM", "EOF"] as const)(
  "a goal outlives its server (%s): nothing happens until its thread is resumed, then it is worked for again",
  async (how) => {
    await using world = await openWorld();
    await using model = await scripted(world, [SLEEP, REACHED, { text: "reached" }]);
    const { threadId } = await leaveAtWork(world, { until: WORKING, how });
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize();
    expect(await client.call("thread/goal/get", { threadId })).toMatchObject({ goal: { status: "active" } });
    expect(await turnsOf(client, threadId)).toEqual(["interrupted"]);
    const from = client.received.length;
    expect(await client.call("thread/resume", { threadId })).toMatchObject({ thread: { status: { type: "idle" } } });
    // Once more while it is at work: that begins nothing.
    const turnId = text(await client.note("turn/started"), "params.turn.id");
    await client.call("thread/resume", { threadId, excludeTurns: true });
    // Told with its turn, at the end of it.
    const isDone = (wire: Wire): boolean => at(wire, "params.goal.status") === "complete";
    await client.waitFor((wire) => isDone(wire) && at(wire, "params.turnId") === turnId);
    expect(client.kinds()).not.toContain("item/started userMessage");
    expect(await turnsOf(client, threadId)).toEqual(["interrupted", "completed"]);
    expect(model.requests).toHaveLength(3);
    expect(client.kinds(from).slice(0, 7)).toEqual([
      "deprecationNotice",
      "thread/status/changed idle",
      "answer",
      "thread/tokenUsage/updated",
      "thread/goal/updated",
      "thread/status/changed active",
      "turn/started",
    ]);
  },
);

test.each([
  ["is used up in the turn after it", 100, 2],
  ["was used up before it", 80, 1],
])("the budget of a goal counts across a restart: it %s", async (_when, tokenBudget, requests) => {
  await using world = await openWorld();
  await using model = await scripted(world, [SLEEP]);
  const { threadId } = await leaveAtWork(world, { until: WORKING, tokenBudget });
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  const end = await client.waitFor((wire) => at(wire, "params.goal.status") === "budgetLimited");
  expect(end).toMatchObject({ params: { goal: { tokensUsed: 80 * requests } } });
  expect(model.requests).toHaveLength(requests);
});

test("a turn for a goal that waits for an answer since before a restart is the goal's turn: interrupted, it pauses it", async () => {
  await using world = await openWorld();
  await using model = await scripted(world, [{ calls: [command("echo x > made.txt")] }]);
  const ask = "item/commandExecution/requestApproval";
  const { threadId, turnId } = await leaveAtWork(world, { until: ask, settings: { approvalPolicy: "untrusted" } });
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  await client.note(ask);
  await client.call("turn/interrupt", { threadId, turnId });
  await client.waitFor((wire) => at(wire, "params.goal.status") === "paused");
  expect(await turnsOf(client, threadId)).toEqual(["interrupted"]);
  expect(model.requests).toHaveLength(1);
});

test("a goal that is not active stays as it is when its thread is resumed", async () => {
  await using world = await openWorld();
  await using model = await scripted(world, []);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    threadId = await startThread(served.client);
    await served.client.call("thread/goal/set", { threadId, objective: "ship it", status: "paused" });
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  // A turn that a person asks for is the only one.
  await runTurn(client, threadId, "hello");
  expect(await turnsOf(client, threadId)).toEqual(["completed"]);
  expect(model.requests).toHaveLength(1);
});
