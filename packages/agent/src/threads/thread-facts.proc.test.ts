import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import { changeGitInfo, clearGoal, injectEntries, readGoal, readPast, revertThread, setGoal } from "../index.ts";

const said = (words: string) => ({ kind: "user" as const, parts: [{ type: "text" as const, text: words }] });

interface Asked extends TestHeddle {
  /** Every request to the model, as text. */
  readonly asked: readonly string[];
}

/** With a model server, so that one can see what the model is told. */
async function openAsked(script: NonNullable<ModelServerOptions["script"]>): Promise<Asked> {
  let next = 0;
  const model = await startModelServer({ respond: () => script[next++] ?? { text: "no more" } });
  const providers = [{ id: "a", baseUrl: `${model.url}/v1`, wire: "openai-responses" as const, key: "k" }];
  const t = await openTestHeddle({ providers, settings: { provider: "a", model: "gpt-5.5" }, isUnattended: false });
  return {
    ...t,
    get asked() {
      return model.requests.map(({ body }) => JSON.stringify(body));
    },
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}

async function turn(t: TestHeddle, words: string, thread?: string) {
  const handle = await t.start(words, thread === undefined ? {} : { thread });
  await handle.done;
  return handle;
}

test("a reverted thread goes on before the turn, the record keeps everything, and projections come out equal", async () => {
  await using t = await openAsked([{ text: "one" }, { text: "two" }, { text: "three" }, { text: "four" }]);
  const first = await turn(t, "first question");
  const { threadId } = first;
  const second = await turn(t, "second question", threadId);
  await turn(t, "third question", threadId);
  const { journal } = t.heddle;
  await revertThread(journal, { by: "user:owner", threadId, beforeTurnId: second.turnId });
  const past = JSON.stringify(await readPast(journal, threadId));
  expect(past).toContain("first question");
  expect(past).not.toContain("second question");
  expect(past).not.toContain("third question");
  expect(JSON.stringify(await t.events(threadId))).toContain("third question");
  await expect(
    revertThread(journal, { by: "user:owner", threadId, beforeTurnId: second.turnId }),
  ).rejects.toMatchObject({
    code: "turn.not-found",
  });
  await turn(t, "fourth question", threadId);
  const asked = t.asked.at(-1);
  expect(asked).toContain("first question");
  expect(asked).toContain("fourth question");
  expect(asked).not.toContain("second question");

  const fork = await t.heddle.as("user:owner").forkThread({ threadId, origin: "test" });
  expect(JSON.stringify(await readPast(journal, fork))).not.toContain("third question");
  await revertThread(journal, { by: "user:owner", threadId: fork, beforeTurnId: first.turnId });
  expect(JSON.stringify(await readPast(journal, fork))).not.toContain("first question");
  expect(JSON.stringify(await readPast(journal, threadId))).toContain("first question");

  await changeGitInfo(journal, threadId, { gitInfo: { sha: "abc", branch: "main" }, by: "user:owner" });
  await changeGitInfo(journal, threadId, { gitInfo: { sha: null }, by: "user:owner" });
  const before = await journal.threads.list({ limit: 10 });
  expect(before.find(({ id }) => id === threadId)?.gitInfo).toEqual({ sha: null, branch: "main", originUrl: null });
  await journal.rebuildProjections();
  expect(await journal.threads.list({ limit: 10 })).toEqual(before);
  expect((await journal.verify()).damage).toEqual([]);
});

test("a thread at work is not reverted", async () => {
  await using t = await openTestHeddle({ script: [{ text: "slow", delayMs: 300 }] });
  const { threadId, turnId, done } = await t.start("go");
  await expect(
    revertThread(t.heddle.journal, { by: "user:owner", threadId, beforeTurnId: turnId }),
  ).rejects.toMatchObject({
    code: "turn.active",
  });
  await done;
});

test("a goal counts what the turns since take, changes piece by piece, and can be cleared once", async () => {
  await using t = await openTestHeddle({ script: [{ text: "one" }, { text: "two" }] });
  const { threadId } = await turn(t, "before");
  const { journal } = t.heddle;
  expect(await readGoal(journal, threadId)).toBeUndefined();
  await expect(setGoal(journal, threadId, { by: "user:owner", status: "paused" })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  await expect(setGoal(journal, threadId, { by: "user:owner", objective: "  " })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  const set = await setGoal(journal, threadId, { by: "user:owner", objective: "ship it", tokenBudget: 500 });
  expect(set).toMatchObject({ objective: "ship it", status: "active", tokenBudget: 500, tokensUsed: 0, timeUsedMs: 0 });
  await turn(t, "after", threadId);
  const paused = await setGoal(journal, threadId, { by: "user:owner", status: "paused", tokenBudget: null });
  expect(paused).toMatchObject({ objective: "ship it", status: "paused", createdAt: set.createdAt });
  expect(paused.tokenBudget).toBeUndefined();
  expect(paused.tokensUsed).toBeGreaterThan(0);
  expect(await setGoal(journal, threadId, { by: "user:owner", objective: "another" })).toMatchObject({
    status: "active",
    tokensUsed: 0,
  });
  expect(await clearGoal(journal, threadId, "user:owner")).toBe(true);
  expect(await clearGoal(journal, threadId, "user:owner")).toBe(false);
});

test("what is put into the conversation is told with the next request, also of a running turn", async () => {
  await using t = await openAsked([
    { text: "one" },
    { calls: [{ tool: "exec_command", args: { cmd: "sleep 0.4" } }] },
    { text: "two" },
  ]);
  const { threadId } = await turn(t, "first");
  const { journal } = t.heddle;
  await injectEntries(journal, threadId, {
    by: "user:owner",
    entries: [
      said("from outside"),
      { kind: "assistant", parts: [{ kind: "toolCall", callId: "c1", name: "look", input: "{}", shape: "json" }] },
      {
        kind: "toolResult",
        callId: "c1",
        name: "look",
        shape: "json",
        isError: false,
        parts: [{ type: "text", text: "seen" }],
      },
    ],
  });
  await expect(
    injectEntries(journal, threadId, {
      by: "user:owner",
      entries: [
        { kind: "assistant", parts: [{ kind: "toolCall", callId: "c2", name: "look", input: "{}", shape: "json" }] },
      ],
    }),
  ).rejects.toMatchObject({ code: "usage.invalid" });
  const { done } = await t.start("second", { thread: threadId });
  for await (const { body } of journal.tail({ stream: threadId, after: 0, signal: AbortSignal.timeout(60_000) })) {
    if (body.type === "tool.intended") break;
  }
  await injectEntries(journal, threadId, { by: "user:owner", entries: [said("while it runs")] });
  expect((await done).body.status).toBe("completed");
  const [, during, after] = t.asked;
  expect(during).toContain("from outside");
  expect(during).toContain("seen");
  expect(during).not.toContain("while it runs");
  expect(after).toContain("while it runs");
});

test("a command of the user is a turn in the thread's sandbox, recorded, and told to the model", async () => {
  await using t = await openAsked([{ text: "one" }]);
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const outside = path.join(path.dirname(t.workspace), "outside.txt");
  const command = `echo made > inside.txt; echo no > ${outside}; echo printed; exit 3`;
  const shell = await t.heddle.as("user:owner").runShell({ threadId, command, settings: t.settings });
  expect((await shell.done).body).toMatchObject({ status: "completed" });
  const items = (await t.events(threadId)).flatMap(({ body }) => (body.type === "item.completed" ? [body.item] : []));
  expect(items).toMatchObject([
    { type: "commandExecution", source: "user", status: "completed", exitCode: 3, command },
  ]);
  await expect(stat(path.join(t.workspace, "inside.txt"))).resolves.toBeDefined();
  await expect(stat(outside)).rejects.toThrow();
  await turn(t, "and now", threadId);
  const [asked] = t.asked;
  expect(asked).toContain("printed");
  expect(asked).toContain("Exit code: 3");
});

test("input that is added to a command of the user is answered in its turn, and the command runs once", async () => {
  await using t = await openAsked([{ text: "one" }, { text: "two" }]);
  await writeFile(path.join(t.workspace, "AGENTS.md"), "be brief");
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const command = "echo ran >> runs.txt; while [ ! -e go ]; do sleep 0.05; done";
  const { turnId, done } = await t.heddle.as("user:owner").runShell({ threadId, command, settings: t.settings });
  await t.heddle.as("user:owner").steer(turnId, [{ type: "text", text: "what did it do" }]);
  await writeFile(path.join(t.workspace, "go"), "");
  expect((await done).body).toMatchObject({ status: "completed" });
  expect(await readFile(path.join(t.workspace, "runs.txt"), "utf8")).toBe("ran\n");
  const items = (await t.events(threadId)).flatMap(({ body }) => (body.type === "item.completed" ? [body.item] : []));
  expect(items.map(({ type }) => type)).toEqual(["commandExecution", "userMessage", "agentMessage"]);
  expect(t.asked).toHaveLength(1);
  for (const told of ["be brief", "echo ran", "what did it do"]) expect(t.asked[0]).toContain(told);
});

test("a command of the user joins a turn that is about to begin, and follows one that is about to end", async () => {
  await using t = await openAsked([{ text: "one" }]);
  const { threadId, turnId, done } = await t.start("go");
  const run = (command: string) => t.heddle.as("user:owner").runShell({ threadId, command, settings: t.settings });
  expect((await run("echo first")).turnId).toBe(turnId);
  await done;
  const second = await run("true");
  const third = await Promise.all([second.done.then(() => run("echo third")), run("echo beside")]);
  expect(third[1].turnId).toBe(second.turnId);
  expect((await third[0].done).body).toMatchObject({ status: "completed" });
});

test("a command of the user stops at its time and with its turn", async () => {
  await using t = await openTestHeddle({ script: [{ text: "one" }] });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const late = await t.heddle
    .as("user:owner")
    .runShell({ threadId, command: "sleep 60", settings: t.settings, timeoutMs: 200 });
  expect((await late.done).body).toMatchObject({ status: "failed", failure: { code: "tool.timeout" } });
  const { turnId, done } = await t.heddle
    .as("user:owner")
    .runShell({ threadId, command: "sleep 60", settings: t.settings });
  await t.heddle.as("user:owner").interrupt(turnId, { code: "turn.interrupted", message: "enough" });
  expect((await done).body).toMatchObject({ status: "interrupted" });
  const bodies = (await t.events(threadId)).map(({ body }) => body);
  expect(bodies.filter(({ type }) => type === "item.started")).toHaveLength(
    bodies.filter(({ type }) => type === "item.completed").length,
  );
});

test("commands that outlived their call are seen and ended", async () => {
  await using t = await openAsked([
    { calls: [{ tool: "exec_command", args: { cmd: "sleep 120", yield_time_ms: 250 } }] },
    { text: "it runs" },
  ]);
  const { threadId } = await turn(t, "start it");
  const [terminal, ...more] = await t.heddle.terminals(threadId);
  expect(more).toEqual([]);
  expect(terminal).toMatchObject({ command: "sleep 120", cwd: t.workspace });
  expect(terminal?.itemId).toBeDefined();
  expect(await t.heddle.endTerminals(threadId, "1")).toBe(0);
  expect(await t.heddle.endTerminals(threadId, terminal?.processId)).toBe(1);
  expect(await t.heddle.terminals(threadId)).toEqual([]);
});
