/** `heddle serve` carries out tasks that other processes add to its home. */
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";
import { startServe } from "../../test/serve-client.ts";

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });
const TASK = "name: made\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n";

test("what is added while a server runs is taken up by it at once, and followed from another terminal", async () => {
  await using mock = await openMockWorld({ script: [shell("touch done.txt"), { text: "It is done." }] });
  const { world } = mock;
  await world.file("workspace/t.yaml", TASK);
  await using served = await startServe(world, { env: MOCK_KEY });
  const added = await run(["task", "add", "t.yaml", "--json"], { world });
  expect(added).toMatchObject({ code: 0 });
  const { id } = JSON.parse(added.stdout);
  const followed = await run(["task", "log", id, "--follow"], { world });
  expect(followed).toMatchObject({ code: 0 });
  expect(followed.stdout).toContain("VERIFIED: every check passed");
  served.running.child.kill("SIGTERM");
  expect(await served.running.ended).toMatchObject({ code: 0 });
});

test("a server that stops in the middle leaves the task to the next one", async () => {
  await using mock = await openMockWorld({
    respond: ({ number }) =>
      number === 0 ? shell("sleep 60") : number === 1 ? shell("touch done.txt") : { text: "It is done." },
  });
  const { world } = mock;
  await world.file("workspace/t.yaml", TASK);
  const added = await run(["task", "add", "t.yaml", "--json"], { world });
  const { id } = JSON.parse(added.stdout);
  {
    await using first = await startServe(world, { env: MOCK_KEY });
    await mock.server.arrived(0);
    first.running.child.kill("SIGTERM");
    expect(await first.running.ended).toMatchObject({ code: 0 });
  }
  await using second = await startServe(world, { env: MOCK_KEY });
  const followed = await run(["task", "log", id, "--follow"], { world });
  expect(followed.stdout).toContain("VERIFIED: every check passed");
  expect(second.running.child.exitCode).toBeNull();
});
