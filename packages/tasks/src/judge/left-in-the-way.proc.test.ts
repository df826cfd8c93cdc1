/** 13: what an earlier agent left makes nothing of the next one's work, neither worse nor worthless. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const FILES = {
  "sum.sh": "echo wrong\n",
  "helper.sh": "equal() { [ $1 = $2 ] || exit 1; }\n",
  "check.sh": ". ./helper.sh\nequal $(sh sum.sh) right\n",
};
const FIX = "echo 'echo right' > sum.sh";

async function after(first: string, second: string): Promise<readonly [TestHarness, TaskRecord, TaskRecord]> {
  const t = await openTestHarness({
    providers: [first, second].map((cmd, index) => ({
      id: `agent-${index + 1}`,
      family: "openai",
      wire: "scripted",
      script: [{ calls: [shell(cmd)] }, { text: "done" }],
    })),
  });
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(t.workspace, path), content);
  await t.work();
  const run = async (provider: string): Promise<TaskRecord> => {
    const checks = [{ kind: "command" as const, name: "check", run: ["sh", "check.sh"] }];
    const { id } = await t.add({ checks, deliver: ["sum.sh"], maxNudges: 0, provider });
    await t.settled(id);
    return await t.until(id, ({ holder }) => holder === undefined);
  };
  return [t, await run("agent-1"), await run("agent-2")];
}

test("13: a right repair that fails by what an earlier agent left is put to the owner, with its name; a wrong one is rejected", async () => {
  const spoil = "echo 'equal() { exit 1; }' > helper.sh";
  const [one, first, repaired] = await after(spoil, FIX);
  await using _one = one;
  expect(repaired).toMatchObject({
    state: "paused",
    lastCheck: { passed: false, review: { reasons: [{ kind: "left", files: ["helper.sh"] }] } },
  });
  expect(repaired.reason).toContain(`and fail with it: helper.sh (changed by ${first.id})`);
  expect(repaired.reason).toContain(`heddle task undo ${first.id}`);
  const [other, , wrong] = await after(spoil, "echo 'echo other' > sum.sh");
  await using _other = other;
  expect(wrong).toMatchObject({ lastCheck: { passed: false, results: [{ outcome: "failed" }] } });
  expect(wrong.lastCheck?.review).toBeUndefined();
});

test("13: a right repair is verified where checks passed before it only by what an earlier agent left; a wrong one is not", async () => {
  const spoil = "echo 'equal() { :; }' > helper.sh";
  const [one, , repaired] = await after(spoil, FIX);
  await using _one = one;
  expect(repaired).toMatchObject({ state: "verified" });
  const [other, , wrong] = await after(spoil, "echo 'echo other' > sum.sh");
  await using _other = other;
  expect(wrong).toMatchObject({ state: "paused", lastCheck: { passed: false } });
});
