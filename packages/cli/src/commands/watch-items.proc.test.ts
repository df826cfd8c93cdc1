import { expect, test } from "vitest";
import { start } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

test("14: --items shows a command when it begins", async () => {
  await using mock = await openMockWorld({
    script: [
      {
        calls: [{ tool: "exec_command", args: { cmd: "until [ -e go ]; do sleep 0.05; done; echo made > done.txt" } }],
      },
      { text: "It is done." },
    ],
  });
  await mock.world.file(
    "workspace/heddle-task.yaml",
    "name: make it\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n",
  );
  await using running = start(["watch", "--once", "--items"], { world: mock.world, env: MOCK_KEY });
  await running.sees("$ until [ -e go ]");
  await mock.world.file("workspace/go", "");
  const ran = await running.ended;
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout.match(/\$ until/g)).toHaveLength(1);
  expect(ran.stdout).toMatch(/\$ until.*\n\| {3} *exit 0 in /);
});
