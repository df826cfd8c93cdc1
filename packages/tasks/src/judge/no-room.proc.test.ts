/** 13: a host that opens no room for the checks says nothing about the work. */
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTestHarness, shell } from "../../test/test-harness.ts";
import { openTaskFixture } from "../../test/task-fixture.ts";
import { verifyWork } from "./verify.ts";
import { readBase } from "./freeze-claim.ts";

const checks = [{ kind: "command" as const, run: "sh app.sh" }];

test("13: where no room can be opened the work is not judged, neither at the beginning nor at the claim", async () => {
  await using fixture = await openTaskFixture({ files: { "app.sh": "exit 1\n" }, checks });
  const baseline = await fixture.takeBaseline();
  const base = await readBase(fixture.checkOptions.home, { id: "task_1" }, baseline);
  const frozen = { folder: base.folder, changes: [], sha256: "" };
  // A room appears at the path of the workspace, and nothing can be put there.
  const nowhere = { ...baseline, folder: "/proc/heddle-nowhere" };
  await expect(verifyWork(fixture.checkOptions, { baseline: nowhere, base, frozen })).rejects.toMatchObject({
    code: "sandbox.unavailable",
    message: expect.stringContaining("no clean room for the checks could be opened"),
  });
});

test.runIf(existsSync("/dev/shm"))(
  "13: a task whose checks get no room ends with the host's fault, not with a rejection",
  async () => {
    const folder = await mkdtemp("/dev/shm/heddle-test-");
    try {
      await using t = await openTestHarness({
        folder,
        script: [{ calls: [shell("true > app.sh")] }, { text: "done" }],
      });
      await writeFile(join(t.workspace, "app.sh"), "exit 1\n");
      const { id } = await t.add({ checks, maxNudges: 0, retries: { max: 0 } });
      await t.work();
      const [task] = await t.settled(id);
      // Where a later host can open one there, the work is simply judged.
      const isJudged = task?.lastCheck?.results[0]?.outcome === "passed";
      if (!isJudged) expect(task).toMatchObject({ state: "failed", failure: { code: "sandbox.unavailable" } });
      expect(await t.of(id, "task.rejected")).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
