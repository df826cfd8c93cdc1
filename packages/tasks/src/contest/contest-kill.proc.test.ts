/** A contest whose worker is killed: no contestant is lost and none runs twice, whatever had been stored by then. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FAILPOINTS } from "@heddle/protocol/failpoints";
import { expect, inject, test } from "vitest";
import { contest, KILLED } from "../../test/contest-world.ts";
import { openTestHarness } from "../../test/test-harness.ts";

/** In the middle of its contestants, not before the first of them. */
const ofContests = FAILPOINTS.filter((name) => name.startsWith("contest.")).map((name) =>
  name.includes(".during-") ? `${name}@2` : name,
);

test.each([...ofContests, "task.after-start@2", "task.after-claim@2", "task.before-verdict@3", "task.after-verdict@4"])(
  "killed at %s, the next worker brings the contest to the same end",
  async (failpoint) => {
    const folder = await mkdtemp(join(tmpdir(), "heddle-contest-"));
    try {
      let id = "";
      {
        await using t = await openTestHarness({ folder, providers: KILLED });
        id = (await t.add(contest(["liar", "one", "two"], { pick: "best" }))).id;
        const env = { PATH: process.env["PATH"], TMPDIR: tmpdir(), HEDDLE_FAILPOINT: `${failpoint}=kill` };
        const program = join(inject("children"), "contest-in-child.mjs");
        const child = spawnSync(process.execPath, [program, folder, id], { env, timeout: 60_000, encoding: "utf8" });
        expect([child.signal, child.stderr]).toEqual(["SIGKILL", ""]);
      }
      await using t = await openTestHarness({ folder, providers: KILLED });
      await t.work();
      const [task] = await t.settled(id);
      expect(task).toMatchObject({
        state: "verified",
        contest: { generation: 1, picked: { number: 2 }, hasEnded: true },
      });
      const rows = task?.contest?.rows ?? [];
      expect(rows.map(({ isVerified, isPicked, turns }) => [isVerified, isPicked, turns > 0])).toEqual([
        [false, false, true],
        [true, true, true],
        [true, false, true],
      ]);
      expect(await t.of(id, "task.contest-opened")).toHaveLength(1);
      expect(await t.of(id, "task.contest-picked")).toHaveLength(1);
      expect(await t.of(id, "task.contest-ended")).toHaveLength(1);
      const children = await t.tasks.page({ parentId: id, limit: 10 });
      expect(children.map(({ contestant }) => contestant).toReversed()).toEqual([1, 2, 3]);
      for (const one of children) {
        expect(await t.of(one.id, "task.created")).toHaveLength(1);
        expect((await t.of(one.id, "task.prompted")).filter(({ why }) => why === "first")).toHaveLength(1);
      }
      expect(await readFile(join(t.workspace, "answer.txt"), "utf8")).toBe("42\n");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
