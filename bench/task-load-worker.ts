/**
 * A harness with many tasks in hand and more in the queue, in a process of its own. Turns are written straight into the
 * record when the measurement ends them: what is measured is the harness, not the model or the sandbox.
 * Usage: task-load-worker.ts HOME ACTIVE. Prints one line of JSON (`tasks.ts`).
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { thisHolder, type Acts, type Heddle, type TurnHandle } from "@heddle/agent";
import { openJournal } from "@heddle/journal";
import { newThreadId, newTurnId, NO_USAGE, type EventBody } from "@heddle/protocol";
import { openHarness } from "@heddle/tasks";

const CLAIMS = 100;
const IDLE_MS = 10_000;
/** What is still written and swept up of the turns before is not idleness. */
const REST_MS = 20_000;

const [home = "", active = "0"] = process.argv.slice(2);
const ACTIVE = Number(active);
await using journal = await openJournal({ home, secrets: [] });

const open: { readonly threadId: string; readonly turnId: string }[] = [];
let turns = 0;
const acts: Pick<Acts, "createThread" | "startTurn" | "interrupt"> = {
  async createThread(thread) {
    const stream = newThreadId();
    await journal.append({ stream, author: "system", events: [{ type: "thread.created", v: 1, ...thread }] });
    return stream;
  },
  async startTurn({ thread, input, settings, clientId = "" }): Promise<TurnHandle> {
    if (typeof thread !== "string") throw new TypeError("tasks have threads of their own");
    const turnId = newTurnId();
    const admitted: EventBody = {
      type: "turn.admitted",
      v: 1,
      turnId,
      input: [...input],
      settings,
      holder: thisHolder(),
      clientId,
    };
    const { events } = await journal.append({ stream: thread, author: "system", events: [admitted] });
    open.push({ threadId: thread, turnId });
    turns += 1;
    return {
      threadId: thread,
      turnId,
      admittedVersion: events[0]?.version ?? 0,
      done: new Promise(() => undefined),
    };
  },
  interrupt: async () => undefined,
};
const heddle: Pick<Heddle, "journal" | "as" | "onDelta" | "terminals"> = {
  journal,
  // A harness of plain tasks calls nothing else.
  as: () => acts as Acts,
  onDelta: () => ({ [Symbol.dispose]: () => undefined }),
  terminals: async () => [],
};

/** Of this program alone: what `getrusage` says is also that of the process it was forked from. */
function peakKb(): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

/** When the next event of a kind was seen. */
function next(type: EventBody["type"], after: number): Promise<number> {
  const seen = async (): Promise<number> => {
    for await (const { body } of journal.tail({ after, signal: AbortSignal.timeout(60_000) }))
      if (body.type === type) return performance.now();
    throw new Error(`no ${type} within a minute`);
  };
  return seen();
}

const harness = await openHarness({
  // A harness of plain tasks calls nothing else.
  heddle: heddle as Heddle,
  home,
  concurrency: ACTIVE,
  settingsFor: () => ({
    provider: "none",
    model: "none",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  }),
});
while (turns < ACTIVE) await sleep(50);

const claimMs: number[] = [];
const reactionMs: number[] = [];
for (let claim = 0; claim < CLAIMS; claim += 1) {
  const turn = open.shift();
  if (turn === undefined) throw new Error("no turn is open");
  const after = await journal.position();
  const [ended, taken] = [next("task.turn-ended", after), next("task.taken", after)];
  const completed = { type: "turn.completed", v: 1, turnId: turn.turnId, status: "completed" } as const;
  const event: EventBody = { ...completed, usage: NO_USAGE, durationMs: 1 };
  await journal.append({ stream: turn.threadId, author: "system", events: [event] });
  const endedAt = performance.now();
  const reactedAt = await ended;
  reactionMs.push(reactedAt - endedAt);
  claimMs.push((await taken) - reactedAt);
}
while (turns < ACTIVE + CLAIMS) await sleep(50);

await sleep(REST_MS);
const before = process.cpuUsage();
const since = performance.now();
await sleep(IDLE_MS);
const { user, system } = process.cpuUsage(before);
const idleCpuPercent = ((user + system) / 1000 / (performance.now() - since)) * 100;
const prompts = (await journal.tasks.counts())["running"] ?? 0;
const figures = {
  claimMs,
  reactionMs,
  idleCpuPercent,
  peakMb: peakKb() / 1024,
  // What no task accounts for.
  extraTurns: turns - CLAIMS - prompts,
};
process.stdout.write(`${JSON.stringify(figures)}\n`);
// A thousand open turns need no goodbye.
void harness;
process.exit(0);
