/** 12.5: a workspace is the folder that was checked, not what its name leads to later. */
import { existsSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const touch = { calls: [{ tool: "exec_command", args: { cmd: "touch planted" } }] };
const ATTENDED = { isUnattended: false } as const;

function outsideOf(t: TestHeddle): string {
  const outside = join(t.folder, "outside");
  mkdirSync(outside);
  return outside;
}

test("12.5: a turn in a folder that another thread has swapped for a link is refused before it is admitted", async () => {
  const swap = { calls: [{ tool: "exec_command", args: { cmd: "mv sub old && ln -s ../outside sub" } }] };
  await using t = await openTestHeddle({ ...ATTENDED, script: [swap, { text: "swapped" }, touch, { text: "done" }] });
  const outside = outsideOf(t);
  const sub = join(t.workspace, "sub");
  mkdirSync(sub);
  const below = await t.heddle.as("user:owner").createThread({ workspace: sub, origin: "test" });
  await (
    await t.start("swap it")
  ).done;
  await expect(t.start("go", { thread: below })).rejects.toMatchObject({
    code: "workspace.moved",
    details: { path: sub, leadsTo: outside },
  });
  expect((await t.events(below)).map(({ body }) => body.type)).toEqual(["thread.created"]);
  expect(existsSync(join(outside, "planted"))).toBe(false);
});

test("12.5: a folder that is swapped after the turn was admitted is not followed either", async () => {
  let swap = (): void => undefined;
  await using server = await startModelServer({
    respond: ({ answers }) => {
      if (answers > 0) return { text: "done" };
      swap();
      return touch;
    },
  });
  await using t = await openTestHeddle({
    ...ATTENDED,
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const outside = outsideOf(t);
  // The host has given a sandbox before, so that the next one is opened with its first call.
  expect((await (await t.start("go")).done).body.status).toBe("completed");
  const sub = join(t.workspace, "sub");
  mkdirSync(sub);
  swap = () => {
    renameSync(sub, join(t.workspace, "old"));
    symlinkSync(outside, sub);
  };
  const below = await t.heddle.as("user:owner").createThread({ workspace: sub, origin: "test" });
  const turn = await t.start("go", { thread: below });
  expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "workspace.moved" } });
  expect(existsSync(join(outside, "planted"))).toBe(false);
});

test("12.5: a root of the configuration may be a link of the owner's, but none that lies where agents write", async () => {
  await using t = await openTestHeddle({ script: [touch, { text: "done" }] });
  const outside = outsideOf(t);
  const [owners, agents] = [join(t.folder, "link"), join(t.workspace, "link")];
  for (const link of [owners, agents]) symlinkSync(outside, link);
  const start = (writableRoots: string[]) =>
    t.heddle.as("user:owner").startTurn({
      thread: { workspace: t.workspace, origin: "test" },
      input: [{ type: "text", text: "go" }],
      settings: { ...t.settings, writableRoots },
    });
  await expect(start([agents])).rejects.toMatchObject({ code: "workspace.moved" });
  const turn = await start([owners]);
  expect((await turn.done).body.status).toBe("completed");
  const started = (await t.events(turn.threadId)).find(({ body }) => body.type === "turn.started");
  expect(started?.body).toMatchObject({ envelope: { writeRoots: [t.workspace, outside] } });
});
