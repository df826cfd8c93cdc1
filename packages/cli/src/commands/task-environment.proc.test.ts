import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

test("15.7: the agent of a task sees the environment that the policy says, its check a clean one, and neither a key", async () => {
  const cmd = `printf '%s|%s|%s' "$JAVA_HOME" "$ADDED" "$MOCK_KEY" > done.txt`;
  await using mock = await openMockWorld({
    script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "It is done." }],
  });
  const check = 'test -f done.txt && test "$JAVA_HOME$ADDED$MOCK_KEY" = ""';
  await mock.world.file("workspace/t.yaml", `name: env\nworkspace: .\ngoal: look\nchecks: [{command: '${check}'}]\n`);
  const policy = 'shell_environment_policy={set={ADDED="by policy"},ignore_default_excludes=true}';
  const env = { ...MOCK_KEY, JAVA_HOME: "/opt/java" };
  const ran = await run(["watch", "t.yaml", "--once", "-c", policy], { world: mock.world, env });
  expect(ran.stdout).toContain("the harness ran 1 check: 1 passed");
  expect(await readFile(path.join(mock.world.workspace, "done.txt"), "utf8")).toBe("/opt/java|by policy|");
});
