/** `heddle serve` carries out tasks that other processes add to its home. */
import { appendFile, mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
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
    await using first = await startServe(world, { args: ["--grace", "0"], env: MOCK_KEY });
    await mock.server.arrived(0);
    first.running.child.kill("SIGTERM");
    expect(await first.running.ended).toMatchObject({ code: 0 });
  }
  await using second = await startServe(world, { env: MOCK_KEY });
  const followed = await run(["task", "log", id, "--follow"], { world });
  expect(followed.stdout).toContain("VERIFIED: every check passed");
  expect(second.running.child.exitCode).toBeNull();
});

test("10: an address on the command line changes nothing of what the configuration says: the inbox and the sinks are there", async () => {
  await using mock = await openMockWorld({ script: [shell("touch done.txt"), { text: "It is done." }] });
  const { world } = mock;
  const [inbox, told] = [path.join(world.home, "..", "inbox"), path.join(world.home, "..", "told")];
  const tables = `[inbox]\nfolder = "${inbox}"\n\n[notify.file]\ntype = "file"\nfolder = "${told}"\nevents = ["TASK_VERIFIED"]\n`;
  await appendFile(path.join(world.home, "config.toml"), `\n${tables}`);
  await mkdir(inbox, { recursive: true });
  await using served = await startServe(world, { args: ["--listen", "http://127.0.0.1:0"], env: MOCK_KEY });
  expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await writeFile(path.join(inbox, "order.yaml"), TASK.replace("workspace: .", `workspace: ${world.workspace}`));
  const found = async (): Promise<number> => (await readdir(told).catch(() => [])).length;
  await expect.poll(found, { timeout: 60_000 }).toBe(1);
});
