/**
 * A process in which a person has taken a thread over, to be killed. Arguments: the options of a test Heddle as JSON, and the
 * thread. Says when the program has the terminal.
 */
import { openSync, writeSync } from "node:fs";
import { openTestHeddle } from "./test-heddle.ts";

const [, , options = "{}", threadId = ""] = process.argv;
const t = await openTestHeddle(JSON.parse(options));
const terminal = openSync("/dev/null", "r+");
const turn = await t.heddle.as("user:owner").attach({ threadId, terminal: [terminal, terminal, terminal] });
const signal = AbortSignal.timeout(30_000);
for await (const { body } of t.heddle.journal.tail({ stream: threadId, after: turn.admittedVersion, signal }))
  if (body.type === "agent.connected") break;
writeSync(1, "attached\n");
await turn.done;
