/** What `heddle task` says where the state of a task does not allow what was asked for. */
import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";

const TASK =
  "name: later\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\nschedule: {every: 1h}\n";

test("14: what the state of a task does not allow is refused in plain words, with the command that helps", async () => {
  await using world = await openWorld();
  await world.file("workspace/t.yaml", TASK);
  const ran = async (...args: readonly string[]): Promise<string> =>
    (await run(["task", ...args], { world })).stderr.replace(/task_[0-9a-f-]+/g, "ID");
  await run(["task", "add", "t.yaml"], { world });
  const shown = (await run(["task", "show", "later"], { world, env: { TZ: "Asia/Kolkata" } })).stdout;
  expect(shown.match(/^.*next.*$/gm)).toEqual([
    // In the zone of the user, with its offset.
    expect.stringMatching(/^=#= state +waiting +waits for its time, next at [-\d]{10} [:\d]{8} \+05:30$/),
  ]);
  expect(shown).toMatch(/^used +0 ms of 4 h, /m);
  expect(await ran("delete", "later")).toBe(
    "heddle: task ID is waiting and cannot be deleted; first end it: heddle task cancel ID\n",
  );
  expect(await ran("resume", "later")).toBe("heddle: task ID is waiting and cannot be resumed\n");
  await ran("pause", "later");
  expect(await ran("pause", "later")).toBe("heddle: task ID is paused already\n");
  await ran("cancel", "later");
  expect(await ran("resume", "later")).toBe(
    "heddle: task ID is cancelled and cannot be resumed; begin it again: heddle task retry ID\n",
  );
});

test("14: what a task lacks to run is said once: the key that is missing with ways to get one, another mistake by its name", async () => {
  await using world = await openWorld();
  const ran = async (line: string) => {
    await world.file(
      "workspace/t.yaml",
      `name: now\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n${line}\n`,
    );
    return run(["task", "run", "t.yaml"], { world });
  };
  const keyless = await ran("provider: anthropic");
  expect(keyless).toMatchObject({ code: 3, stderr: expect.stringContaining("heddle login openai") });
  expect(keyless.stderr).toMatch(/^heddle: no key for the model was found\. Do one of these:\n/);
  const unknown = await ran("provider: opnai");
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringMatching(/^heddle: there is no provider "opnai"/) });
  expect(unknown.stderr.trim().split("\n")).toHaveLength(1);
});
