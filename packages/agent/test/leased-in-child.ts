/**
 * A process that runs a turn under a short lease, as a host of its own where HEDDLE_HOST_ID says so. Arguments: the options of
 * a test Heddle as JSON. Says the ids of the turn at once, and a line of JSON about how it ended; then waits to be killed.
 */
import { writeSync } from "node:fs";
import { isHeddleError } from "@heddle/protocol";
import { openTestHeddle } from "./test-heddle.ts";

const say = (what: object): void => void writeSync(1, `${JSON.stringify(what)}\n`);
const log: string[] = [];
const t = await openTestHeddle({ ...JSON.parse(process.argv[2] ?? "{}"), log: (line: string) => log.push(line) });
const { threadId, turnId, done } = await t.start("work until you are stopped");
say({ threadId, turnId });
const end = await done.then(
  ({ body }) => ({ status: body.status }),
  (error: unknown) => ({ code: isHeddleError(error) ? error.code : String(error) }),
);
say({ ...end, log, commands: t.heddle.runningCommands(threadId).length });
setInterval(() => undefined, 60_000);
