/** The hops of a spec: taken by the harness, between turns, when the guards of their edges are met. */
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { startModelServer } from "@heddle/models/testing";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { openTestHarness, shell, type TestHarness, type TestHarnessOptions } from "../../test/test-harness.ts";

const LOOK = `
extends: explore
exits:
  - { to: work, by: [task], approval: auto, guards: [{ kind: files, exist: [PLAN.md] }] }
  - { to: edit, by: [task], approval: ask }
  - { to: review, by: [model, user], approval: auto }
  - { to: reflect, by: [task], approval: auto, guards: [{ kind: outcome }] }
`;
const WORK = `
extends: edit
exits:
  - { to: test, by: [task], approval: auto, guards: [{ kind: command, command: [/bin/sh, -c, "cat done.txt"] }] }
`;

async function openHopping(options: TestHarnessOptions = {}): Promise<TestHarness> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "heddle-task-hops-")));
  const t = await openTestHarness({ ...options, folder });
  await writeEnvelopes(t.home);
  await writeFile(join(t.workspace, "PLAN.md"), "change it\n");
  return {
    ...t,
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

async function writeEnvelopes(home: string): Promise<void> {
  await mkdir(join(home, "envelopes"), { recursive: true, mode: 0o700 });
  await writeFile(join(home, "envelopes", "look.yaml"), LOOK);
  await writeFile(join(home, "envelopes", "work.yaml"), WORK);
}

const done = { text: "There.\nTASK COMPLETE" };
const exists = { kind: "file-exists", path: "done.txt" } as const;
const looking = (...hops: readonly string[]): Partial<TaskSpecInput> => ({
  envelope: "look",
  hops: hops.map((to) => ({ to })),
  checks: [exists],
  deliver: ["done.txt"],
});

/** Names of the envelopes that its thread has entered, and who took it there. */
async function path(t: TestHarness, id: string): Promise<readonly (readonly [string, string])[]> {
  const threadId = (await t.heddle.journal.tasks.get(id))?.threadId ?? "";
  return (await t.events(threadId)).flatMap(({ body }) =>
    body.type === "envelope.entered" ? [[body.envelope.id, body.hop?.channel ?? body.cause] as const] : [],
  );
}

async function why(t: TestHarness, id: string): Promise<readonly string[]> {
  return (await t.of(id, "task.prompted")).map((prompted) => prompted.why);
}

test("a task goes through look, work and test, each hop after the agent is done and the guard is met", async () => {
  await using t = await openHopping({
    script: [
      { calls: [shell("touch done.txt")] },
      { text: "It is read-only here.\nTASK COMPLETE" },
      { calls: [shell("echo ready > done.txt")] },
      done,
      { text: "Tested.\nTASK COMPLETE" },
    ],
  });
  const { id } = await t.add({
    ...looking(),
    hops: [
      { to: "work", prompt: "Write done.txt." },
      { to: "test", reason: "it is written" },
    ],
  });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", hops: { taken: 2 }, spent: { turns: 3, nudges: 0 } });
  expect(await path(t, id)).toEqual([
    ["look", "start"],
    ["work", "task"],
    ["test", "task"],
  ]);
  expect(await why(t, id)).toEqual(["first", "hopped", "hopped"]);
  const [first, second] = await t.of(id, "task.prompted");
  expect(first?.text).toContain("(work, then test)");
  expect(second?.text).toContain("You are in the envelope work now");
  expect(second?.text).toContain("Write done.txt.");
  expect(await t.of(id, "task.hop-due")).toMatchObject([
    { index: 0, to: "work", summary: expect.stringContaining("read-only") },
    { index: 1, to: "test" },
  ]);
  const events = await t.events(task?.threadId ?? "");
  const entered = events.flatMap(({ author, body }) => (body.type === "envelope.entered" ? [{ author, ...body }] : []));
  expect(entered.slice(1)).toMatchObject([
    { author: "system", hop: { guards: [{ kind: "files", isMet: true }] } },
    {
      author: "system",
      hop: { reason: "it is written", guards: [{ kind: "command", isMet: true, found: "exit code 0: ready" }] },
    },
  ]);
  const started = events.flatMap(({ body }) => (body.type === "turn.started" ? [body.envelope.id] : []));
  expect(started).toEqual(["look", "work", "test"]);
  expect((await t.heddle.journal.verify(task?.threadId ?? "")).damage).toEqual([]);
});

test("H5: a hop whose guard is not met prompts the agent with what was found, within its nudges", async () => {
  await using t = await openHopping({ script: [done, done, { calls: [shell("echo ready > done.txt")] }, done, done] });
  const { id } = await t.add(looking("work", "test"));
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", hops: { taken: 2 }, spent: { nudges: 1 } });
  expect(await why(t, id)).toEqual(["first", "hopped", "hop-refused", "hopped"]);
  expect(await t.of(id, "task.hop-refused")).toMatchObject([
    { index: 1, to: "test", failure: { code: "hop.guard-failed" } },
  ]);
  const nudge = (await t.of(id, "task.prompted"))[2]?.text;
  expect(nudge).toContain("done.txt");
});

test("an agent that never meets a guard is paused after its nudges, and a resume looks at the guard first", async () => {
  await using t = await openHopping({ script: [done, done, done, done] });
  await rm(join(t.workspace, "PLAN.md"));
  const { id } = await t.add({ ...looking("work"), maxNudges: 1 });
  await t.work();
  const [paused] = await t.settled(id);
  expect(paused).toMatchObject({ state: "paused", hops: { taken: 0 }, spent: { nudges: 1 } });
  expect(paused?.reason).toContain("PLAN.md does not exist");
  await writeFile(join(t.workspace, "PLAN.md"), "now\n");
  await t.tasks.resume(id);
  await t.until(id, ({ hops }) => hops?.taken === 1);
  expect((await why(t, id)).slice(0, 2)).toEqual(["first", "hop-refused"]);
  expect(await path(t, id)).toEqual([
    ["look", "start"],
    ["work", "task"],
  ]);
});

test("H6: an edge that asks pauses the task; a resume takes the hop once its user has taken the thread there", async () => {
  await using t = await openHopping({ script: [done, { calls: [shell("touch done.txt")] }, done] });
  const { id } = await t.add(looking("edit"));
  await t.work();
  const [asked] = await t.settled(id);
  expect(asked).toMatchObject({ state: "paused", hops: { taken: 0 } });
  expect(asked?.reason).toContain(`heddle threads hop ${asked?.threadId} edit`);
  expect(await t.of(id, "task.hop-refused")).toMatchObject([{ failure: { code: "hop.approval-denied" } }]);
  await t.tasks.resume(id);
  const again = await t.until(id, ({ state, version }) => state === "paused" && version > (asked?.version ?? 0) + 1);
  expect(again).toMatchObject({ round: 1 });

  await writeFile(
    join(t.home, "envelopes", "look.yaml"),
    LOOK.replace("by: [task], approval: ask", "by: [task, user], approval: ask"),
  );
  await t.heddle.as("user:owner").hopThread({ threadId: asked?.threadId ?? "", to: "review", reason: "by mistake" });
  await t.heddle.as("user:owner").hopThread({ threadId: asked?.threadId ?? "", to: "edit", reason: "it may" });
  await t.tasks.resume(id);
  await t.until(id, ({ state }) => state === "verified");
  expect(await why(t, id)).toEqual(["first", "hopped"]);
  expect(await path(t, id)).toEqual([
    ["look", "start"],
    ["review", "user"],
    ["edit", "user"],
  ]);
});

test("a hop above the ceiling of the task fails it with its code", async () => {
  await using t = await openHopping({ script: [done] });
  const { id } = await t.add({ ...looking("work"), ceiling: "explore" });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "failed", failure: { code: "ceiling.exceeded" }, hops: { taken: 0 } });
  expect(await path(t, id)).toEqual([["look", "start"]]);
});

test.each([
  ["task.after-hop-due", []],
  ["hop.before-enter", []],
  ["hop.after-enter", [["work", "task"]]],
  ["task.after-hop", [["work", "task"]]],
] as const)("H9: killed at %s, the next worker takes each hop once", async (failpoint, before) => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-task-hops-"));
  try {
    const id = await addAndDie(folder, failpoint, before);
    await using t = await openHopping({
      folder,
      script: [done, done, { calls: [shell("touch done.txt")] }, done, done],
    });
    await t.work();
    const [task] = await t.settled(id);
    expect(task).toMatchObject({ state: "verified", hops: { taken: 2 } });
    expect((await t.of(id, "task.hopped")).map(({ index, to }) => [index, to])).toEqual([
      [0, "work"],
      [1, "test"],
    ]);
    expect(await path(t, id)).toEqual([
      ["look", "start"],
      ["work", "task"],
      ["test", "task"],
    ]);
    expect((await t.heddle.journal.verify(task?.threadId ?? "")).damage).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

async function addAndDie(folder: string, failpoint: string, before: readonly unknown[]): Promise<string> {
  await using t = await openHopping({ folder });
  const { id } = await t.add(looking("work", "test"));
  const program = join(inject("children"), "harness-in-child.mjs");
  const env = { PATH: process.env["PATH"], TMPDIR: tmpdir(), HEDDLE_FAILPOINT: `${failpoint}=kill` };
  const child = spawnSync(process.execPath, [program, t.folder, id, "true"], {
    env,
    timeout: 60_000,
    encoding: "utf8",
  });
  expect([child.signal, child.stderr]).toEqual(["SIGKILL", ""]);
  expect((await path(t, id)).slice(1)).toEqual(before);
  return id;
}

test("another attempt goes on in the envelope that the thread has reached", async () => {
  let requests = 0;
  await using server = await startModelServer({
    respond: ({ answers }) => (answers === 1 ? { calls: [shell("touch done.txt")] } : done),
    faults: () => ([2, 3].includes((requests += 1)) ? { kind: "status", status: 503 } : undefined),
  });
  await using t = await openHopping({
    providers: [server.provider("openai-responses", { maxAttempts: 1, requestAttempts: 1 })],
  });
  const { id } = await t.add({ ...looking("work"), provider: "test", model: "gpt-5.5", retries: { backoffMs: 1 } });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", retries: 2, hops: { taken: 1 } });
  expect(await why(t, id)).toEqual(["first", "hopped", "retry", "retry"]);
  expect(await path(t, id)).toEqual([
    ["look", "start"],
    ["work", "task"],
  ]);
});

test("a task that begins anew in another thread begins its hops anew", async () => {
  await using t = await openHopping({ script: [done, { calls: [shell("touch done.txt")] }, done] });
  await rm(join(t.workspace, "PLAN.md"));
  const { id } = await t.add({ ...looking("work"), maxNudges: 0 });
  await t.work();
  const [paused] = await t.settled(id);
  await writeFile(join(t.workspace, "PLAN.md"), "now\n");
  await t.tasks.cancel(id);
  await t.tasks.retry(id, "again", { isFresh: true });
  const task = await t.until(id, ({ state }) => state === "verified");
  expect(task.threadId).not.toBe(paused?.threadId);
  expect(await why(t, id)).toEqual(["first", "first", "hopped"]);
  expect(await path(t, id)).toEqual([
    ["look", "start"],
    ["work", "task"],
  ]);
});

test("a task in a worktree of its own takes its hops there", async () => {
  await using t = await openHopping({ script: [done, { calls: [shell("echo it > done.txt")] }, done] });
  const git = (...args: readonly string[]): string => {
    const found = spawnSync("git", [...NOBODY, ...args], { cwd: t.workspace, encoding: "utf8" });
    expect([found.status, args]).toEqual([0, args]);
    return found.stdout;
  };
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "begin");
  const { id } = await t.add({ ...looking("work"), worktree: {} });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", hops: { taken: 1 } });
  expect(task?.folder).not.toBe(t.workspace);
  const entered = (await t.events(task?.threadId ?? "")).flatMap(({ body }) =>
    body.type === "envelope.entered" ? [body.envelope] : [],
  );
  expect(entered.map((envelope) => [envelope.id, envelope.writeRoots])).toEqual([
    ["look", []],
    ["work", [task?.folder]],
  ]);
});

const NOBODY = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com"];

test.each([
  [{ hops: [{ to: "wrok" }] }, "envelope.unknown", /there is no envelope "wrok"/],
  [
    { hops: [{ to: "plan" }] },
    "hop.no-edge",
    /no edge leads from "look" to "plan"; open to tasks: work, edit, reflect/,
  ],
  [{ hops: [{ to: "review" }] }, "hop.not-authorized", /is for model and user, not for tasks/],
  [{ hops: [{ to: "work" }, { to: "work" }] }, "hop.no-edge", /hop 2: the task is in "work" already/],
  [{ hops: [{ to: "work", carry: { plan: "x" } }] }, "hop.carry-invalid", /carries nothing/],
  [{ hops: [{ to: "reflect" }] }, "hop.guard-failed", /needs an outcome/],
] as const)("H2 H3: hops that cannot be are refused before anything runs: %j", async (hops, code, message) => {
  await using t = await openHopping();
  const spec = { ...looking(), hops: hops.hops.map((hop) => ({ ...hop })) };
  await expect(t.add(spec)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  expect(await t.tasks.page({ limit: 1 })).toEqual([]);
});

test("a task whose envelopes are gone when it begins fails before a model is asked", async () => {
  await using t = await openHopping({ script: [done] });
  const { id } = await t.add(looking("work"));
  await rm(join(t.home, "envelopes", "work.yaml"));
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "failed", round: 0, failure: { code: "envelope.invalid" } }]);
});
