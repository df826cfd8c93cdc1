/**
 * A worker in a process of its own, until no task moves any more or it is killed. Arguments: the folder, a task's id, the
 * command that the scripted agent runs, and how long its leases last. What it logs is its output.
 */
import { writeSync } from "node:fs";
import { openTestHarness, shell } from "./test-harness.ts";

const [, , folder = "", taskId = "", command = "", leaseMs] = process.argv;
await using t = await openTestHarness({
  folder,
  script: [{ calls: [shell(command)] }, { text: "done" }],
  log: (line) => void writeSync(1, `${line}\n`),
  ...(leaseMs === undefined ? {} : { leaseMs: Number(leaseMs) }),
});
await t.work();
await t.settled(taskId);
