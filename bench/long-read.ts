/** Reading the end of a very long thread. The thread is written straight into the record: playing it would take an hour. */
import { openJournal } from "@heddle/journal";
import { newThreadId, type EventBody } from "@heddle/protocol";
import { turnEvents } from "./turn-events.ts";
import type { RunOptions } from "./measure.ts";
import { openAppServer } from "./rpc-client.ts";
import type { Subject } from "./subjects.ts";

const TURNS = 5000;
const READS = 9;
const LAST_TURNS = 50;
/** One append for so many turns. */
const BATCH = 100;

export async function measureLongRead(subject: Subject, options: RunOptions): Promise<number[]> {
  const threadId = await writeLongThread(subject.env["HEDDLE_HOME"] ?? "", options.cwd);
  await using server = openAppServer(subject.server, options);
  await server.call("initialize", {
    clientInfo: { name: "bench", version: "1" },
    capabilities: { experimentalApi: true },
  });
  const times: number[] = [];
  for (let read = 0; read < READS; read += 1) {
    const startedAt = performance.now();
    await server.call("thread/turns/list", { threadId, limit: LAST_TURNS, sortDirection: "desc", itemsView: "full" });
    times.push(performance.now() - startedAt);
  }
  return times;
}

async function writeLongThread(home: string, workspace: string): Promise<string> {
  await using journal = await openJournal({ home, secrets: [] });
  const stream = newThreadId();
  const begun: EventBody = { type: "thread.created", v: 1, workspace, origin: "bench" };
  await journal.append({ stream, author: "user:owner", events: [begun] });
  for (let turn = 0; turn < TURNS; turn += BATCH) {
    const events = Array.from({ length: BATCH }, () => turnEvents()).flat();
    await journal.append({ stream, author: "system", events });
  }
  return stream;
}
