/** The life of tasks, through a real Heddle with a scripted model. Numbers are those of the promises they keep. */
import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { thisHolder } from "@heddle/agent";
import type { TaskRecord } from "@heddle/protocol";
import { harnessOptions, openTestHarness, report, shell } from "../../test/test-harness.ts";
import { openHarness } from "./harness.ts";

const exists = { kind: "file-exists", path: "done.txt" } as const;
const works = [{ calls: [shell("touch done.txt")] }, { calls: [report("done", "wrote it")] }, { text: "Done." }];

test("23 24: a task is pending when it is added, running with its thread when it is taken, and verified by its checks", async () => {
  await using t = await openTestHarness({ script: works });
  const added = await t.add({ checks: [exists] });
  expect(added).toMatchObject({ state: "pending", attempt: 0 });
  await t.work();
  const running = await t.until(added.id, ({ threadId }) => threadId !== undefined);
  expect(running).toMatchObject({ state: "running", attempt: 1 });
  const [task] = await t.settled(added.id);
  expect(task).toMatchObject({
    state: "verified",
    round: 1,
    spent: { turns: 1, nudges: 0 },
    lastCheck: { passed: true },
  });
  expect(await t.of(added.id, "task.claimed")).toMatchObject([{ by: "report", summary: "wrote it" }]);
  await access(join(t.workspace, "done.txt"));
});

test("12.13: a task that takes too long from being taken to its first request says where it stood, in log and record", async () => {
  const lines: string[] = [];
  await using t = await openTestHarness({ script: works, slowStartMs: 1, log: (line) => lines.push(line) });
  const { id } = await t.add({ checks: [exists] });
  await t.work();
  const [task] = await t.settled(id);
  expect(lines.filter((line) => line.includes("the start has taken"))).toEqual([expect.stringContaining(`${id}: `)]);
  expect(JSON.stringify(await t.events(task?.threadId ?? ""))).toContain("start.slow");
});

test("25: a paused task is left alone, a resumed one goes on at once in its own thread", async () => {
  await using t = await openTestHarness({
    script: [{ text: "I begin.", delayMs: 60_000 }, ...works],
  });
  const { id } = await t.add({ checks: [exists], name: "slow" });
  await t.work();
  const { threadId = "" } = await t.until(id, ({ openPrompt }) => openPrompt !== undefined);
  await t.tasks.pause(id, "not now");
  const paused = await t.until(id, ({ state, openPrompt }) => state === "paused" && openPrompt === undefined);
  expect(paused).toMatchObject({ reason: "not now", spent: { turns: 1 } });
  expect(await t.heddle.journal.threads.turns(threadId)).toMatchObject([{ status: "interrupted" }]);
  await expect(t.tasks.pause(id)).rejects.toMatchObject({ code: "task.illegal" });
  await t.tasks.resume(id);
  const again = await t.until(id, ({ round, openPrompt }) => round === 2 && openPrompt !== undefined);
  expect(again).toMatchObject({ threadId, attempt: 2 });
  expect(await t.of(id, "task.prompted")).toMatchObject([{ why: "first" }, { why: "resumed" }]);
  await t.tasks.cancel(id);
});

test("26 D8: what does not fit the state of a task is refused, by a code", async () => {
  await using t = await openTestHarness();
  const { id } = await t.add();
  await expect(t.tasks.resume(id)).rejects.toMatchObject({ code: "task.illegal" });
  await expect(t.tasks.archive(id)).rejects.toMatchObject({ code: "task.illegal" });
  await t.tasks.cancel(id, "not needed");
  await t.tasks.archive(id);
  for (const call of ["resume", "pause", "cancel", "retry", "complete"] as const)
    await expect(t.tasks[call](id)).rejects.toMatchObject({ code: "task.illegal" });
  await expect(t.tasks.find("task_ffff")).rejects.toMatchObject({ code: "task.not-found" });
});

test("27: a user's word ends a task at claimed, marked as a user's, and never at verified", async () => {
  await using t = await openTestHarness();
  const { id } = await t.add({ checks: [exists] });
  expect(await t.tasks.complete(id, "I did it myself")).toMatchObject({
    state: "claimed",
    claim: { by: "user", summary: "I did it myself" },
  });
});

test("28 29: only what has ended is archived or deleted; deleted is gone, and its key is not used again", async () => {
  await using t = await openTestHarness();
  const { id } = await t.add({}, { key: "once" });
  await expect(t.tasks.remove(id)).rejects.toMatchObject({ code: "task.illegal" });
  await t.tasks.cancel(id);
  expect(await t.tasks.archive(id)).toMatchObject({ state: "archived" });
  expect(await t.tasks.page({ states: ["pending", "running", "cancelled"], limit: 10 })).toEqual([]);
  expect(await t.tasks.archive(id, false)).toMatchObject({ state: "cancelled" });
  await t.tasks.remove(id);
  await expect(t.tasks.find(id)).rejects.toMatchObject({ code: "task.not-found" });
  await expect(t.add({}, { key: "once" })).rejects.toMatchObject({ code: "store.id-conflict" });
});

test("30: every change is one stored event, in order and without gaps", async () => {
  await using t = await openTestHarness({ script: works });
  const { id } = await t.add({ checks: [exists] });
  await t.work();
  const [task] = await t.settled(id);
  const events = await t.events(id);
  expect(events.map(({ version }) => version)).toEqual(events.map((_, index) => index + 1));
  expect(task?.version).toBe(events.length);
  expect(events.map(({ body }) => body.type)).toEqual([
    "task.created",
    "task.taken",
    "task.checking",
    "task.prepared",
    "task.prompted",
    "task.turn-ended",
    "task.claimed",
    "task.checking",
    "task.checked",
    "task.verified",
  ]);
});

test("13: a task of a dead worker does not keep its folder from one that is run alone, and is queued again", async () => {
  await using t = await openTestHarness({ script: works });
  const dead = await t.add();
  const holder = { ...thisHolder(), pid: 2 ** 22, startTicks: "1" };
  const taken = { type: "task.taken", v: 1, attempt: 1, holder } as const;
  await t.heddle.journal.append({ stream: dead.id, author: "system", events: [taken] });
  const own = await t.add({ checks: [exists] });
  const only = Promise.resolve([own.id]);
  await using _harness = await openHarness({ ...harnessOptions(t.heddle, t.home, {}), only });
  expect(await t.settled(own.id)).toMatchObject([{ state: "verified" }]);
  expect(await t.heddle.journal.tasks.get(dead.id)).toMatchObject({ state: "pending" });
  expect(await t.of(dead.id, "task.retried")).toMatchObject([{ reason: expect.stringContaining("its worker ended") }]);
});

test("33: a task that is to go on with a thread that is gone fails, and says so", async () => {
  await using t = await openTestHarness();
  const { id } = await t.add({ thread: "0198c0de-0000-7000-8000-000000000000" });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "failed", failure: { code: "thread.not-found" } });
  expect(task?.reason).toContain("no longer exists");
});

test("57 D2: without its workspace a task is never done, whatever the agent promises", async () => {
  await using t = await openTestHarness({
    script: [{ text: "I will say TASK COMPLETE when I am done. Not done yet." }],
  });
  const { id } = await t.add({ workspace: join(t.folder, "nowhere"), checks: [exists] });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "failed", failure: { code: "workspace.missing" } }]);
});

test("57: a workspace that vanishes during the work verifies nothing", async () => {
  await using t = await openTestHarness({ script: [{ text: "TASK COMPLETE", delayMs: 500 }] });
  const { id } = await t.add({ checks: [exists], maxNudges: 0 });
  await t.work();
  await t.until(id, ({ openPrompt }) => openPrompt !== undefined);
  await rm(t.workspace, { recursive: true });
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", lastCheck: { violations: [{ kind: "workspace-missing" }] } });
});

test("a task without checks ends at claimed, never at verified, and counts as done for what depends on it", async () => {
  await using t = await openTestHarness({ script: [{ text: "I think it is fine." }] });
  const first = await t.add({ name: "first" });
  const second = await t.add({ name: "second", dependsOn: ["first"], workspace: t.folder });
  await t.work();
  expect(await t.settled(first.id, second.id)).toMatchObject([
    { state: "claimed", claim: { by: "turn-end", summary: "I think it is fine." } },
    { state: "claimed" },
  ]);
});

test("a harness that closes gives its tasks back, and the next one goes on in the same thread", async () => {
  await using t = await openTestHarness({ script: [{ text: "slowly", delayMs: 60_000 }] });
  const { id } = await t.add({ checks: [exists] });
  const harness = await t.work();
  const { threadId } = await t.until(id, ({ openPrompt }) => openPrompt !== undefined);
  await harness[Symbol.asyncDispose]();
  expect(await t.tasks.find(id)).toMatchObject({ state: "pending", threadId, spent: { turns: 1, nudges: 0 } });
  await t.work();
  const again = await t.until(id, ({ round, openPrompt }) => round === 2 && openPrompt !== undefined);
  expect(again).toMatchObject({ threadId, retries: 0 });
  expect((await t.of(id, "task.prompted")).map(({ why }) => why)).toEqual(["first", "restarted"]);
});

test("higher priority first, then older; as many at a time as the harness may", async () => {
  await using t = await openTestHarness({ script: [{ text: "done" }], concurrency: 1 });
  const names = ["low", "high", "older", "younger"];
  const priorities = [-1, 5, 0, 0];
  const added: TaskRecord[] = [];
  for (const [index, name] of names.entries())
    added.push(await t.add({ name, priority: priorities[index] ?? 0, workspace: t.folder }));
  await t.work();
  await t.settled(...added.map(({ id }) => id));
  const taken = (await t.heddle.journal.read({ after: 0 })).filter(({ body }) => body.type === "task.taken");
  expect(taken.map(({ stream }) => names[added.findIndex(({ id }) => id === stream)])).toEqual([
    "high",
    "older",
    "younger",
    "low",
  ]);
});

test("one task at a time works in a folder, unless none of them minds", async () => {
  await using t = await openTestHarness({ script: [{ text: "done", delayMs: 200 }] });
  const exclusive = [
    await t.add({ name: "a" }),
    await t.add({ name: "b", exclusive: false }),
    await t.add({ name: "c" }),
  ];
  const shared = [
    await t.add({ name: "d", exclusive: false, workspace: t.folder }),
    await t.add({ name: "e", exclusive: false, workspace: t.folder }),
  ];
  await t.work();
  await t.settled(...[...exclusive, ...shared].map(({ id }) => id));
  const all = await t.heddle.journal.read({ after: 0 });
  const most = (ids: readonly string[]): number => {
    let held = 0;
    let highest = 0;
    for (const { stream, body } of all) {
      if (!ids.includes(stream)) continue;
      if (body.type === "task.taken") held += 1;
      if (body.type === "task.claimed" || body.type === "task.retried") held -= 1;
      highest = Math.max(highest, held);
    }
    return highest;
  };
  expect(most(exclusive.map(({ id }) => id))).toBe(1);
  expect(most(shared.map(({ id }) => id))).toBe(2);
});
