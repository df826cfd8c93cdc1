/** A worker in a process of its own, for a contest that is killed. Arguments: the folder, and the contest's id. */
import { KILLED } from "./contest-world.ts";
import { openTestHarness } from "./test-harness.ts";

const [, , folder = "", taskId = ""] = process.argv;
await using t = await openTestHarness({ folder, providers: KILLED });
await t.work();
await t.settled(taskId);
