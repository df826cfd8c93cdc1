/** Questions that outlive their server: put by one process, answered in the next, through every door. */
import { readFileSync } from "node:fs";
import { appendFile, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import type { StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import {
  at,
  command,
  isEndOf,
  KEY,
  list,
  pointAt,
  runTurn,
  serve,
  startThread,
  startTurn,
  text,
  type Client,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

const UNTRUSTED = { approvalPolicy: "untrusted", sandbox: "workspace-write" };
const COMMAND = "item/commandExecution/requestApproval";
const MAKE = "echo made >> made.txt";

interface Left {
  readonly threadId: string;
  readonly turnId: string;
  /** As it was put first. */
  readonly question: Wire;
}

/** A server is killed, or told to stop, while its turn waits for a word about a command. */
async function leaveAtQuestion(
  world: World,
  how: "SIGKILL" | "SIGTERM" | "EOF" = "SIGKILL",
  method = COMMAND,
): Promise<Left> {
  await using served = serve([], { world, env: KEY });
  const { client, running } = served;
  await client.initialize();
  const threadId = await startThread(client, UNTRUSTED);
  const turnId = await startTurn(client, threadId, "go");
  const question = await client.note(method);
  if (how === "EOF") client.end();
  else running.child.kill(how);
  await running.ended;
  return { threadId, turnId, question };
}

async function resumed(
  client: Client,
  threadId: string,
): Promise<{ readonly question: Wire; readonly answer: unknown }> {
  await client.initialize();
  const answer = await client.call("thread/resume", { threadId, excludeTurns: true });
  return { question: await client.note(COMMAND), answer };
}

async function eventsOf(world: World, threadId: string): Promise<readonly StoredEvent[]> {
  await using journal = await openJournal({ home: world.home });
  expect((await journal.verify(threadId)).damage).toEqual([]);
  return await journal.read({ stream: threadId, after: 0 });
}

/** One of each: the question, its answer, the intent, the result and the end. */
function expectOnce(events: readonly StoredEvent[], decision: string): void {
  const bodies = (type: string) => events.map(({ body }) => body).filter((body) => body.type === type);
  expect(bodies("approval.requested")).toHaveLength(1);
  expect(bodies("approval.resolved")).toMatchObject([{ decision }]);
  expect(bodies("tool.settled")).toHaveLength(1);
  expect(bodies("tool.intended")).toHaveLength(decision === "accept" ? 1 : 0);
  expect(bodies("turn.completed")).toHaveLength(1);
  expect(bodies("item.completed").length).toBe(bodies("item.started").length);
}

function madeLines(world: World): string {
  return readFileSync(path.join(world.workspace, "made.txt"), "utf8");
}

async function modelFor(world: World): Promise<ModelServer> {
  const model = await startModelServer({ script: [{ calls: [command(MAKE)] }, { text: "ok" }, { text: "more" }] });
  await pointAt(world, model.url);
  return model;
}

test.each(["SIGKILL", "SIGTERM", "EOF"] as const)(
  "F29: a question outlives its server (%s): the next one is asked again, and an accept ends the same turn",
  async (how) => {
    await using world = await openWorld();
    await using model = await modelFor(world);
    const { threadId, turnId, question: asked } = await leaveAtQuestion(world, how);
    // Others that open the store change nothing.
    await run(["threads", "list"], { world, env: KEY });
    await using first = serve([], { world, env: KEY });
    await using second = serve([], { world, env: KEY });
    await second.client.initialize();
    const { question, answer } = await resumed(first.client, threadId);
    expect(answer).toMatchObject({ thread: { status: { type: "active", activeFlags: ["waitingOnApproval"] } } });
    expect(question.params).toEqual(asked.params);
    expect(question.params).toMatchObject({ threadId, turnId, reason: "it is not known to be read-only" });
    await expect(stat(path.join(world.workspace, "made.txt"))).rejects.toThrow();
    first.client.send({ id: question.id, result: { decision: "accept" } });
    const ended = await first.client.waitFor((wire) => isEndOf(wire, turnId));
    expect(at(ended, "params.turn.status")).toBe("completed");
    const done = first.client.received.find((wire) => at(wire, "params.item.type") === "commandExecution");
    expect(text(done, "params.item.id")).toBe(text(asked, "params.itemId"));
    expect(madeLines(world)).toBe("made\n");
    const events = await eventsOf(world, threadId);
    expectOnce(events, "accept");
    // What was used before the restart counts: two requests, not one.
    const end = events.find(({ body }) => body.type === "turn.completed");
    const used = events.reduce(
      (sum, { body }) => sum + (body.type === "model.responded" ? body.usage.inputTokens : 0),
      0,
    );
    expect(end?.body).toMatchObject({ usage: { inputTokens: used } });
    expect(model.requests).toHaveLength(2);
    // The thread goes on.
    expect(at((await runTurn(first.client, threadId, "again")).ended, "params.turn.status")).toBe("completed");
  },
);

test("F29: a question about a change comes again with the same ids", async () => {
  const patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";
  const method = "item/fileChange/requestApproval";
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [{ tool: "apply_patch", args: patch }] }],
  });
  await pointAt(world, model.url);
  const { threadId, question } = await leaveAtQuestion(world, "SIGKILL", method);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  await served.client.call("thread/resume", { threadId, excludeTurns: true });
  expect((await served.client.note(method)).params).toEqual(question.params);
});

test("F29: declined after a restart the call is not run, the model is told, and the turn continues", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  await using served = serve([], { world, env: KEY });
  const { question } = await resumed(served.client, threadId);
  served.client.send({ id: question.id, result: { decision: "decline" } });
  const ended = await served.client.waitFor((wire) => isEndOf(wire, turnId));
  expect(at(ended, "params.turn.status")).toBe("completed");
  expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("the user declined this call");
  expectOnce(await eventsOf(world, threadId), "decline");
  await expect(stat(path.join(world.workspace, "made.txt"))).rejects.toThrow();
});

/** A hook before calls that leaves a line for each time it is asked, and has something to say to the model. */
async function hookInto(world: World, log: string): Promise<void> {
  const note = JSON.stringify({ hookSpecificOutput: { additionalContext: `a note by ${log}` } });
  const command = `cat > /dev/null; echo asked >> ${log}; echo '${note}'`;
  const config = `[[hooks]]\nevent = "PreToolUse"\ncommand = ${JSON.stringify(command)}\n`;
  await appendFile(path.join(world.home, "config.toml"), config);
}

test("F29: a hook that was asked about a call is not asked again after a restart; what it said counts, a new hook is asked", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world);
  await hookInto(world, "first.log");
  const { threadId, turnId } = await leaveAtQuestion(world);
  await hookInto(world, "second.log");
  await using served = serve([], { world, env: KEY });
  const { question } = await resumed(served.client, threadId);
  served.client.send({ id: question.id, result: { decision: "accept" } });
  await served.client.waitFor((wire) => isEndOf(wire, turnId));
  const asked = (log: string): Promise<string> => readFile(path.join(world.workspace, log), "utf8");
  expect(await Promise.all(["first.log", "second.log"].map(asked))).toEqual(["asked\n", "asked\n"]);
  const events = await eventsOf(world, threadId);
  expectOnce(events, "accept");
  expect(events.filter(({ body }) => body.type === "hook.ran")).toHaveLength(2);
  const told = JSON.stringify(model.requests.at(-1)?.body);
  expect(told.split("a note by first.log")).toHaveLength(2);
  expect(told.split("a note by second.log")).toHaveLength(2);
});

test("F29: cancelled after a restart the turn ends interrupted", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  await using served = serve([], { world, env: KEY });
  const { question } = await resumed(served.client, threadId);
  served.client.send({ id: question.id, result: { decision: "cancel" } });
  const ended = await served.client.waitFor((wire) => isEndOf(wire, turnId));
  expect(at(ended, "params.turn.status")).toBe("interrupted");
  expectOnce(await eventsOf(world, threadId), "cancel");
});

test("F29: input added while nobody ran the turn is told to the model after the answer", async () => {
  await using world = await openWorld();
  await using model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  await using served = serve([], { world, env: KEY });
  const { question } = await resumed(served.client, threadId);
  const input = [{ type: "text", text: "and be quick" }];
  await served.client.call("turn/steer", { threadId, expectedTurnId: turnId, input });
  served.client.send({ id: question.id, result: { decision: "accept" } });
  await served.client.waitFor((wire) => isEndOf(wire, turnId));
  expect(JSON.stringify(model.requests[1]?.body)).toContain("and be quick");
  expect(madeLines(world)).toBe("made\n");
});

test("F29: turn/interrupt ends a turn that waits since before a restart, once", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const { question } = await resumed(client, threadId);
  await client.call("turn/interrupt", { threadId, turnId });
  const ended = await client.waitFor((wire) => isEndOf(wire, turnId));
  expect(at(ended, "params.turn.status")).toBe("interrupted");
  await client.note("serverRequest/resolved");
  client.send({ id: question.id, result: { decision: "accept" } });
  expect(at((await runTurn(client, threadId, "again")).ended, "params.turn.status")).toBe("completed");
  const bodies = (await eventsOf(world, threadId)).map(({ body }) => body);
  expect(bodies.filter(({ type }) => type === "approval.resolved")).toMatchObject([{ decision: "cancel" }]);
  expect(bodies.filter((body) => body.type === "turn.completed" && body.turnId === turnId)).toMatchObject([
    { status: "interrupted", failure: { code: "turn.interrupted" } },
  ]);
  await expect(stat(path.join(world.workspace, "made.txt"))).rejects.toThrow();
});

test("F29: exec on the thread ends the turn that waits there, and runs", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  const { code } = await run(["exec", "resume", threadId, "go on"], { world, env: KEY });
  expect(code).toBe(0);
  const ends = (await eventsOf(world, threadId))
    .map(({ body }) => body)
    .filter(({ type }) => type === "turn.completed");
  expect(ends).toMatchObject([
    { turnId, status: "interrupted", failure: { code: "turn.abandoned" } },
    { status: "completed" },
  ]);
});

test.each(["approval.after-resolve", "turn.before-intent", "turn.after-resume"])(
  "F29: kill -9 at %s: the answer is not lost, and the next server runs the call once without being asked",
  async (failpoint) => {
    await using world = await openWorld();
    await using _model = await modelFor(world);
    const { threadId, turnId } = await leaveAtQuestion(world);
    {
      await using served = serve([], { world, env: { ...KEY, HEDDLE_FAILPOINT: `${failpoint}=kill` } });
      const { question } = await resumed(served.client, threadId);
      served.client.send({ id: question.id, result: { decision: "accept" } });
      expect((await served.running.ended).signal).toBe("SIGKILL");
    }
    await expect(stat(path.join(world.workspace, "made.txt"))).rejects.toThrow();
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    await served.client.call("thread/resume", { threadId, excludeTurns: true });
    await expect
      .poll(async () => list(await served.client.call("thread/turns/list", { threadId }), "data"), { timeout: 60_000 })
      .toMatchObject([{ id: turnId, status: "completed" }]);
    expect(served.client.kinds()).not.toContain(COMMAND);
    expect(madeLines(world)).toBe("made\n");
    expectOnce(await eventsOf(world, threadId), "accept");
  },
);

test("F29: kill -9 after the intent: the outcome is unknown, and nothing is run again", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  {
    await using served = serve([], { world, env: { ...KEY, HEDDLE_FAILPOINT: "turn.after-intent=kill" } });
    const { question } = await resumed(served.client, threadId);
    served.client.send({ id: question.id, result: { decision: "accept" } });
    await served.running.ended;
  }
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const bodies = (await eventsOf(world, threadId)).map(({ body }) => body);
  expect(bodies.filter(({ type }) => type === "tool.settled")).toMatchObject([{ outcome: "unknown" }]);
  expect(bodies.filter(({ type }) => type === "turn.completed")).toMatchObject([
    { turnId, status: "interrupted", failure: { code: "turn.abandoned" } },
  ]);
  await expect(stat(path.join(world.workspace, "made.txt"))).rejects.toThrow();
});

test("F29: after a restart HTTP lists the question; of two answers at once one wins and the other is told", async () => {
  await using world = await openWorld();
  await using _model = await modelFor(world);
  const { threadId, turnId } = await leaveAtQuestion(world);
  await using served = await startServe(world);
  const { json } = await served.call("GET", "/api/approvals");
  expect(json).toMatchObject({ data: [{ threadId, turnId, question: { kind: "command", command: MAKE } }] });
  const where = `/api/threads/${threadId}/approvals/${text(json, "data.0.id")}`;
  const answers = await Promise.all(["accept", "decline"].map((decision) => served.call("POST", where, { decision })));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  await served.events(threadId, ({ body }) => body.type === "turn.completed");
  const wasAccepted = answers[0]?.status === 200;
  expectOnce(await eventsOf(world, threadId), wasAccepted ? "accept" : "decline");
  expect((await served.call("GET", "/api/approvals")).json).toEqual({ data: [] });
});

test.each(["asked", "restarted"])(
  "F29: a question that nobody answers in time is declined by policy, by the server that %s",
  async (which) => {
    await using world = await openWorld();
    await using model = await modelFor(world);
    const config = path.join(world.home, "config.toml");
    await writeFile(config, `approval_timeout_sec = 2\n${await readFile(config, "utf8")}`);
    const left = which === "restarted" ? await leaveAtQuestion(world) : undefined;
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize();
    const threadId = left?.threadId ?? (await startThread(client, UNTRUSTED));
    if (left === undefined) await startTurn(client, threadId, "go");
    else await client.call("thread/resume", { threadId, excludeTurns: true });
    // Its time may be over before anybody follows the thread.
    await expect
      .poll(async () => list(await client.call("thread/turns/list", { threadId }), "data"), { timeout: 60_000 })
      .toMatchObject([{ status: "completed" }]);
    const events = await eventsOf(world, threadId);
    expectOnce(events, "decline");
    expect(events.find(({ body }) => body.type === "approval.resolved")?.author).toBe("policy:timeout");
    expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("no answer came in time");
  },
);
