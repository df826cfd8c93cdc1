/** 13: the times that agents of earlier tasks gave to files are not how the next task begins. */
import { lstat, mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const MAKEFILE = `check: .ok-a .ok-b
.ok-a: a.sh lib
	[ "$$(sh a.sh)" = 2 ]
	touch $@
.ok-b: b.sh
	[ "$$(sh b.sh)" = 2 ]
	touch $@
`;

/** Both passed in January and were broken in February. */
async function open(...commands: readonly string[]): Promise<TestHarness> {
  const t = await openTestHarness({
    providers: commands.map((cmd, index) => ({
      id: `agent-${index + 1}`,
      family: "openai",
      wire: "scripted",
      script: [{ calls: [shell(cmd)] }, { text: "done" }],
    })),
  });
  const files = { Makefile: MAKEFILE, "a.sh": "echo 1\n", "b.sh": "echo 1\n", ".ok-a": "", ".ok-b": "" };
  await mkdir(join(t.workspace, "lib"));
  for (const [path, content] of Object.entries(files)) await writeFile(join(t.workspace, path), content);
  const at = (path: string, time: string): Promise<void> =>
    utimes(join(t.workspace, path), new Date(time), new Date(time));
  for (const path of [".ok-a", ".ok-b", "lib"]) await at(path, "2026-01-01T00:00:00Z");
  for (const path of ["a.sh", "b.sh"]) await at(path, "2026-02-01T00:00:00Z");
  await t.work();
  return t;
}

async function run(t: TestHarness, provider: string, deliver = ["a.sh", "b.sh"]): Promise<TaskRecord> {
  const checks = [{ kind: "command" as const, name: "check", run: ["make", "check"] }];
  const { id } = await t.add({ checks, deliver, maxNudges: 0, provider });
  const [task] = await t.settled(id);
  if (task === undefined) throw new Error("no task");
  return task;
}

const FIX_B = "echo 'echo 2' > b.sh";
const REJECTED = { lastCheck: { passed: false, results: [{ outcome: "failed" }] } };

test.each([
  ["touched", "touch .ok-a"],
  ["dated back", "touch -d 2025-01-01 a.sh lib"],
  ["changed and put back", "cp -p a.sh a; echo x > a.sh; cat a > a.sh; rm a; touch -d 2025-01-01 a.sh"],
])("13: a file that an earlier agent only %s has the time that it had before", async (_how, cmd) => {
  await using t = await open(cmd, FIX_B);
  const first = await run(t, "agent-1");
  expect(first).toMatchObject(REJECTED);
  await t.tasks.cancel(first.id);
  expect(await run(t, "agent-2")).toMatchObject(REJECTED);
});

test("13: a change that a later agent takes back decides nothing either; a deleted task is not forgotten", async () => {
  await using t = await open("echo x >> .ok-a; touch .ok-b", ": > .ok-a; touch -d 2099-01-01 .ok-a", FIX_B);
  for (const agent of ["agent-1", "agent-2"]) {
    const { id } = await run(t, agent);
    await t.tasks.cancel(id);
    await t.tasks.archive(id);
    await t.tasks.remove(id);
  }
  expect(await run(t, "agent-3")).toMatchObject(REJECTED);
});

test("13: work that is verified and dated back has the time of its change", async () => {
  await using t = await open("echo 'echo 3' > a.sh; touch -d 2025-01-01 a.sh", FIX_B, FIX_B);
  const checks = [{ kind: "contains" as const, path: "a.sh", text: "3" }];
  const { id } = await t.add({ checks, deliver: ["a.sh"], provider: "agent-1" });
  expect((await t.settled(id))[0]?.state).toBe("verified");
  expect(await run(t, "agent-2")).toMatchObject(REJECTED);
  await t.tasks.archive(id);
  await t.tasks.remove(id);
  expect(await run(t, "agent-3")).toMatchObject(REJECTED);
});

test("13: what an agent changed has the time when it was changed, and what its owner touched since has theirs", async () => {
  await using t = await open(
    "echo 'echo 3' > a.sh; echo 'echo 2' > b.sh; touch -d 2025-01-01 a.sh; touch .ok-a",
    FIX_B,
  );
  const checks = [{ kind: "contains" as const, path: "a.sh", text: "3" }];
  const { id } = await t.add({ checks, deliver: ["a.sh"], provider: "agent-1" });
  expect((await t.settled(id))[0]?.state).toBe("verified");
  const now = new Date();
  await utimes(join(t.workspace, ".ok-b"), now, now);
  const { lastCheck } = await run(t, "agent-2");
  expect(lastCheck?.results[0]?.output).toContain("sh a.sh");
  const made = await lstat(join(t.workspace, ".ok-b"));
  expect(made.mtimeMs).toBeCloseTo(now.getTime(), -1);
});
