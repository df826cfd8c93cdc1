/** Reading the end of a very long thread. The thread is written straight into the record: playing it would take an hour. */
import { openJournal } from "@heddle/journal";
import { newItemId, newThreadId, newTurnId, NO_USAGE, type EventBody, type TurnSettings } from "@heddle/protocol";
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
  await journal.append({ stream, author: "user", events: [begun] });
  for (let turn = 0; turn < TURNS; turn += BATCH) {
    const events = Array.from({ length: BATCH }, () => turnEvents()).flat();
    await journal.append({ stream, author: "system", events });
  }
  return stream;
}

const SETTINGS: TurnSettings = {
  provider: "mock",
  model: "gpt-5.5",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};

function turnEvents(): EventBody[] {
  const turnId = newTurnId();
  const input = [{ type: "text" as const, text: "say hello" }];
  const asked = { type: "userMessage" as const, id: newItemId(), content: input };
  const answered = { type: "agentMessage" as const, id: newItemId(), text: "hello ".repeat(40) };
  const holder = { pid: 1, startTicks: "1", bootId: "bench", pidNamespace: "bench" };
  return [
    { type: "turn.admitted", v: 1, turnId, input, settings: SETTINGS, holder },
    { type: "item.started", v: 1, turnId, item: asked },
    { type: "item.completed", v: 1, turnId, item: asked },
    { type: "item.started", v: 1, turnId, item: answered },
    { type: "item.completed", v: 1, turnId, item: answered },
    { type: "turn.completed", v: 1, turnId, status: "completed", usage: NO_USAGE, durationMs: 1 },
  ];
}
