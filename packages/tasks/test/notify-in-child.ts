/**
 * Notifies until it is killed. Arguments: the folder of a test store, the address of a receiver. Says "begun" when it is
 * open.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { readNames } from "../src/notify/names.ts";
import { openNotifier } from "../src/notify/open-notifier.ts";
import { webhookSink } from "../src/notify/sinks/webhook.ts";
import { openTestStore } from "./test-store.ts";

// Nobody who is killed leaves anything for the next one otherwise.
flushCompileCache();
const [, , folder = "", url = ""] = process.argv;
const { journal, home } = await openTestStore({ folder });
const sink = webhookSink({ name: "hook", kind: "webhook", url: new URL(url), events: readNames("TASK_CREATED") });
await openNotifier({ journal, home, sinks: [sink], log: (line) => writeSync(2, `${line}\n`), firstWaitMs: 20 });
writeSync(1, "begun\n");
setInterval(() => undefined, 60_000);
