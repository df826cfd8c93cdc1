import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import { changeSettings, findSent, openTurnQueue, queuedInputs, steerOnce, type TurnQueue } from "../index.ts";

const text = (words: string) => [{ type: "text" as const, text: words }];
const slow = [{ text: "first", delayMs: 300 }, { text: "second" }, { text: "third" }];

function queueOf(t: TestHeddle): TurnQueue & { readonly logged: string[] } {
  const logged: string[] = [];
  return Object.assign(openTurnQueue({ heddle: t.heddle, log: (line) => logged.push(line) }), { logged });
}

async function admittedIn(t: TestHeddle, threadId: string): Promise<string[]> {
  return (await t.events(threadId)).flatMap(({ body }) => (body.type === "turn.admitted" ? [body.turnId] : []));
}

async function ended(t: TestHeddle, threadId: string, turnId: string): Promise<string> {
  const signal = AbortSignal.timeout(60_000);
  for await (const { body } of t.heddle.journal.tail({ stream: threadId, after: 0, signal })) {
    if (body.type === "turn.completed" && body.turnId === turnId) return body.status;
  }
  throw new Error("it did not end");
}

/** The command of the running turn has begun. */
async function started(t: TestHeddle, threadId: string): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  for await (const { body } of t.heddle.journal.tail({ stream: threadId, after: 0, signal })) {
    if (body.type === "item.started" && body.item.type === "commandExecution") return;
  }
}

const by = "user:ann" as const;

test("waiting input begins in order, under the ids it waited with, when the running turn has ended", async () => {
  await using t = await openTestHeddle({ script: slow });
  await using queue = queueOf(t);
  const running = await t.start("one");
  const { threadId } = running;
  const second = await queue.add({ by, threadId, input: text("two"), settings: t.settings, clientId: "c2" });
  const third = await queue.add({ by, threadId, input: text("three"), settings: t.settings });
  expect((await queuedInputs(t.heddle.journal, threadId)).map(({ turnId }) => turnId)).toEqual([second, third]);
  expect(await findSent(t.heddle.journal, threadId, { clientId: "c2", input: text("two") })).toEqual({
    turnId: second,
    as: "queued",
  });
  expect(await ended(t, threadId, third)).toBe("completed");
  expect(await admittedIn(t, threadId)).toEqual([running.turnId, second, third]);
  expect(await findSent(t.heddle.journal, threadId, { clientId: "c2", input: text("two") })).toMatchObject({
    as: "turn",
  });
  await expect(findSent(t.heddle.journal, threadId, { clientId: "c2", input: text("2") })).rejects.toMatchObject({
    code: "store.id-conflict",
  });
  expect(queue.logged).toEqual([]);
});

test("input that waited when everything stopped is begun by the next one that opens", async () => {
  await using t = await openTestHeddle({ script: slow });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const waiting = openTurnQueue({ heddle: t.heddle, log: () => undefined });
  await waiting[Symbol.asyncDispose]();
  // A queue that is closed keeps input and begins nothing, as a process that dies here would.
  const turnId = await waiting.add({ by, threadId, input: text("later"), settings: t.settings });
  await using next = await openTestHeddle({ script: slow, folder: t.folder });
  await using queue = queueOf(next);
  await using rival = queueOf(next);
  await Promise.all([queue.resume(), rival.resume()]);
  expect(await ended(next, threadId, turnId)).toBe("completed");
  expect(await admittedIn(next, threadId)).toEqual([turnId]);
});

test("input that is taken back is never run; input that cannot begin says why and lets the next one begin", async () => {
  await using t = await openTestHeddle({ script: slow });
  await using queue = queueOf(t);
  const { threadId } = await t.start("one");
  const taken = await queue.add({ by, threadId, input: text("no"), settings: t.settings });
  const wrong = await queue.add({ by, threadId, input: text("x"), settings: { ...t.settings, provider: "nobody" } });
  const last = await queue.add({ by, threadId, input: text("yes"), settings: t.settings });
  const failure = { code: "turn.interrupted", message: "taken back" };
  expect(await queue.remove({ threadId, turnId: taken, failure, by })).toBe(true);
  expect(await queue.remove({ threadId, turnId: taken, failure, by })).toBe(false);
  expect(await ended(t, threadId, last)).toBe("completed");
  const out = (await t.events(threadId)).flatMap(({ body }) =>
    body.type === "turn.dequeued" ? [[body.turnId, body.failure.code]] : [],
  );
  expect(out).toEqual([
    [taken, "turn.interrupted"],
    [wrong, "provider.unknown"],
  ]);
  expect((await admittedIn(t, threadId)).includes(taken)).toBe(false);
  expect(queue.logged).toHaveLength(1);
});

test("what waits is changed and moved under its ids, and begins as it stands then", async () => {
  await using t = await openTestHeddle({ script: [...slow, { text: "fourth" }] });
  await using queue = queueOf(t);
  const { threadId } = await t.start("one");
  const add = (words: string) => queue.add({ by, threadId, input: text(words), settings: t.settings, clientId: words });
  const [b, c, d] = [await add("b"), await add("c"), await add("d")];
  await queue.change({ threadId, by }, (waiting) =>
    waiting.map((input) => (input.turnId === c ? { ...input, input: text("changed") } : input)),
  );
  await queue.change({ threadId, by }, (waiting) => waiting.toReversed());
  const waiting = await queuedInputs(t.heddle.journal, threadId);
  expect(waiting.map(({ turnId, input }) => [turnId, input])).toEqual([
    [d, text("d")],
    [c, text("changed")],
    [b, text("b")],
  ]);
  expect(await findSent(t.heddle.journal, threadId, { clientId: "c", input: text("changed") })).toEqual({
    turnId: c,
    as: "queued",
  });
  expect(await ended(t, threadId, b)).toBe("completed");
  const admitted = (await t.events(threadId)).flatMap(({ body }) =>
    body.type === "turn.admitted" ? [body.input] : [],
  );
  expect(admitted).toEqual([text("one"), text("d"), text("changed"), text("b")]);
  // A start that read the queue before it changed begins nothing.
  const late = await queue.add({ by, threadId, input: text("late"), settings: t.settings });
  expect(await ended(t, threadId, late)).toBe("completed");
  expect(queue.logged).toEqual([]);
});

test("behind a turn that the user interrupted input waits where it was asked to, until it is started or another turn ends", async () => {
  const sleep = { calls: [{ tool: "exec_command", args: { cmd: "sleep 60", yield_time_ms: 60_000 } }] };
  await using t = await openTestHeddle({ script: [sleep, { text: "c" }, { text: "b" }] });
  await using queue = queueOf(t);
  const running = await t.start("one");
  const { threadId } = running;
  const asked = { by, threadId, settings: t.settings, isHeldByInterrupt: true };
  const b = await queue.add({ ...asked, input: text("b") });
  const c = await queue.add({ ...asked, input: text("c") });
  await expect(queue.start({ threadId, turnId: c })).rejects.toMatchObject({ code: "turn.active" });
  await started(t, threadId);
  await t.heddle.as(by).interrupt(running.turnId, { code: "turn.interrupted", message: "stop" });
  await running.done;
  // A second queue, as of the next server, holds it too.
  await using next = queueOf(t);
  await next.resume();
  expect((await queuedInputs(t.heddle.journal, threadId)).map(({ turnId }) => turnId)).toEqual([b, c]);
  await expect(queue.start({ threadId, turnId: "none" })).rejects.toMatchObject({ code: "turn.not-found" });
  expect(await queue.start({ threadId, turnId: c })).toBe(c);
  expect(await ended(t, threadId, b)).toBe("completed");
  expect(await admittedIn(t, threadId)).toEqual([running.turnId, c, b]);
  await expect(queue.start({ threadId })).rejects.toMatchObject({ code: "turn.not-found" });
});

test("steering under one client id is added once, and never behind the end of its turn", async () => {
  await using t = await openTestHeddle({ script: slow });
  const { threadId, turnId, done } = await t.start("one");
  const sent = { by, clientId: "s1", input: text("and this") };
  await steerOnce(t.heddle.journal, turnId, sent);
  await steerOnce(t.heddle.journal, turnId, sent);
  await done;
  expect((await t.events(threadId)).filter(({ body }) => body.type === "turn.steered")).toHaveLength(1);
  await expect(steerOnce(t.heddle.journal, turnId, { ...sent, clientId: "s2" })).rejects.toMatchObject({
    code: "turn.not-found",
  });
});

test("settings of a thread merge, and null removes a key", async () => {
  await using t = await openTestHeddle();
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  expect(
    await changeSettings(t.heddle.journal, threadId, { changes: { model: "a", effort: "low" }, by: "user:owner" }),
  ).toEqual({
    model: "a",
    effort: "low",
  });
  expect(await changeSettings(t.heddle.journal, threadId, { changes: { effort: null }, by: "user:owner" })).toEqual({
    model: "a",
  });
  await expect(changeSettings(t.heddle.journal, "nobody", { changes: {}, by: "user:owner" })).rejects.toMatchObject({
    code: "thread.not-found",
  });
});
