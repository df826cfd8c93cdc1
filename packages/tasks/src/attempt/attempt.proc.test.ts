/** What becomes of a turn's end: claims, rejections, questions, budgets, failures. Numbers as in the list of promises. */
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startModelServer } from "@heddle/models/testing";
import { openTestHarness, report, shell } from "../../test/test-harness.ts";

const exists = { kind: "file-exists", path: "done.txt" } as const;
const retries = { backoffMs: 1 };

test("40 56: a claim that the checks refute is rejected, and the next prompt carries what they found", async () => {
  await using t = await openTestHarness({
    script: [
      { text: "All done!\nTASK COMPLETE" },
      { calls: [shell("touch done.txt")] },
      { text: "Now it is.\n**TASK COMPLETE**" },
    ],
  });
  const { id } = await t.add({
    checks: [exists, { kind: "command", name: "says", run: "echo the reason; test -e done.txt" }],
  });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", round: 2, spent: { turns: 2, nudges: 1 } });
  expect(await t.of(id, "task.claimed")).toMatchObject([{ by: "marker" }, { by: "marker" }]);
  const [, nudge] = await t.of(id, "task.prompted");
  expect(nudge).toMatchObject({ why: "rejected" });
  expect(nudge?.text).toContain("done.txt");
  expect(nudge?.text).toContain("the reason");
});

test("13: an agent whose link leads out of the workspace is told why it does not count", async () => {
  await using t = await openTestHarness({
    script: [
      { calls: [shell("ln -s /etc/passwd done.txt")] },
      { text: "Done.\nTASK COMPLETE" },
      { calls: [shell("rm done.txt; touch done.txt")] },
      { text: "Now it is.\nTASK COMPLETE" },
    ],
  });
  const { id } = await t.add({ checks: [exists], deliver: ["done.txt"] });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", round: 2 }]);
  const [, nudge] = await t.of(id, "task.prompted");
  expect(nudge?.text).toContain('- "done.txt": a link that leads out of the workspace is not judged');
});

test("55: when all checks pass a task is verified, though the agent never said that it is done", async () => {
  await using t = await openTestHarness({ script: [{ calls: [shell("touch done.txt")] }, { text: "Bye." }] });
  const { id } = await t.add({ checks: [exists] });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
  expect(await t.of(id, "task.claimed")).toMatchObject([{ by: "turn-end" }]);
});

test("41 42 D5: an agent that does nothing gets three nudges, one a turn, and then the task is paused", async () => {
  await using t = await openTestHarness({ script: Array.from({ length: 10 }, () => ({ text: "TASK COMPLETE" })) });
  const { id } = await t.add({ checks: [exists] });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", round: 4, spent: { turns: 4, nudges: 3 } });
  expect(task?.reason).toContain("done.txt");
  expect(await t.of(id, "task.paused")).toMatchObject([{ cause: "nudges" }]);
  const types = (await t.events(id)).map(({ body }) => body.type);
  for (const [index, type] of types.entries())
    if (type === "task.prompted")
      expect(types.slice(index + 1).find((next) => next !== "task.taken")).toBe("task.turn-ended");
  await t.tasks.resume(id);
  const [again] = await t.settled(id);
  expect(again).toMatchObject({ state: "paused", round: 8 });
});

test("39: an agent that is blocked pauses its task with its question; one that only wonders is told to go on", async () => {
  await using t = await openTestHarness({
    script: [
      { text: "Should I use tabs or spaces?" },
      { calls: [report("blocked", "Which of the two databases?")] },
      { text: "I wait." },
    ],
  });
  const { id } = await t.add({ checks: [exists] });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", reason: "Which of the two databases?", round: 2 });
  expect(await t.of(id, "task.paused")).toMatchObject([{ cause: "question" }]);
});

test("45 D3: steps that are reported at once all count, and nothing is taken back", async () => {
  await using t = await openTestHarness({
    script: [
      { calls: [report("progress", "two of three", [1, 2])] },
      { text: "more to do" },
      { calls: [report("progress", "", [2, 99])] },
      { text: "STEP DONE: 3\nTASK COMPLETE" },
    ],
  });
  const { id } = await t.add({ steps: ["a", "b", "c"].map((title) => ({ title })) });
  await t.work();
  const halfway = await t.until(id, ({ stepsDone }) => stepsDone.length > 0);
  expect(halfway.stepsDone).toEqual([1, 2]);
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "claimed", stepsDone: [1, 2, 3] });
});

test("46 D1 D21: words of other turns of an attached thread are not this task's, and the last message counts", async () => {
  await using t = await openTestHarness({
    script: [{ text: "TASK COMPLETE\nSTEP DONE: 1" }, { text: "I begin." }, { text: "Not yet." }],
  });
  const settings = { provider: "scripted", model: "scripted", sandboxMode: "workspace-write" } as const;
  const before = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "something else" }],
    settings: { ...settings, networkAccess: false, writableRoots: [], approvalPolicy: "never" },
  });
  await before.done;
  const { id } = await t.add({ thread: before.threadId, checks: [exists], maxNudges: 1, steps: [{ title: "a" }] });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", threadId: before.threadId, stepsDone: [] });
  expect(await t.of(id, "task.claimed")).toMatchObject([{ by: "turn-end" }, { by: "turn-end" }]);
});

test("11 34 D4: a transient error of the provider never fails a task: it is tried again in the same thread", async () => {
  let refusals = 0;
  await using server = await startModelServer({
    respond: ({ answers }) => (answers === 0 ? { calls: [shell("touch done.txt")] } : { text: "done" }),
    faults: () => ((refusals += 1) <= 2 ? { kind: "status", status: 503 } : undefined),
  });
  await using t = await openTestHarness({
    providers: [server.provider("openai-responses", { maxAttempts: 1, requestAttempts: 1 })],
  });
  const { id } = await t.add({ provider: "test", model: "gpt-5.5", checks: [exists], retries });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", retries: 2, spent: { turns: 3, nudges: 0 } });
  expect(await t.of(id, "task.retried")).toMatchObject([
    { class: "provider", failure: { code: "provider.overloaded" } },
    { class: "provider" },
  ]);
  expect(new Set((await t.of(id, "task.prepared")).map(({ threadId }) => threadId)).size).toBe(1);
});

test("D4: what stays wrong fails with its code once the tries are used up, and a user can have it tried again", async () => {
  await using t = await openTestHarness({
    script: [{ fail: { code: "provider.rejected", message: "no such model" } }],
  });
  const { id } = await t.add({ retries: { ...retries, max: 1, on: ["turn"] } });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "failed", retries: 1, failure: { code: "provider.rejected", class: "turn" } });
  // Work that went wrong by itself begins anew in a thread of its own.
  expect(new Set((await t.of(id, "task.prepared")).map(({ threadId }) => threadId)).size).toBe(2);
  expect(await t.tasks.retry(id)).toMatchObject({ state: "pending", retries: 0 });
});

test("D22: an error, a user's stop and a turn that says little are never a claim of success", async () => {
  await using t = await openTestHarness({
    providers: [
      {
        id: "broken",
        wire: "scripted",
        family: "openai",
        script: [{ text: "TASK COMPLETE", fail: { code: "provider.rejected" } }],
      },
      { id: "slow", wire: "scripted", family: "openai", script: [{ text: "TASK COMPLETE", delayMs: 60_000 }] },
      { id: "fails", wire: "scripted", family: "openai", script: [{ text: "The tests fail." }] },
    ],
    concurrency: 3,
  });
  const base = { checks: [exists], exclusive: false, maxNudges: 0 };
  const broken = await t.add({ ...base, provider: "broken" });
  const slow = await t.add({ ...base, provider: "slow" });
  const fails = await t.add({ ...base, provider: "fails" });
  await t.work();
  const { threadId = "" } = await t.until(slow.id, ({ openPrompt }) => openPrompt !== undefined);
  const turn = await untilOpen(t.heddle, threadId);
  await t.heddle.as("user:owner").interrupt(turn, { code: "turn.interrupted", message: "stopped by a person" });
  expect(await t.settled(broken.id, slow.id, fails.id)).toMatchObject([
    { state: "failed", failure: { code: "provider.rejected" } },
    { state: "paused", reason: "its turn was interrupted: stopped by a person" },
    { state: "paused" },
  ]);
  expect(await t.of(slow.id, "task.claimed")).toEqual([]);
  expect(await t.of(broken.id, "task.claimed")).toEqual([]);
});

async function untilOpen(
  { journal }: Awaited<ReturnType<typeof openTestHarness>>["heddle"],
  threadId: string,
): Promise<string> {
  for await (const { body } of journal.tail({ stream: threadId, after: 0, signal: AbortSignal.timeout(60_000) }))
    if (body.type === "turn.started") return body.turnId;
  throw new Error("no turn began");
}

test("43 D6: tokens run out: a warning, a pause that says so, and a resume that needs more, which it then uses", async () => {
  await using t = await openTestHarness({
    script: Array.from({ length: 10 }, () => ({ text: "TASK COMPLETE", usage: { inputTokens: 50, outputTokens: 0 } })),
  });
  const { id } = await t.add({ checks: [exists], budget: { tokens: 100 }, maxNudges: 10 });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", reason: "its tokens are used up: 100 of 100", spent: { turns: 2 } });
  expect(await t.of(id, "task.paused")).toMatchObject([{ cause: "budget" }]);
  expect(await t.of(id, "task.budget-warned")).toMatchObject([{ what: "tokens", spent: 100, limit: 100 }]);
  await expect(t.tasks.resume(id)).rejects.toMatchObject({ code: "limit.reached" });
  await expect(t.tasks.resume(id, { token: 50 })).rejects.toMatchObject({ code: "task.invalid" });
  await t.tasks.resume(id, { tokens: 50 });
  const [again] = await t.settled(id);
  expect(again).toMatchObject({ state: "paused", reason: "its tokens are used up: 150 of 150", spent: { turns: 3 } });
});

test("43: turns and money are budgets too, and `fail` ends where `pause` would wait", async () => {
  await using t = await openTestHarness({
    providers: [
      { id: "scripted", family: "openai", script: Array.from({ length: 10 }, () => ({ text: "no" })) },
      { id: "gateway", wire: "openai-chat", baseUrl: "http://127.0.0.1:9/v1", key: "k" },
    ],
  });
  const { id } = await t.add({ checks: [exists], budget: { turns: 2, onReached: "fail" } });
  const costly = await t.add({ budget: { costUsd: 1 }, workspace: t.folder, provider: "gateway", model: "own" });
  await t.work();
  expect(await t.settled(id)).toMatchObject([
    { state: "failed", failure: { code: "limit.reached" }, spent: { turns: 2 } },
  ]);
  expect(await t.of(id, "task.budget-warned")).toMatchObject([{ what: "turns", spent: 2, limit: 2 }]);
  // Its price is not known, and a cost that cannot be counted cannot be kept.
  expect(await t.settled(costly.id)).toMatchObject([{ state: "failed", failure: { code: "usage.invalid" } }]);
});

test("43: a turn is stopped when the time of its task is used up", async () => {
  await using t = await openTestHarness({ script: [{ text: "slowly", delayMs: 60_000 }] });
  const { id } = await t.add({ checks: [exists], budget: { timeMs: 300 } });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", reason: "the time of the task is used up" });
  expect(task?.spent.timeMs).toBeGreaterThanOrEqual(300);
  expect(task?.spent.timeMs).toBeLessThan(5000);
});

test("44: neither a pause nor waiting in the queue costs time", async () => {
  await using t = await openTestHarness({ script: [{ text: "no" }, { text: "no" }] });
  const { id } = await t.add({ checks: [exists], maxNudges: 0, budget: { timeMs: 60_000 } });
  await t.tasks.pause(id);
  const before = await t.tasks.find(id);
  const later = await new Promise<number>((resolve) => setTimeout(() => resolve(Date.now()), 300));
  expect(later - before.updatedAt).toBeGreaterThanOrEqual(299);
  await t.tasks.resume(id);
  await t.work();
  const [task] = await t.settled(id);
  const turns = await t.of(id, "task.turn-ended");
  const [checked] = await t.of(id, "task.checked");
  expect(task?.spent.timeMs).toBe((turns[0]?.durationMs ?? Number.NaN) + (checked?.durationMs ?? Number.NaN));
});

test("rejected work is tried anew in a new thread where the spec says so", async () => {
  await using t = await openTestHarness({ script: [{ text: "TASK COMPLETE" }] });
  const { id } = await t.add({ checks: [exists], maxNudges: 0, retries: { ...retries, max: 1, on: ["rejected"] } });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", retries: 1, attempt: 2 });
  expect((await t.of(id, "task.prompted")).map(({ why }) => why)).toEqual(["first", "first"]);
  expect(new Set((await t.of(id, "task.prepared")).map(({ threadId }) => threadId)).size).toBe(2);
  // What counts as the beginning is the beginning of the task.
  expect((await t.of(id, "task.prepared")).map(({ baseline }) => baseline !== undefined)).toEqual([true, false]);
});

test("54: a hook that fails keeps a task from being archived; one that passes runs where the work was done", async () => {
  await using t = await openTestHarness();
  const hooks = ["test -e ready || { echo not ready; exit 3; }", "touch archived.txt"];
  const { id } = await t.add({ beforeArchive: hooks });
  await t.tasks.cancel(id);
  await expect(t.tasks.archive(id)).rejects.toMatchObject({
    code: "task.hook-failed",
    message: expect.stringContaining("not ready"),
  });
  expect(await t.tasks.find(id)).toMatchObject({ state: "cancelled" });
  await writeFile(join(t.workspace, "ready"), "");
  expect(await t.tasks.archive(id)).toMatchObject({ state: "archived" });
  await access(join(t.workspace, "archived.txt"));
});

test("a second opinion can only add a no, which the agent is told like a check that failed", async () => {
  await using t = await openTestHarness({
    providers: [
      {
        id: "scripted",
        family: "openai",
        script: [{ calls: [shell("touch done.txt")] }, { text: "done" }, { text: "still done" }],
      },
      { id: "critic", wire: "scripted", script: [{ text: '{"accepts":false,"reason":"the file is empty"}' }] },
    ],
  });
  const secondOpinion = { provider: "critic", model: "critic" };
  const { id } = await t.add({ checks: [exists], secondOpinion, maxNudges: 1 });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", lastCheck: { passed: false, opinion: { accepts: false } } });
  expect(await t.of(id, "task.rejected")).toMatchObject([
    { failing: ["second opinion"] },
    { failing: ["second opinion"] },
  ]);
  expect((await t.of(id, "task.prompted"))[1]?.text).toContain("the file is empty");
});
