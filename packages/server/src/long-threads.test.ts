/** 14.5: what is asked of a long thread costs as much as what is shown of it. */
import { readHistory } from "@heddle/agent";
import { ChatLog } from "@heddle/dialects/chat";
import { ThreadDialect } from "@heddle/dialects/codex-app-server";
import type { Journal } from "@heddle/journal";
import { newTurnId, NO_USAGE, type EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openHttpWorld, type HttpWorld } from "../test/http-world.ts";
import { readLog } from "./chat/read-log.ts";
import { readThreadState } from "./followers/thread-state.ts";

const TURNS = 40;
const settings = {
  model: "m",
  provider: "p",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
  maxModelRequests: 5,
  retry: { maxRetries: 0, maxRounds: 1 },
} as const;
const usage = { ...NO_USAGE, inputTokens: 10, outputTokens: 3 };
const contextWindow = (): undefined => undefined;

/** Each turn: an item, an answer of the model, a change of the settings after it. The last one is open and asks something. */
async function longThread(world: HttpWorld): Promise<string> {
  const { heddle } = world;
  const threadId = await world.newThread();
  const append = (events: readonly EventBody[]) =>
    heddle.journal.append({ stream: threadId, author: "user:owner", events, durability: "relaxed" });
  for (let count = 0; count < TURNS; count += 1) {
    const turnId = newTurnId();
    const item = { type: "agentMessage", id: `i${count}`, text: "hello" } as const;
    const holder = { pid: 1, start: 1, boot: "b" };
    await append([
      { type: "turn.admitted", v: 1, turnId, input: [{ type: "text", text: "go" }], settings, holder },
      { type: "turn.started", v: 1, turnId, sandboxLevel: "none", runner: "embedded" },
      { type: "model.requested", v: 1, turnId, requestId: `r${count}`, model: "m", provider: "p" },
      { type: "item.started", v: 1, turnId, item },
      { type: "item.completed", v: 1, turnId, item },
      { type: "model.responded", v: 1, turnId, requestId: `r${count}`, output: [], usage, stopReason: "end" },
    ] as EventBody[]);
    const question = { kind: "command", itemId: "c", callId: "c", command: "ls", cwd: "/" } as const;
    if (count === TURNS - 1) await append([{ type: "approval.requested", v: 1, turnId, approvalId: "a", question }]);
    else {
      await append([
        { type: "turn.completed", v: 1, turnId, status: "completed", usage, durationMs: 1 },
        { type: "thread.settings-changed", v: 1, changes: { model: `m${count}` } },
      ]);
    }
  }
  return threadId;
}

/** How many events were read. */
function counted(journal: Journal): { readonly journal: Journal; readonly count: () => number } {
  let read = 0;
  const counting = Object.assign(Object.create(journal) as Journal, {
    async read(options: Parameters<Journal["read"]>[0]) {
      const events = await journal.read(options);
      read += events.length;
      return events;
    },
    version: (stream: string) => journal.version(stream),
    threads: journal.threads,
    marks: journal.marks,
  });
  return { journal: counting, count: () => read };
}

test("14.5: the events of a chat after a number are those of the whole log, read from its end", async () => {
  await using world = await openHttpWorld();
  const threadId = await longThread(world);
  const { journal } = world.heddle;
  const log = new ChatLog({ threadId, contextWindow });
  const all = (await readHistory(journal, threadId)).flatMap((event) => log.event(event));
  for (const after of [0, 1, all.length - 30, all.length - 1, all.length]) {
    const past = await readLog(journal, threadId, { contextWindow, after });
    expect(past?.events).toEqual(all.slice(after));
    expect(past?.log).toMatchObject({ lastSeq: all.length, version: log.version, usage: log.usage });
    expect(past?.log.pendingApprovals).toEqual(log.pendingApprovals);
  }
  const few = counted(journal);
  await readLog(few.journal, threadId, { contextWindow, after: all.length - 1 });
  expect(few.count()).toBeLessThan(20);
});

test("14.5: a client that begins to follow finds usage, status and questions from the last turn alone", async () => {
  await using world = await openHttpWorld();
  const threadId = await longThread(world);
  const { journal } = world.heddle;
  const whole = new ThreadDialect({ threadId, contextWindow });
  for (const event of await readHistory(journal, threadId)) whole.event(event);
  const few = counted(journal);
  const { version, state, lastTurns } = await readThreadState(few.journal, threadId);
  const restored = new ThreadDialect({ threadId, contextWindow });
  const asked = restored.restore(state, lastTurns).filter(({ kind }) => kind === "ask");
  expect(asked).toHaveLength(1);
  expect(few.count()).toBeLessThan(20);
  expect(version).toBe(await journal.version(threadId));
  const end = await world.heddle.journal.append({
    stream: threadId,
    author: "system",
    events: [
      { type: "approval.resolved", v: 1, turnId: whole.activeTurnId ?? "", approvalId: "a", decision: "accept" },
    ],
  });
  for (const event of end.events) expect(restored.event(event)).toEqual(whole.event(event));
  expect({ status: restored.status, usage: restored.usage }).toEqual({ status: whole.status, usage: whole.usage });
});
