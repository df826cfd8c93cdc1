/** Stalls of real commands in the real sandbox: who is named, how often it is told, and what can be done about it. */
import { expect, test } from "vitest";
import { inspectProcess } from "@heddle/tools";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const waitsForInput = { tool: "exec_command", args: { cmd: "echo begun; cat", tty: true, yield_time_ms: 30_000 } };
const exists = { kind: "file-exists", path: "done.txt" } as const;
const fixes = [{ calls: [shell("touch done.txt")] }, { text: "done" }] as const;
const quick = { afterMs: 400 } as const;

async function stalled(t: TestHarness, id: string): Promise<void> {
  await t.until(id, ({ stall }) => stall?.isOpen === true);
}

test("91 93 94 98: a child that waits on stdin is named once, with what it does, and the stall ends when it does", async () => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: quick });
  await t.work();
  await stalled(t, id);
  expect(await t.tasks.find(id)).toMatchObject({ state: "stalled", stall: { episode: 1, isOpen: true } });
  const [first] = await t.of(id, "task.stalled");
  expect(first?.quietMs).toBeGreaterThanOrEqual(400);
  expect(first?.quietMs).toBeLessThan(20_000);
  expect(first?.itemId).toMatch(/^item_/);
  expect(first?.message).toMatch(/cat \(pid \d+\) waits for input on stdin/);
  const [culprit] = first?.culprits ?? [];
  expect(culprit).toMatchObject({ command: "cat", state: "S", readsStdin: true, openSockets: 0 });
  expect(culprit?.pid).toBeGreaterThan(1);
  await t.tasks.relieve(id, "eof");
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1, spent: { turns: 1, nudges: 0 } }]);
  expect(await t.of(id, "task.stalled")).toHaveLength(1);
  expect(await t.of(id, "task.recovered")).toMatchObject([{ episode: 1 }]);
  expect(await t.of(id, "task.stall-acted")).toMatchObject([
    { action: "eof", message: "asked for" },
    { action: "eof", message: "ended the input of 1 command" },
  ]);
});

test.each([
  ["eof", /^ended the input of 1 command$/],
  ["kill-child", /^ended cat \(pid \d+\); the turn continues$/],
] as const)("97: with the action %s the turn goes on by itself", async (action, message) => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: { ...quick, action } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1, spent: { turns: 1 } }]);
  const acted = { action, message: expect.stringMatching(message), episode: 1 };
  expect(await t.of(id, "task.stall-acted")).toMatchObject([acted]);
});

test("97: with the action interrupt the agent is told what hung, and goes on in another turn", async () => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: { ...quick, action: "interrupt" } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1, round: 2, spent: { nudges: 1 } }]);
  const [, again] = await t.of(id, "task.prompted");
  expect(again).toMatchObject({ why: "stall" });
  expect(again?.text).toContain("waits for input on stdin");
});

test("97: with the action retry the task gets another attempt", async () => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: { ...quick, action: "retry" } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 2 }]);
});

test("92: a silent command that computes raises nothing", async () => {
  const computes = shell("timeout 2 sh -c 'while :; do :; done'; true");
  await using t = await openTestHarness({
    script: [{ calls: [{ ...computes, args: { ...computes.args, yield_time_ms: 60_000 } }] }, ...fixes],
  });
  const { id } = await t.add({ checks: [exists], stall: quick });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified" });
  expect(task?.spent.timeMs).toBeGreaterThan(2 * quick.afterMs);
  expect(await t.of(id, "task.stalled")).toEqual([]);
});

test("91: a second silence after a recovery is another episode", async () => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }, { calls: [waitsForInput] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: { ...quick, action: "kill-child" } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
  expect((await t.of(id, "task.stalled")).map(({ episode }) => episode)).toEqual([1, 2]);
  expect((await t.of(id, "task.recovered")).map(({ episode }) => episode)).toEqual([1, 2]);
});

test("96: whoever hangs is found below whatever started it, however deep", async () => {
  const nested = {
    tool: "exec_command",
    args: { cmd: "sh -c 'sh -c cat; true'; true", tty: true, yield_time_ms: 30_000 },
  };
  await using t = await openTestHarness({ script: [{ calls: [nested] }, ...fixes] });
  const { id } = await t.add({ checks: [exists], stall: { ...quick, action: "kill-child" } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
  const [told] = await t.of(id, "task.stalled");
  expect(told?.culprits.map(({ command }) => command)).toEqual(["cat"]);
});

test("95: the stall of a task that is cancelled is over with it, and so is its command", async () => {
  await using t = await openTestHarness({ script: [{ calls: [waitsForInput] }] });
  const { id } = await t.add({ checks: [exists], stall: quick });
  await t.work();
  await stalled(t, id);
  const [told] = await t.of(id, "task.stalled");
  await t.tasks.cancel(id);
  expect(await t.settled(id)).toMatchObject([{ state: "cancelled", stall: { isOpen: false } }]);
  await expect(t.tasks.relieve(id, "eof")).rejects.toMatchObject({ code: "task.illegal" });
  const gone = (): boolean => inspectProcess(told?.culprits[0]?.pid ?? 0) === undefined;
  await expect.poll(gone, { timeout: 10_000 }).toBe(true);
});

test("a task that is not stalled cannot be relieved", async () => {
  await using t = await openTestHarness();
  const { id } = await t.add();
  await expect(t.tasks.relieve(id, "kill-child")).rejects.toMatchObject({ code: "task.illegal" });
});
