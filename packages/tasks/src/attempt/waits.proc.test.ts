/** What a task waits for while a turn runs, and threads that are taken over. Numbers as in the list of promises. */
import { expect, test } from "vitest";
import { startModelServer } from "@heddle/models/testing";
import type { EventOf, StoredEvent, TurnSettings } from "@heddle/protocol";
import { DEADLINE_MS, openTestHarness, report, shell, type TestHarness } from "../../test/test-harness.ts";

const exists = { kind: "file-exists", path: "done.txt" } as const;
const SETTINGS: TurnSettings = {
  provider: "scripted",
  model: "scripted",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};

async function question(
  t: TestHarness,
  threadId: string,
  number = 1,
): Promise<StoredEvent<EventOf<"approval.requested">>> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  let seen = 0;
  for await (const event of t.heddle.journal.tail({ stream: threadId, after: 0, signal })) {
    const { body } = event;
    if (body.type === "approval.requested" && (seen += 1) === number) return { ...event, body };
  }
  throw new Error("no question");
}

test("35 37: a question makes the task wait within a second, naming what is asked, and its answer lets it go on", async () => {
  await using t = await openTestHarness({
    script: [{ calls: [shell("touch done.txt")] }, { calls: [report("done")] }, { text: "done" }],
  });
  const { id } = await t.add({ checks: [exists], approval: "untrusted" });
  await t.work();
  const running = await t.until(id, ({ openPrompt }) => openPrompt !== undefined);
  expect(running.state).toBe("running");
  const { body, at } = await question(t, running.threadId ?? "");
  const waiting = await t.until(id, ({ state }) => state === "waiting");
  expect(waiting.wait).toEqual({ cause: "approval", message: "waits for an answer: may it run touch done.txt" });
  expect(waiting.updatedAt - at).toBeLessThan(1000);
  expect(waiting.holder).toBeDefined();
  await t.heddle
    .as("user:owner")
    .answer({ threadId: running.threadId ?? "", approvalId: body.approvalId, decision: "accept" });
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", spent: { turns: 1 } });
  const types = (await t.events(id)).map((event) => event.body.type);
  expect(types.filter((type) => type === "task.waited" || type === "task.woken")).toEqual([
    "task.waited",
    "task.woken",
  ]);
});

test("44: time in which a person is asked is not the task's", async () => {
  await using t = await openTestHarness({ script: [{ calls: [shell("touch done.txt")] }, { text: "done" }] });
  const { id } = await t.add({ checks: [exists], approval: "untrusted", budget: { timeMs: 2000 } });
  await t.work();
  const { threadId = "" } = await t.until(id, ({ state }) => state === "waiting");
  const { body, at } = await question(t, threadId);
  await t.until(id, ({ state }) => state === "waiting");
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, at + 2300 - Date.now())));
  await t.heddle.as("user:owner").answer({ threadId, approvalId: body.approvalId, decision: "accept" });
  const [task] = await t.settled(id);
  expect(task?.state).toBe("verified");
  expect(task?.spent.timeMs).toBeLessThan(2000);
});

test("38: a task whose approval is `never` asks nobody and waits for nobody", async () => {
  await using t = await openTestHarness({ script: [{ calls: [shell("touch done.txt")] }, { text: "done" }] });
  const { id } = await t.add({ checks: [exists], approval: "never" });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
  expect(await t.of(id, "task.waited")).toEqual([]);
});

test("36: a provider that asks to come back later makes the task wait, with its words and the time", async () => {
  let refusals = 0;
  await using server = await startModelServer({
    script: [{ text: "done" }],
    faults: () =>
      (refusals += 1) === 1
        ? { kind: "status", status: 429, headers: { "retry-after": "1" }, body: "slow down" }
        : undefined,
  });
  await using t = await openTestHarness({ providers: [server.provider("openai-responses")] });
  const { id } = await t.add({ provider: "test", model: "gpt-5.5" });
  await t.work();
  const waiting = await t.until(id, ({ state }) => state === "waiting");
  expect(waiting.wait?.cause).toBe("provider");
  expect(waiting.wait?.message).toMatch(/429.*; asked again at \d{4}-/);
  expect(await t.settled(id)).toMatchObject([{ state: "claimed", retries: 0 }]);
});

test("65 77: with `abort` what runs in the thread is stopped first, its task is cancelled for the new one, then comes the prompt", async () => {
  await using t = await openTestHarness({
    providers: [
      { id: "slow", wire: "scripted", family: "openai", script: [{ text: "for ever", delayMs: 60_000 }] },
      { id: "scripted", family: "openai", script: [{ text: "taken over" }, { text: "taken over" }] },
    ],
  });
  const first = await t.add({ name: "stuck", provider: "slow" });
  const idle = await t.add({ name: "later", workspace: t.folder, priority: -1 });
  await t.work();
  await t.settled(idle.id);
  const { threadId = "" } = await t.until(first.id, ({ openPrompt }) => openPrompt !== undefined);
  await t.until(first.id, ({ state }) => state === "running");
  const second = await t.add({ name: "rescue", thread: threadId, abort: true });
  expect(await t.settled(first.id, second.id)).toMatchObject([
    { state: "cancelled", replacedBy: second.id },
    { state: "claimed", threadId },
  ]);
  expect(await t.of(second.id, "task.created")).toMatchObject([{ replaces: [first.id] }]);
  const turns = (await t.events(threadId)).flatMap(({ body }) =>
    body.type === "turn.admitted" ? [`admitted ${body.clientId}`] : body.type === "turn.completed" ? [body.status] : [],
  );
  expect(turns).toEqual([`admitted ${first.id}.1`, "interrupted", `admitted ${second.id}.1`, "completed"]);
});

test("65: a turn of a person in the thread is stopped too, and without `abort` it is waited for", async () => {
  await using t = await openTestHarness({ script: [{ text: "a person's turn", delayMs: 400 }, { text: "ok" }] });
  const own = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "hi" }],
    settings: SETTINGS,
  });
  const { id } = await t.add({ thread: own.threadId });
  await t.work();
  const waiting = await t.until(id, ({ state }) => state === "waiting");
  expect(waiting.wait?.message).toContain(own.turnId);
  expect(await t.settled(id)).toMatchObject([{ state: "claimed" }]);
  expect((await own.done).body.status).toBe("completed");
  const again = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "hi" }],
    settings: SETTINGS,
  });
  const taker = await t.add({ thread: again.threadId, abort: true });
  expect(await t.settled(taker.id)).toMatchObject([{ state: "claimed" }]);
  expect((await again.done).body.status).toBe("interrupted");
});

test("D24: to abort where nothing runs any more is no failure", async () => {
  await using t = await openTestHarness({ script: [{ text: "a person's turn" }, { text: "ok" }] });
  const own = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "hi" }],
    settings: SETTINGS,
  });
  await own.done;
  const { id } = await t.add({ thread: own.threadId, abort: true });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "claimed", threadId: own.threadId, spent: { turns: 1 } }]);
});

test("a harness that closes at a question leaves the turn there, and the next one follows it to its end", async () => {
  await using t = await openTestHarness({ script: [{ calls: [shell("touch done.txt")] }, { text: "done" }] });
  const { id } = await t.add({ checks: [exists], approval: "untrusted" });
  const harness = await t.work();
  const { threadId = "" } = await t.until(id, ({ state }) => state === "waiting");
  const { body } = await question(t, threadId);
  await harness[Symbol.asyncDispose]();
  expect(await t.tasks.find(id)).toMatchObject({ state: "pending", openPrompt: { round: 1 } });
  await t.work();
  await t.until(id, ({ state, attempt }) => state === "waiting" && attempt === 2);
  await t.heddle.as("user:owner").answer({ threadId, approvalId: body.approvalId, decision: "accept" });
  expect(await t.settled(id)).toMatchObject([{ state: "verified", round: 1, spent: { turns: 1 } }]);
});
