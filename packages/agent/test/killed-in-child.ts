/**
 * A process that is killed in the middle of a turn. Arguments: the folder of a test Heddle, and as JSON its script,
 * or its options where the agent is another program. Says the id of the thread when a command of the turn says `mark`, or with
 * another program when a command begins, and then waits.
 */
import { writeSync } from "node:fs";
import { openTestHeddle, type TestHeddleOptions } from "./test-heddle.ts";

const [, , folder = "", script = "[]"] = process.argv;
const given: unknown = JSON.parse(script);
const isScript = Array.isArray(given);
const t = await openTestHeddle({ folder, ...(isScript ? { script: given } : (given as TestHeddleOptions)) });
const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
let said = "";
t.heddle.onDelta(threadId, ({ channel, delta }) => {
  if (channel !== "output" || !isScript) return;
  said += delta;
  if (said.includes("mark")) writeSync(1, `${threadId}\n`);
});
const turn = await t.start("work until you are killed", { thread: threadId });
if (!isScript) {
  for await (const { body } of t.heddle.journal.tail({
    stream: threadId,
    after: 0,
    signal: AbortSignal.timeout(30_000),
  })) {
    if (body.type !== "item.started" || body.item.type !== "commandExecution") continue;
    writeSync(1, `${threadId}\n`);
    break;
  }
}
await turn.done;
