/** 13: what a task itself left is not how it begins anew, when the copy of its beginning no longer exists. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import { collectRooms } from "../owner/collect-rooms.ts";
import { openTestHarness, shell } from "../../test/test-harness.ts";

const FILES = { "b.sh": "echo 1\n", "check-b.sh": '[ "$(sh b.sh)" = 2 ]\n' };

test("13: what an attempt left is no beginning for the next one of the same task when its copy was collected, nor for later tasks", async () => {
  const plant = "echo 'grep -q magic b.sh' > check-b.sh; echo exit 1 > new.sh";
  const cmd = `if [ -e new.sh ]; then echo '# magic' >> b.sh; else ${plant}; fi`;
  await using t = await openTestHarness({ script: [{ calls: [shell(cmd)] }, { text: "done" }] });
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(t.workspace, path), content);
  await t.work();
  const checks = [{ kind: "command" as const, name: "check", run: ["sh", "check-b.sh"] }];
  const add = async (): Promise<TaskRecord | undefined> => {
    const { id } = await t.add({ checks, deliver: ["b.sh"], maxNudges: 0 });
    return (await t.settled(id))[0];
  };
  const { id = "" } = (await add()) ?? {};
  await t.tasks.cancel(id);
  const collect = { journal: t.heddle.journal, home: t.home, isDryRun: false, signal: AbortSignal.timeout(60_000) };
  await collectRooms({ ...collect, olderThanMs: 0, now: () => Date.now() + 1000 });
  await t.tasks.retry(id, "again", { isFresh: true });
  const [again] = await t.settled(id);
  const left = {
    lastCheck: { passed: false, review: { reasons: [{ kind: "left", files: ["check-b.sh", "new.sh"] }] } },
  };
  expect(again).toMatchObject({ state: "paused", ...left });
  expect(again?.reason).toContain("check-b.sh (changed by an earlier attempt of this task)");
  expect(again?.reason).not.toContain("heddle task undo");
  await t.tasks.cancel(id);
  const other = await add();
  expect(other).toMatchObject({ state: "paused" });
  expect(other?.lastCheck?.review?.reasons).toMatchObject([{ kind: "vacuous" }, left.lastCheck.review.reasons[0]]);
  // Nor when the task is deleted.
  await t.tasks.archive(id);
  await t.tasks.remove(id);
  expect(await readdir(join(t.home, "rooms", id))).toEqual(["gone"]);
});
