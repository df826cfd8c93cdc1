/**
 * 14.5: what is done with a thread reads as much of the store when the thread is long as when it is short. Counted in bytes
 * that the server reads, which a busy machine does not change. Both threads end alike; the long one has far more before it.
 */
import { readFileSync } from "node:fs";
import { startModelServer } from "@heddle/models/testing";
import { openJournal } from "@heddle/journal";
import { newThreadId, newTurnId, type EventBody } from "@heddle/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { turnEvents } from "../bench/turn-events.ts";
import { dial, type Dialled } from "./dialled.ts";
import { serve, type Served } from "./served-world.ts";
import { figure, openWorld, type World } from "./world.ts";

const SHORT_TURNS = 400;
const LONG_TURNS = 4_000;
/** The last turns, which are not left out of the conversation. */
const KEPT_TURNS = 100;
const BATCH_TURNS = 200;
/** Deeper trees, and pages that one of the two has in memory. The long thread has more than 20 MB. */
const MARGIN_BYTES = 512 * 1024;

const ends = new AsyncDisposableStack();
let server: Served;
let app: Dialled;
let chat: Dialled;
let threads: readonly [short: Written, long: Written];

interface Written {
  readonly id: string;
  readonly lastTurn: string;
  /** Taken from the queue before all others began. */
  readonly removed: string;
  readonly fork: string;
}

beforeAll(async () => {
  const world = ends.use(await openWorld());
  const model = ends.use(await startModelServer({ respond: () => ({ text: "done" }) }));
  threads = await write(world);
  server = ends.use(await serve(world, model));
  [app, chat] = [ends.use(await dial(server.url, server.token)), ends.use(await dial(server.url, server.token))];
  await app.call("initialize", { clientInfo: { name: "test", version: "1" }, capabilities: { experimentalApi: true } });
  await chat.call("chat.list", {});
}, 120_000);

afterAll(() => ends[Symbol.asyncDispose]());

async function write({ home, workspace }: World): Promise<readonly [Written, Written]> {
  await using journal = await openJournal({ home });
  const written: Written[] = [];
  for (const turns of [SHORT_TURNS, LONG_TURNS]) {
    const [id, fork, removed] = [newThreadId(), newThreadId(), newTurnId()];
    const append = (stream: string, events: readonly EventBody[]): Promise<unknown> =>
      journal.append({ stream, author: "user:owner", events, durability: "relaxed" });
    const created: EventBody = { type: "thread.created", v: 1, workspace, origin: "chat:test" };
    const [admitted] = helloTurn();
    if (admitted?.type !== "turn.admitted") throw new Error("a turn begins with its admission");
    const { input, settings } = admitted;
    await append(id, [
      created,
      { type: "thread.named", v: 1, name: "a name" },
      { type: "thread.goal-changed", v: 1, goal: { objective: "say hello", status: "paused", tokenBudget: 1_000_000 } },
      { type: "turn.queued", v: 1, turnId: removed, input, settings },
      { type: "turn.dequeued", v: 1, turnId: removed, failure: { code: "turn.interrupted", message: "not needed" } },
    ]);
    let lastTurn = "";
    for (let from = 0; from < turns; from += BATCH_TURNS) {
      const events = Array.from({ length: BATCH_TURNS }, helloTurn).flat();
      const ids = events.flatMap((event) => (event.type === "turn.admitted" ? [event.turnId] : []));
      lastTurn = ids.at(-1) ?? "";
      const keptFrom = ids.at(-KEPT_TURNS) ?? "";
      if (from + BATCH_TURNS === turns) events.push(compacted(lastTurn, keptFrom));
      await append(id, events);
    }
    await append(fork, [
      { ...created, forkedFrom: { threadId: id, version: await journal.version(id) } },
      ...helloTurn(),
    ]);
    written.push({ id, lastTurn, removed, fork });
  }
  const [short, long] = written;
  if (short === undefined || long === undefined) throw new Error("two threads are written");
  return [short, long];
}

/** As if the model server of this test had answered. */
function helloTurn(): EventBody[] {
  return turnEvents().map((event) =>
    event.type === "turn.admitted" ? { ...event, settings: { ...event.settings, provider: "test" } } : event,
  );
}

function compacted(turnId: string, keptFrom: string): EventBody {
  const told = { summary: "Hello was said.", plan: [], openCommands: [], keptMessages: [] };
  const figures = { throughVersion: 1, tokensBefore: 100_000, tokensAfter: 1_000 };
  return { type: "context.compacted", v: 1, turnId, trigger: "auto", keptFrom, ...told, ...figures };
}

function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${server.pid}/io`, "utf8"))?.[1]);
}

async function turn(threadId: string): Promise<void> {
  const { id, seq } = await server.client.startTurn(threadId, { input: [{ type: "text", text: "go on" }] });
  for await (const received of server.client.follow({ threadId, after: seq })) {
    if (received.kind === "event" && isEnd(received.event.body, id)) return;
  }
}

function isEnd(body: EventBody, turnId: string): boolean {
  return body.type === "turn.completed" && body.turnId === turnId;
}

const ACTS: Readonly<Record<string, (thread: Written) => Promise<unknown>>> = {
  "a turn over HTTP": ({ id }) => turn(id),
  "a turn in a fork": ({ fork }) => turn(fork),
  "reading a thread over HTTP": ({ id }) => server.client.readThread(id),
  "the items of the last turn over HTTP": ({ id, lastTurn: turnId }) => server.client.listItems(id, { turnId }),
  "thread/goal/get": ({ id: threadId }) => app.call("thread/goal/get", { threadId }),
  "thread/read": ({ id: threadId }) => app.call("thread/read", { threadId }),
  "thread/resume": ({ id: threadId }) => app.call("thread/resume", { threadId, excludeTurns: true }),
  "thread/resume of a fork": ({ fork: threadId }) => app.call("thread/resume", { threadId, excludeTurns: true }),
  "thread/turns/list": ({ id: threadId }) =>
    app.call("thread/turns/list", { threadId, limit: 5, sortDirection: "desc" }),
  "chat.thread.read": ({ id: chat_id }) => chat.call("chat.thread.read", { chat_id }),
  "chat.thread.read with turns": ({ id: chat_id }) =>
    chat.call("chat.thread.read", { chat_id, include_turns: true, limit: 5 }),
  "chat.cancel of input that was taken back": ({ id: chat_id, removed: turn_id }) =>
    chat.call("chat.cancel", { chat_id, turn_id }),
};

test.each(Object.entries(ACTS))("14.5: %s reads no more of a long thread than of a short one", async (name, act) => {
  const read: number[] = [];
  for (const thread of threads) {
    const before = bytesRead();
    await act(thread);
    read.push(bytesRead() - before);
  }
  const [short = Number.NaN, long = Number.NaN] = read;
  figure(
    `14.5: ${name}: ${Math.round(short / 1024)} KB of a short thread, ${Math.round(long / 1024)} KB of a long one`,
  );
  expect(long).toBeLessThan(short + MARGIN_BYTES);
});
