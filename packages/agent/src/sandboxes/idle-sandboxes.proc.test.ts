import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const call = (cmd: string, more: object = {}) => ({ tool: "exec_command", args: { cmd, ...more } });

async function opened(t: TestHeddle, threadId: string): Promise<number> {
  return (await t.events(threadId)).filter(({ body }) => body.type === "sandbox.opened").length;
}

test("12.10: a server keeps the sandboxes of the threads that were worked in last, and opens others again", async () => {
  const turn = [{ calls: [call("true")] }, { text: "done" }];
  const script = Array.from({ length: 5 }, () => turn).flat();
  await using t = await openTestHeddle({ script, isUnattended: false, idleSandboxes: { count: 1 } });
  const first = await t.start("go");
  await first.done;
  await (
    await t.start("go", { thread: first.threadId })
  ).done;
  expect(await opened(t, first.threadId)).toBe(1);
  const second = await t.start("go");
  await second.done;
  await (
    await t.start("go", { thread: first.threadId })
  ).done;
  expect(await opened(t, first.threadId)).toBe(2);
  // The second one had to go for it.
  expect(await opened(t, second.threadId)).toBe(1);
  await (
    await t.start("go", { thread: second.threadId })
  ).done;
  expect(await opened(t, second.threadId)).toBe(2);
});

test("12.10: what still runs keeps its sandbox, and what has ended is still told", async () => {
  const start = call("echo up; until [ -e go ]; do sleep 0.05; done; echo over", { yield_time_ms: 300 });
  const poll = { tool: "write_stdin", args: { session_id: 1000, chars: "", yield_time_ms: 5000 } };
  await using t = await openTestHeddle({
    isUnattended: false,
    idleSandboxes: { count: 0 },
    script: [{ calls: [start] }, { text: "it runs" }, { calls: [call("touch go"), poll] }, { text: "done" }],
  });
  const first = await t.start("go");
  await first.done;
  expect(await t.heddle.terminals(first.threadId)).toHaveLength(1);
  await (
    await t.start("go on", { thread: first.threadId })
  ).done;
  expect(await opened(t, first.threadId)).toBe(1);
  const outputs = (await t.events(first.threadId)).flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "toolCall" ? [body.item.output] : [],
  );
  expect(outputs).toEqual(["over\n"]);
});

test("12.10: a thread that is put away gives back what it holds, what runs there included", async () => {
  await using t = await openTestHeddle({
    isUnattended: false,
    script: [{ calls: [call("echo up; sleep 300", { yield_time_ms: 300 })] }, { text: "it runs" }],
  });
  const { threadId, done } = await t.start("go");
  await done;
  expect(await t.heddle.terminals(threadId)).toHaveLength(1);
  await t.heddle.as("user:owner").archiveThread({ threadId, isArchived: true });
  expect(await t.heddle.terminals(threadId)).toEqual([]);
});
