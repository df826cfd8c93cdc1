/**
 * A process that is killed in the middle of a turn. Arguments: the folder of a test Heddle, and its script as JSON.
 * Says the id of the thread when a command of the turn says `mark`, and then waits.
 */
import { writeSync } from "node:fs";
import { openTestHeddle } from "./test-heddle.ts";

const [, , folder = "", script = "[]"] = process.argv;
const t = await openTestHeddle({ folder, script: JSON.parse(script) });
const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
let said = "";
t.heddle.onDelta(threadId, ({ channel, delta }) => {
  if (channel !== "output") return;
  said += delta;
  if (said.includes("mark")) writeSync(1, `${threadId}\n`);
});
const turn = await t.start("work until you are killed", { thread: threadId });
await turn.done;
