/** An inbox until it is killed. Arguments: the folder of a test store, the folder of the inbox. */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { openInbox } from "../src/inbox/open-inbox.ts";
import { openTasks } from "../src/open-tasks.ts";
import { openTestStore } from "./test-store.ts";

// Nobody who is killed leaves anything for the next one otherwise.
flushCompileCache();
const [, , folder = "", inbox = ""] = process.argv;
const { journal } = await openTestStore({ folder });
const log = (line: string): void => void writeSync(2, `${line}\n`);
await openInbox({ journal, tasks: openTasks({ journal }).as("user:owner"), folder: inbox, log, tryAgainMs: 200 });
writeSync(1, "open\n");
setInterval(() => undefined, 60_000);
