/** Who is named and who is ended when several processes run: the one the turn waits for, and nobody else. */
import { describe, expect, test } from "vitest";
import { probeSandbox } from "@heddle/tools";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const quick = { afterMs: 400, action: "kill-child" } as const;
const exists = { kind: "file-exists", path: "done.txt" } as const;
const longWait = { yield_time_ms: 30_000 };
const waiting = (cmd: string, tty = false) => ({ tool: "exec_command", args: { cmd, tty, ...longWait } });

/** Busy now and then, as servers are, and reads its input to the last: what it is told it writes into a file. */
const SERVER = `node -e '
  setInterval(() => { for (const end = Date.now() + 30; Date.now() < end;); }, 100);
  process.stdin.on("data", (text) => require("fs").writeFileSync("done.txt", text));'`;
const inBackground = { tool: "exec_command", args: { cmd: SERVER, tty: true, yield_time_ms: 250 } };
const tellServer = { tool: "write_stdin", args: { session_id: 1000, chars: "still here", yield_time_ms: 250 } };

/** On a slow machine the start of a turn is a silence of its own. */
const named = async (t: TestHarness, id: string) =>
  (await t.of(id, "task.stalled")).filter(({ culprits }) => culprits.length > 0);
const acted = async (t: TestHarness, id: string): Promise<readonly string[]> =>
  (await t.of(id, "task.stall-acted")).map(({ message }) => message).filter((words) => !words.endsWith("no command"));

const probed = await probeSandbox();

for (const backend of ["namespaces", "bwrap"] as const) {
  const isThere = probed[backend].ok;
  describe.runIf(isThere)(`in the sandbox of ${backend}${isThere ? "" : " (not on this host)"}`, () => {
    test("13: npm init at its prompt is named and ended, the server that an earlier call started is not", async () => {
      const script = [
        { calls: [inBackground] },
        { calls: [waiting("npm init", true)] },
        { calls: [tellServer] },
        { text: "done" },
      ];
      await using t = await openTestHarness({ backend, script });
      const { id } = await t.add({ checks: [exists], stall: quick });
      await t.work();
      expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1, spent: { turns: 1 } }]);
      const [told] = await named(t, id);
      expect(told?.message).toMatch(/npm init \(pid \d+\) waits for input on stdin/);
      expect(told?.message).toContain("the action eof ends its input, kill-child ends it");
      expect(told?.culprits.map(({ command }) => command)).toEqual(["npm init"]);
      expect(await acted(t, id)).toEqual([expect.stringMatching(/^ended npm init \(pid \d+\)/)]);
    });

    test("13: what a command put into its own background goes on when the rest of it hangs", async () => {
      const cmd = "sleep 500 & server=$!; sleep 400; kill -0 $server && touch done.txt";
      await using t = await openTestHarness({ backend, script: [{ calls: [waiting(cmd)] }, { text: "done" }] });
      const { id } = await t.add({ checks: [exists], stall: quick });
      await t.work();
      expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1 }]);
      const [told] = await named(t, id);
      expect(told?.culprits.map(({ command }) => command)).toEqual(["sleep 400"]);
    });
  });
}

test.each([
  ["the first of a pipeline holds up those that read from it", "sleep 300 | cat", "sleep 300", "cat"],
  ["a shell that reads while its children run", "sleep 300 & read answer", "read answer"],
  ["what lost its parent is not waited for", "(sleep 300 &); sleep 200", "sleep 200"],
  ["a program beside a server that node started", "node -e 'setInterval(() => {}, 9e6)' & sleep 200", "sleep 200"],
  ["a program that sleeps beside a server that it started", "set -m; sleep 300 & exec sleep 200", "sleep 200"],
  ["a shell that became a program beside its background", "sh -c 'sleep 300 & exec sleep 200'; true", "sleep 200"],
  ["such a program at the head of a pipeline", "(sleep 300 & exec sleep 200) | cat", "sleep 200", "cat"],
  ["a prompt below programs that only wait", "sh -c 'sh -c \"read x; true\"; true'; true", "read x"],
])("13: %s", async (_name, cmd, ...culprits) => {
  await using t = await openTestHarness({ script: [{ calls: [waiting(cmd, true)] }, { text: "done" }] });
  const { id } = await t.add({ stall: { afterMs: 400 } });
  await t.work();
  const { stall } = await t.until(id, (task) => (task.stall?.culprits.length ?? 0) > 0);
  expect(stall?.culprits.map(({ command }) => command)).toEqual(
    culprits.map((words: string) => expect.stringContaining(words)),
  );
});

test("13: while the model is waited for no command is named, and none is ended", async () => {
  const cmd = SERVER.replace("setInterval", "void");
  const quietServer = { ...inBackground, args: { ...inBackground.args, cmd } };
  const script = [{ calls: [quietServer] }, { calls: [tellServer], delayMs: 1500 }, { text: "done" }];
  await using t = await openTestHarness({ script });
  const { id } = await t.add({ checks: [exists], stall: quick });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1 }]);
  expect(await named(t, id)).toEqual([]);
  const words = (await t.of(id, "task.stalled")).map(({ message }) => message);
  expect(words).toContainEqual(expect.stringContaining("the model has not answered"));
  expect(await acted(t, id)).toEqual([]);
});

test("13: the input of a server in the background stays open when that of the prompt is ended", async () => {
  const script = [
    { calls: [inBackground] },
    { calls: [waiting("cat", true)] },
    { calls: [tellServer] },
    { text: "done" },
  ];
  await using t = await openTestHarness({ script });
  const { id } = await t.add({ checks: [exists], stall: { afterMs: 400, action: "eof" } });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1 }]);
  expect(await acted(t, id)).toContain("ended the input of 1 command");
});

test("13: two calls that wait are judged each: the user's command goes on when the agent's is ended", async () => {
  await using t = await openTestHarness({
    script: [{ calls: [waiting("cat", true)] }, { calls: [shell("true")] }, { text: "done" }],
  });
  const { id } = await t.add({ checks: [exists], stall: { afterMs: 600, action: "kill-child" } });
  await t.work();
  const { threadId = "" } = await t.until(id, (task) => task.threadId !== undefined);
  await expect.poll(() => t.heddle.runningCommands(threadId).length, { timeout: 60_000 }).toBe(1);
  const settings = await t.heddle.lastSettings(threadId);
  if (settings === undefined) throw new Error("a turn has settings");
  await t.heddle
    .as("user:owner")
    .runShell({ threadId, command: "timeout 2 sh -c 'while :; do :; done'; touch done.txt", settings });
  expect(await t.settled(id)).toMatchObject([{ state: "verified", attempt: 1 }]);
  const [told] = await named(t, id);
  expect(told?.culprits[0]?.command).toBe("cat");
});
