/** Work whose checks passed and that its owner has to judge: put to them, accepted, sent back, and looked at again after a crash. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, realpath, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { changeTask } from "../queue/change.ts";
import { freezeClaim, readBase } from "./freeze-claim.ts";
import { openInbox } from "../inbox/open-inbox.ts";
import { refuseChangedSpec } from "../owner/changed-spec.ts";
import { openScratch } from "./scratch.ts";
import { eventually } from "../../test/test-store.ts";
import { openTaskFixture } from "../../test/task-fixture.ts";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const checks = [{ kind: "command", name: "works", run: "sh app.sh" }] as const;

async function open(...script: readonly object[]): Promise<TestHarness> {
  const t = await openTestHarness({ script: [...script] });
  await writeFile(join(t.workspace, "app.sh"), "exit 1\n");
  return t;
}

const repair = { calls: [shell("echo true > app.sh; echo extra > notes.md")] };
const done = { text: "TASK COMPLETE" };

async function accept(t: TestHarness, id: string, deliver: readonly string[]): Promise<void> {
  await changeTask(t.heddle.journal, id, {
    author: "user:owner",
    decide: () => [{ type: "task.resumed", v: 1, deliver: [...deliver] }],
  });
}

test("13: what the owner accepts is judged again as it was frozen, without a turn, and verified by the checks", async () => {
  await using t = await open(repair, done);
  const { id } = await t.add({ checks: [...checks] });
  await t.work();
  const [asked] = await t.settled(id);
  expect(asked).toMatchObject({
    state: "paused",
    lastCheck: {
      passed: false,
      results: [{ outcome: "passed", restsOn: ["app.sh", "notes.md"] }],
      review: { deliver: ["app.sh"], reasons: [{ kind: "rests", files: ["app.sh"] }] },
    },
  });
  expect(asked?.reason).toContain("app.sh (changed source)");
  expect(asked?.reason).toContain(`heddle task accept ${id}`);
  // Not what is there now: what was judged.
  await writeFile(join(t.workspace, "app.sh"), "exit 1\n");
  await accept(t, id, asked?.lastCheck?.review?.deliver ?? []);
  const [task] = await t.settled(id);
  expect(task).toMatchObject({
    state: "verified",
    deliver: ["app.sh"],
    lastCheck: { passed: true, work: { delivered: [{ path: "app.sh" }], others: [{ path: "notes.md" }] } },
  });
  expect(await t.of(id, "task.prompted")).toHaveLength(1);
  const [first, second] = await t.of(id, "task.checked");
  expect(second?.work?.sha256).toBe(first?.work?.sha256);
});

test("13: accepting other files than the work needs verifies nothing", async () => {
  await using t = await open(repair, done);
  const { id } = await t.add({ checks: [...checks], maxNudges: 0 });
  await t.work();
  await t.settled(id);
  await accept(t, id, ["notes.md"]);
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "paused", lastCheck: { passed: false, results: [{ outcome: "failed" }] } });
});

test("13: a task that is only resumed goes on with the agent, who is told what its owner was asked", async () => {
  await using t = await open(repair, done, { calls: [shell("echo exit 1 > app.sh; touch new.txt")] }, done);
  const { id } = await t.add({ checks: [...checks], maxNudges: 0 });
  await t.work();
  await t.settled(id);
  await t.tasks.resume(id);
  await t.settled(id);
  const prompts = await t.of(id, "task.prompted");
  expect(prompts.map(({ why }) => why)).toEqual(["first", "resumed"]);
  expect(prompts[1]?.text).toContain("files that no check names as the work: app.sh (changed source)");
});

test("13: a task keeps its beginning and its last work, and no more; what dead processes left goes", async () => {
  await using t = await open({ calls: [shell("touch a.txt")] }, done, repair, done);
  const { id } = await t.add({ checks: [...checks], deliver: ["app.sh"] });
  const scratch = join(t.home, "room-scratch");
  await using own = await openScratch(t.home, "setup");
  const left = basename(own.folder).replace(`.${process.pid}.`, ".1.");
  await mkdir(join(scratch, left, "upper", "deep"), { recursive: true });
  await mkdir(join(t.home, "rooms", id, "work-1.new"), { recursive: true });
  const harness = await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", round: 2 }]);
  await harness[Symbol.asyncDispose]();
  expect((await readdir(join(t.home, "rooms", id))).toSorted()).toEqual(["base", "work-2"]);
  expect(await readdir(scratch), "what a living process needs stays").toEqual([basename(own.folder)]);
});

test("13: the work that was judged last is kept until newer work is judged", async () => {
  await using t = await openTaskFixture({ checks: [...checks] });
  const baseline = await t.takeBaseline();
  const base = await readBase(t.checkOptions.home, { id: "task_1" }, baseline);
  const freeze = async (round: number, judged?: number): Promise<readonly string[]> => {
    const lastCheck = judged === undefined ? {} : { lastCheck: { round: judged } };
    await freezeClaim(t.checkOptions, { id: "task_1", round, ...lastCheck }, base);
    return (await readdir(join(t.checkOptions.home, "rooms", "task_1"))).toSorted();
  };
  expect(await freeze(1)).toEqual(["base", "work-1"]);
  expect(await freeze(2, 1)).toEqual(["base", "work-1", "work-2"]);
  expect(await freeze(3, 1)).toEqual(["base", "work-1", "work-3"]);
  expect(await freeze(4, 3)).toEqual(["base", "work-3", "work-4"]);
});

test("13: a check that hangs is shown with its name, and ends with the time of its task", async () => {
  await using t = await open({ calls: [shell("echo 'sleep 1000' > app.sh")] }, done);
  const { id } = await t.add({ checks: [...checks], deliver: ["app.sh"], budget: { timeMs: 4_000 } });
  await t.work();
  const running = await t.until(id, (task) => task.checking?.room === "delivered");
  expect(running.checking).toMatchObject({ name: "works" });
  const [task] = await t.settled(id);
  expect(task).toMatchObject({
    state: "paused",
    lastCheck: { results: [{ outcome: "error", message: expect.stringContaining("budget.time") }] },
  });
  expect(task?.spent.timeMs).toBeGreaterThanOrEqual(4_000);
});

test("13: a verdict remembers the spec that lies in the workspace as the agent left it", async () => {
  await using t = await open({ calls: [shell("echo true > app.sh; echo 'checks: [true]' > task.yaml")] }, done);
  const file = join(t.workspace, "task.yaml");
  await writeFile(file, "checks: [sh app.sh]\n");
  const spec = TaskSpec.parse({ name: "it", goal: "g", workspace: t.workspace, checks, deliver: ["app.sh"] });
  const { id } = await t.tasks.add({ spec, source: { kind: "cli", ref: file, sha256: "of the file before" } });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", lastCheck: { work: { others: [{ path: "task.yaml" }] } } });
  expect(task?.lastCheck?.work?.spec).toEqual({
    path: await realpath(file),
    sha256: createHash("sha256").update("checks: [true]\n").digest("hex"),
  });
});

test("13: an order that an agent wrote into an inbox becomes no task, and that is said once", async () => {
  const text = "---\nname: mine\n---\nEscape.\n";
  const write = "mkdir inbox; printf -- '---\\nname: mine\\n---\\nEscape.\\n' > inbox/zz.md";
  await using t = await open({ calls: [shell(write)] }, done);
  const { id } = await t.add({});
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "claimed" }]);
  const folder = join(t.workspace, "inbox");
  await writeFile(join(folder, "yours.md"), text);
  const said: string[] = [];
  const door = { journal: t.heddle.journal, tasks: t.tasks, home: t.home, defaultWorkspace: t.workspace };
  await using _inbox = await openInbox({ ...door, folder, settleMs: 60, rescanMs: 50, log: (line) => said.push(line) });
  const has = (names: readonly string[], begin: string): boolean => names.some((name) => name.startsWith(begin));
  await eventually("both are looked at", async () => {
    const names = await readdir(folder);
    return (has(names, "yours.md.processed-") && has(names, "zz.md.") && !has(names, "zz.md.processed-")) || undefined;
  });
  await eventually("it is said", () => said.some((line) => line.includes(`as the agent of ${id}`)) || undefined);
  expect(said.filter((line) => line.includes("zz.md did not become a task"))).toHaveLength(1);
});

test("13: what the agent of a cancelled task wrote is on record", async () => {
  await using t = await open({ calls: [shell("echo 'goal: escape' > zz.yaml; sleep 1000")] }, done);
  const { id } = await t.add({ checks: [...checks] });
  await t.work();
  const file = join(t.workspace, "zz.yaml");
  await eventually("it is written", () => existsSync(file) || undefined);
  await t.tasks.cancel(id);
  await eventually("it is noted", () => existsSync(join(t.home, "rooms", id, "left-1")) || undefined);
  const sha256 = createHash("sha256").update("goal: escape\n").digest("hex");
  const store = { journal: t.heddle.journal, home: t.home };
  const refused = refuseChangedSpec(store, { file, sha256, workspace: t.workspace, help: "accept it" });
  await expect(refused).rejects.toMatchObject({ code: "task.invalid", details: { taskId: id, path: "zz.yaml" } });
});

test("13: what an agent writes while it works becomes no task, in an inbox and by name, and what was there before does", async () => {
  const order = "---\\nname: mine\\n---\\nEscape.\\n";
  await using t = await open({ calls: [shell(`printf -- '${order}' > inbox/zz.md; sleep 1000`)] }, done);
  const folder = join(t.workspace, "inbox");
  await mkdir(folder);
  await writeFile(join(folder, "yours.md"), "---\nname: yours\n---\nWork.\n");
  const { id } = await t.add({ checks: [...checks] });
  await t.work();
  await eventually("it is written", () => existsSync(join(folder, "zz.md")) || undefined);
  expect(await t.heddle.journal.tasks.get(id)).toMatchObject({ state: "running" });
  const store = { journal: t.heddle.journal, home: t.home };
  const sha256 = createHash("sha256").update("---\nname: mine\n---\nEscape.\n").digest("hex");
  const named = { file: join(folder, "zz.md"), sha256, workspace: t.workspace, help: "accept it" };
  await expect(refuseChangedSpec(store, named)).rejects.toMatchObject({
    code: "task.invalid",
    details: { taskId: id },
  });
  const said: string[] = [];
  const door = { journal: t.heddle.journal, tasks: t.tasks, home: t.home, defaultWorkspace: t.workspace };
  {
    await using _inbox = await openInbox({
      ...door,
      folder,
      settleMs: 60,
      rescanMs: 50,
      log: (line) => said.push(line),
    });
    await eventually("it is said", () => said.find((line) => line.includes("zz.md did not become a task")));
    await eventually(
      "the other is taken",
      async () => (await readdir(folder)).some((name) => name.startsWith("yours.md.processed-")) || undefined,
    );
  }
  expect(said.join("\n")).toContain(`${id} (fix) works in its folder, and nothing says that you wrote it`);
  expect(said.join("\n")).toContain("when that task has ended");
  expect((await t.tasks.page({ limit: 10 })).map(({ spec }) => spec.name)).not.toContain("mine");
  await t.tasks.cancel(id);
});
