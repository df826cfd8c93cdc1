/** Tasks that end their workers: they fail after a few, and go round no more. */
import { expect, test } from "vitest";
import { thisHolder } from "@heddle/agent";
import { harnessOptions, openTestHarness, report, shell } from "../../test/test-harness.ts";
import { openHarness } from "./harness.ts";
import { journalDispatch } from "./dispatch-journal.ts";
import type { Delivery } from "./dispatch.ts";

const works = [{ calls: [shell("touch done.txt")] }, { calls: [report("done")] }, { text: "Done." }];
const checks = [{ kind: "file-exists", path: "done.txt" }] as const;

test("S14: a task of which four workers ended before any step of it did fails by name; one that lost three goes on, and others are unharmed", async () => {
  await using t = await openTestHarness({ script: works });
  const { journal } = t.heddle;
  const lost = async (times: number): Promise<string> => {
    const { id } = await t.add({ checks: [...checks], exclusive: false });
    for (let attempt = 1; attempt <= times; attempt += 1) {
      const holder = { ...thisHolder(), pid: 2 ** 22, startTicks: `${attempt}` };
      await journal.append({ stream: id, author: "system", events: [{ type: "task.taken", v: 1, attempt, holder }] });
    }
    return id;
  };
  const [bad, unlucky] = [await lost(4), await lost(3)];
  await t.work();
  const [failed, verified] = await t.settled(bad, unlucky);
  expect(failed).toMatchObject({ state: "failed", attempt: 5, failure: { code: "worker.lost", class: "crash" } });
  expect(failed?.reason).toContain("4 workers ended while they held it");
  expect(verified).toMatchObject({ state: "verified", attempt: 4 });
  // On the word of its owner it begins again.
  await t.tasks.retry(bad);
  const [again] = await t.settled(bad);
  expect(again).toMatchObject({ attempt: 6, spent: { turns: expect.any(Number) } });
  expect(again?.spent.turns).toBeGreaterThan(0);
});

test("S14: a task whose tickets were brought to one worker after the other, none of which took it, fails by the same name", async () => {
  await using t = await openTestHarness({ script: works });
  const { id } = await t.add({ checks: [...checks] });
  const given: Delivery[] = [{ task: await t.tasks.find(id) }];
  const dispatch = {
    ...journalDispatch(t.heddle.journal),
    deliveries: () => Promise.resolve([]),
    dead: () => Promise.resolve(given.splice(0)),
  };
  await using _harness = await openHarness({ ...harnessOptions(t.heddle, t.home, {}), dispatch });
  expect((await t.settled(id))[0]).toMatchObject({ state: "failed", failure: { code: "worker.lost" } });
});
