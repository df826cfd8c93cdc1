/**
 * A worker in a process of its own, until no task moves any more or it is killed. Arguments: the folder, a task's id, the
 * command that the scripted agent runs.
 */
import { openTestHarness, shell } from "./test-harness.ts";

const [, , folder = "", taskId = "", command = ""] = process.argv;
await using t = await openTestHarness({ folder, script: [{ calls: [shell(command)] }, { text: "done" }] });
await t.work();
await t.settled(taskId);
