/** The figures of a long-lived server: how soon it is there, what a thread and a turn cost on top of the model. */
import { median, type RunOptions } from "./measure.ts";
import { openAppServer, type AppServer } from "./rpc-client.ts";
import type { Subject } from "./subjects.ts";

const STARTS = 20;
const TURNS = 20;
const THREADS_AT_ONCE = 20;
const TURNS_EACH = 5;
/** Caches and the heap grow to their size with the first of them. */
const FIRST_IDLE_THREADS = 100;
const IDLE_THREADS = 200;
const WARM_UP_TURNS = 3;

export interface ServerFigures {
  readonly readyMs: number;
  readonly threadStartMs: number;
  readonly turnOverheadMs: number;
  readonly turnsPerSecond: number;
}

/** How long the model took for the last request, as its server saw it. */
export type ModelTime = () => Promise<number>;

export async function measureServer(subject: Subject, options: RunOptions, modelMs: ModelTime): Promise<ServerFigures> {
  const startedAt = performance.now();
  await using server = openAppServer(subject.server, options);
  await server.call("initialize", { clientInfo: { name: "bench", version: "1" }, capabilities: {} });
  const readyMs = performance.now() - startedAt;

  const threadStartMs = median(await repeat(STARTS, async () => timed(() => startThread(server, options.cwd))));
  const threadId = await startThread(server, options.cwd);
  await repeat(WARM_UP_TURNS, () => runTurn(server, threadId));
  const turnOverheadMs = median(
    await repeat(TURNS, async () => {
      const wholeMs = await runTurn(server, threadId);
      return wholeMs - (await modelMs());
    }),
  );
  const turnsPerSecond = await manyTurns(server, options.cwd);
  return { readyMs, threadStartMs, turnOverheadMs, turnsPerSecond };
}

/** What the tree keeps resident for a thread that waits for its next turn, after a collection of garbage. */
export async function measureIdleThread(subject: Subject, options: RunOptions): Promise<number> {
  await using server = openAppServer(subject.collectingServer ?? subject.server, options);
  await server.call("initialize", { clientInfo: { name: "bench", version: "1" }, capabilities: {} });
  const keptKb = async (): Promise<number> => {
    if (subject.collectingServer !== undefined) await server.collectGarbage();
    return server.memoryKb();
  };
  const threadId = await startThread(server, options.cwd);
  await repeat(WARM_UP_TURNS, () => runTurn(server, threadId));
  await repeat(FIRST_IDLE_THREADS, () => startThread(server, options.cwd));
  const before = await keptKb();
  await repeat(IDLE_THREADS, () => startThread(server, options.cwd));
  return Math.max(0, (await keptKb()) - before) / IDLE_THREADS;
}

async function startThread(server: AppServer, cwd: string): Promise<string> {
  const { thread } = (await server.call("thread/start", {
    cwd,
    approvalPolicy: "never",
    sandbox: "workspace-write",
  })) as { thread: { id: string } };
  return thread.id;
}

/** From the request to `turn/completed`. */
async function runTurn(server: AppServer, threadId: string): Promise<number> {
  const completed = server.next("turn/completed", threadId);
  const startedAt = performance.now();
  await server.call("turn/start", { threadId, input: [{ type: "text", text: "say hello" }] });
  return (await completed) - startedAt;
}

async function manyTurns(server: AppServer, cwd: string): Promise<number> {
  const threads = await Promise.all(Array.from({ length: THREADS_AT_ONCE }, () => startThread(server, cwd)));
  const startedAt = performance.now();
  await Promise.all(threads.map((threadId) => repeat(TURNS_EACH, () => runTurn(server, threadId))));
  return (THREADS_AT_ONCE * TURNS_EACH) / ((performance.now() - startedAt) / 1000);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** One after the other. */
async function repeat<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let done = 0; done < times; done += 1) results.push(await work());
  return results;
}
