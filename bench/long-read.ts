/** Reading the end of a very long thread, and resuming one. The thread is written straight into the record: playing it would take an hour. */
import { openJournal } from "@heddle/journal";
import { newThreadId, type EventBody } from "@heddle/protocol";
import { turnEvents } from "./turn-events.ts";
import { calm, measure, type Run, type RunOptions } from "./measure.ts";
import { openAppServer } from "./rpc-client.ts";
import type { Subject } from "./subjects.ts";

const TURNS = 5000;
const RESUMED_TURNS = 10_000;
/** The model's window is full after so many. */
const COMPACTED_TURNS = 500;
const RESUMES = 5;
const READS = 9;
const LAST_TURNS = 50;
/** One append for so many turns. */
const BATCH = 100;

export async function measureLongRead(subject: Subject, options: RunOptions): Promise<number[]> {
  const threadId = await writeLongThread(subject, options.cwd, TURNS);
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

/** A run that goes on with 20,000 items of a thread, most of them before its last compaction: from its start to its end. */
export async function measureResume(subject: Subject, options: RunOptions): Promise<readonly Run[]> {
  const threadId = await writeLongThread(subject, options.cwd, RESUMED_TURNS);
  const [node = "", launcher = ""] = subject.argv("");
  const runs: Run[] = [];
  for (let time = 0; time < RESUMES; time += 1) {
    await calm();
    runs.push(await measure([node, launcher, "exec", "resume", threadId, "--json", "say hello"], options));
  }
  return runs;
}

async function writeLongThread({ env }: Subject, workspace: string, turns: number): Promise<string> {
  await using journal = await openJournal({ home: env["HEDDLE_HOME"] ?? "", secrets: [] });
  const stream = newThreadId();
  const begun: EventBody = { type: "thread.created", v: 1, workspace, origin: "bench" };
  await journal.append({ stream, author: "user:owner", events: [begun] });
  for (let turn = BATCH; turn <= turns; turn += BATCH) {
    const events = Array.from({ length: BATCH }, () => turnEvents()).flat();
    if (turn % COMPACTED_TURNS === 0) events.push(compacted(events));
    await journal.append({ stream, author: "system", events });
  }
  return stream;
}

/** As at the end of the last of these turns, with its input kept. */
function compacted(events: readonly EventBody[]): EventBody {
  const turnId = events.flatMap((event) => (event.type === "turn.admitted" ? [event.turnId] : [])).at(-1) ?? "";
  const told = { summary: "Hello was said, many times.", plan: [], openCommands: [], keptMessages: [{ name: turnId }] };
  const figures = { throughVersion: 1, tokensBefore: 100_000, tokensAfter: 1_000 };
  return { type: "context.compacted", v: 1, turnId, trigger: "auto", ...told, ...figures };
}
