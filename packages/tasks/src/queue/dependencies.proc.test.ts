import { expect, test } from "vitest";
import { openTestHarness, shell } from "../../test/test-harness.ts";

const works = [{ calls: [shell("touch done.txt")] }, { text: "done" }];
const exists = { kind: "file-exists", path: "done.txt" } as const;

test("a task waits until what it depends on is verified, and then runs", async () => {
  await using t = await openTestHarness({ script: works });
  const test = await t.add({ name: "test", dependsOn: ["build"], workspace: t.folder });
  await t.work();
  const waiting = await t.until(test.id, ({ state }) => state === "waiting");
  expect(waiting.wait).toEqual({ cause: "dependency", message: "waits for build, which does not exist" });
  const build = await t.add({ name: "build", checks: [exists] });
  expect(await t.settled(build.id, test.id)).toMatchObject([{ state: "verified" }, { state: "claimed" }]);
  const order = (await t.heddle.journal.read({ after: 0 })).filter(({ body }) => body.type === "task.taken");
  expect(order.map(({ stream }) => stream)).toEqual([build.id, test.id]);
});

test("a dependency that failed or was cancelled never satisfies; waiting says so, and a retry that is verified does", async () => {
  await using t = await openTestHarness({ script: works });
  const build = await t.add({ name: "build", checks: [exists] });
  const test = await t.add({ name: "test", dependsOn: ["build"], workspace: t.folder });
  await t.tasks.cancel(build.id);
  const harness = await t.work();
  const waiting = await t.until(test.id, ({ state }) => state === "waiting");
  expect(waiting.wait?.message).toContain("build, which was cancelled; retry that one");
  // It will not move by itself: whoever waits for the end is told.
  expect(await harness.drained([test.id], AbortSignal.timeout(60_000))).toMatchObject([{ state: "waiting" }]);
  await t.tasks.retry(build.id);
  await t.until(test.id, ({ state }) => state === "claimed");
});

test("tasks that would wait for each other are refused when the circle closes", async () => {
  await using t = await openTestHarness();
  await t.add({ name: "a", dependsOn: ["b"] });
  await t.add({ name: "b", dependsOn: ["c"] });
  await expect(t.add({ name: "c", dependsOn: ["a"] })).rejects.toMatchObject({
    code: "task.invalid",
    message: "depends_on is circular: c → a → b → c; remove one of them",
  });
  await expect(t.add({ name: "self", dependsOn: ["self"] })).rejects.toMatchObject({ code: "task.invalid" });
});
