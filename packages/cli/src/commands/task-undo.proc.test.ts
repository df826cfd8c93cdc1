/** What an undo does not touch, and what a full disk of Heddle's does not cost. */
import { mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

async function openDone(): Promise<MockWorld> {
  const mock = await openMockWorld({
    respond: ({ answers }) =>
      answers > 0 ? { text: "It is done." } : { calls: [{ tool: "exec_command", args: { cmd: "echo x > done.txt" } }] },
  });
  const { world } = mock;
  const spec = `name: t\nworkspace: ${world.workspace}\ngoal: g\nchecks:\n  - file-exists: done.txt\ndeliver: [done.txt]\n`;
  await world.file("spec/task.yaml", spec);
  return mock;
}

test(
  "13: where Heddle's disk is full when work is frozen, the agent is not asked for more",
  { timeout: 240_000 },
  async () => {
    await using mock = await openDone();
    const { world } = mock;
    const env = { ...MOCK_KEY, HEDDLE_FAILPOINT: "tree.during-freeze=enospc" };
    expect(await run(["task", "run", `${world.root}/spec/task.yaml`], { world, env })).toMatchObject({ code: 0 });
    const shown = JSON.parse((await run(["task", "show", "t", "--json"], { world })).stdout);
    expect(shown).toMatchObject({ state: "verified", attempt: 2, spent: { turns: 1, nudges: 0 } });
  },
);

test("13: undo follows no link that lies where the workspace was, also by force", { timeout: 240_000 }, async () => {
  await using mock = await openDone();
  const { world } = mock;
  const { workspace, root } = world;
  expect(await run(["task", "run", `${root}/spec/task.yaml`], { world, env: MOCK_KEY })).toMatchObject({ code: 0 });
  const precious = path.join(root, "precious");
  await mkdir(precious);
  await writeFile(path.join(precious, "mine.txt"), "mine");
  await rename(workspace, `${workspace}-away`);
  await symlink(precious, workspace);
  const refused = await run(["task", "undo", "t", "--force"], { world, env: MOCK_KEY, cwd: root });
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain(`is behind a link that leads to ${precious}`);
  expect(await readdir(precious)).toEqual(["mine.txt"]);
});

test("13: undo of a verified draft takes its files out of the workspace again", { timeout: 240_000 }, async () => {
  await using mock = await openMockWorld({
    respond: ({ answers }) =>
      answers > 0 ? { text: "It is done." } : { calls: [{ tool: "exec_command", args: { cmd: "echo x > done.txt" } }] },
  });
  const { world } = mock;
  const heddle = (...args: readonly string[]): ReturnType<typeof run> =>
    run(["task", ...args], { world, env: MOCK_KEY, cwd: world.root });
  const spec = `name: t\nworkspace: ${world.workspace}\ngoal: g\napply: on-verified\nchecks: [{file-exists: done.txt}]\n`;
  await world.file("spec/task.yaml", `${spec}deliver: [done.txt]\n`);
  expect(await heddle("run", "spec/task.yaml")).toMatchObject({ code: 0 });
  expect(await readdir(world.workspace)).toContain("done.txt");
  const again = await heddle("retry", "t", "--from-baseline");
  expect(again.stderr).toMatch(/worked in a draft; heddle task undo \S+ takes its files out/);
  const undone = await heddle("undo", "t");
  expect(undone).toMatchObject({ code: 0 });
  expect(undone.stdout).toContain(`put back in ${world.workspace}: 1 file:`);
  expect(await readdir(world.workspace)).not.toContain("done.txt");
});
