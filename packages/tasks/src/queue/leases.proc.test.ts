/** Two workers on one home, as two hosts: one is a process with another HEDDLE_HOST_ID. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { openTestHarness, report, shell } from "../../test/test-harness.ts";

const LEASE_MS = 1500;

test("14.7: a worker on another host keeps its task while it renews; stopped for longer it is taken over, and refused when it wakes up", async () => {
  // A script goes on where the thread stands: its first answer was given to the other worker.
  const work = [
    { text: "Begun." },
    { calls: [shell("echo second >> effects; touch done.txt")] },
    { calls: [report("done")] },
    { text: "Done." },
  ];
  await using t = await openTestHarness({ script: work, leaseMs: LEASE_MS });
  const file = (name: string): string => join(t.workspace, name);
  const { id } = await t.add({ checks: [{ kind: "file-exists", path: "done.txt" }], deliver: ["effects", "done.txt"] });
  const slow = "echo first >> effects; while [ ! -e go ]; do sleep 0.05; done; echo stale >> effects";
  const program = join(inject("children"), "harness-in-child.mjs");
  const child = spawn(process.execPath, [program, t.folder, id, slow, String(LEASE_MS)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, HEDDLE_HOST_ID: "other-host" },
  });
  try {
    const output = child.stdout.setEncoding("utf8").toArray();
    while (!existsSync(file("effects"))) await delay(10);
    await t.work();
    await delay(1.5 * LEASE_MS);
    expect(await t.of(id, "task.taken")).toMatchObject([{ attempt: 1, holder: { host: "other-host" } }]);

    child.kill("SIGSTOP");
    const [task] = await t.settled(id);
    expect(task).toMatchObject({ state: "verified", attempt: 2 });
    const threadId = task?.threadId ?? "";
    const before = [await t.events(id), await t.events(threadId)];
    child.kill("SIGCONT");
    await once(child, "exit");
    expect((await output).join("")).toMatch(new RegExp(`lease of ${id} with epoch 1 is lost`));
    expect([await t.events(id), await t.events(threadId)]).toEqual(before);
    // Its sandbox is gone with it, so what its command would have done later is not done.
    writeFileSync(file("go"), "");
    expect(readFileSync(file("effects"), "utf8")).toBe("first\nsecond\n");
    expect(await t.heddle.journal.leases.held()).toEqual([]);
  } finally {
    child.kill("SIGCONT");
    child.kill("SIGKILL");
  }
});

test("19.4: a task whose worker was killed is done by a worker of another home, on a copy of the beginning of its own", async () => {
  const work = [{ calls: [shell("touch done.txt")] }, { calls: [report("done")] }, { text: "Done." }];
  await using t = await openTestHarness({ script: [{ text: "Begun." }, ...work], leaseMs: LEASE_MS });
  const { id } = await t.add({ checks: [{ kind: "file-exists", path: "done.txt" }] });
  const slow = "echo first >> ../effects; while [ ! -e go ]; do sleep 0.05; done";
  const program = join(inject("children"), "harness-in-child.mjs");
  const child = spawn(process.execPath, [program, t.folder, id, slow, String(LEASE_MS)], { stdio: "ignore" });
  await t.until(id, ({ openPrompt }) => openPrompt !== undefined);
  child.kill("SIGKILL");
  await once(child, "exit");
  // What the first one kept is on its own machine.
  rmSync(join(t.home, "rooms", id), { recursive: true });
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", attempt: 2 });
  const baselines = (await t.of(id, "task.prepared")).flatMap(({ baseline }) => baseline ?? []);
  expect(baselines).toHaveLength(2);
  expect((await t.of(id, "task.verified")).length).toBe(1);
});
