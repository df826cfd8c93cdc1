/** The ledger: every answer is counted once, on its day; rebuilt it is the same, and a deleted thread takes nothing out of it. */
import { NO_USAGE, type EventBody, type EventOf } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { admitted, completed, created } from "./journal.samples.ts";
import type { Journal } from "../journal.ts";
import type { NewStore, SuiteStore } from "./journal.suite.ts";
import { USAGE_KEYS } from "../queries/usage.ts";

const usage = { ...NO_USAGE, inputTokens: 100, cachedInputTokens: 40, outputTokens: 10, reasoningOutputTokens: 3 };
const DAY = 86_400_000;
const FIRST = Date.UTC(2026, 10, 1, 23, 59);

function answer(id: string, model: string, costUsd?: number): EventBody[] {
  const request = { turnId: "t", requestId: id, v: 1 } as const;
  return [
    { ...request, type: "model.requested", provider: "mock", model, requestBytes: 1 },
    {
      ...request,
      type: "model.responded",
      output: [],
      stopReason: "stop",
      usage,
      ...(costUsd === undefined ? {} : { costUsd }),
    },
  ];
}

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
const spec = TaskSpec.parse({ name: "n", workspace: "/of-the-task", goal: "g" });

const opinion = { model: "judge", accepts: true, reason: "", threadId: "opinion" };
const round = { attempt: 1, round: 1, results: [], violations: [] };
const checked: EventBody = { type: "task.checked", v: 1, ...round, opinion, passed: true };

async function openWithWork(store: SuiteStore): Promise<Journal> {
  const clock = { now: FIRST };
  const journal = await store.open({ now: () => clock.now });
  await fillUsage(journal, () => (clock.now += DAY));
  return journal;
}

export async function fillUsage(journal: Journal, nextDay: () => void): Promise<void> {
  const say = (stream: string, ...events: EventBody[]) => journal.append({ stream, author: "system", events });
  await say("plain", created, admitted("t"), ...answer("r1", "small", 0.5), ...answer("r2", "large"));
  const title: EventOf<"background.ran"> = {
    type: "background.ran",
    v: 1,
    purpose: "title",
    provider: "mock",
    model: "small",
    outcome: "ok",
    usage,
    costUsd: 0.25,
    durationMs: 1,
  };
  await say("plain", title, { ...title, outcome: "failed", usage: NO_USAGE });
  nextDay();
  await say("plain", ...answer("r3", "small", 0.5), completed("t"));
  await say("work", created, admitted("t"));
  await say("opinion", created, admitted("t"), ...answer("r5", "judge", 1), completed("t"));
  await say("task_1", { type: "task.created", v: 1, spec, source: { kind: "cli" } });
  await say("task_1", { type: "task.taken", v: 1, attempt: 1, holder });
  await say("task_1", { type: "task.prepared", v: 1, attempt: 1, threadId: "work", folder: "/tree" });
  await say("work", ...answer("r4", "small", 2), completed("t"));
  await say("task_1", { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: "" });
  await say("task_1", checked);
}

const all = (journal: Journal) => journal.usage.rows({ by: USAGE_KEYS, limit: 100 });

export function usageSuite(newStore: NewStore): void {
  test("107: token usage is known by day, model, workspace and task, and nothing is counted twice", async () => {
    await using store = await newStore();
    await using journal = await openWithWork(store);
    const days = await journal.usage.rows({ by: ["day"], limit: 10 });
    expect(days.map(({ of, requests, unpriced, costUsd }) => ({ ...of, requests, unpriced, costUsd }))).toEqual([
      { day: "2026-11-02", requests: 3, unpriced: 0, costUsd: 3.5 },
      { day: "2026-11-01", requests: 3, unpriced: 1, costUsd: 0.75 },
    ]);
    expect(days[1]?.usage).toEqual({
      ...NO_USAGE,
      inputTokens: 300,
      cachedInputTokens: 120,
      outputTokens: 30,
      reasoningOutputTokens: 9,
    });
    const models = await journal.usage.rows({ by: ["model"], from: "2026-11-01", to: "2026-11-01", limit: 10 });
    expect(models.map(({ of, requests }) => [of.model, requests])).toEqual([
      ["large", 1],
      ["small", 2],
    ]);
    const tasks = await journal.usage.rows({ by: ["task", "workspace", "model"], only: { task: "task_1" }, limit: 10 });
    expect(tasks.map(({ of, costUsd }) => [of, costUsd])).toEqual([
      [{ task: "task_1", workspace: "/of-the-task", model: "judge" }, 1],
      [{ task: "task_1", workspace: "/of-the-task", model: "small" }, 2],
    ]);
    expect(await journal.usage.rows({ by: [], limit: 1 })).toMatchObject([{ of: {}, requests: 6, costUsd: 4.25 }]);
  });

  test("the ledger made anew from events is the same, before and after a thread is deleted", async () => {
    await using store = await newStore();
    await using journal = await openWithWork(store);
    const before = await all(journal);
    await journal.rebuildProjections();
    expect(await all(journal)).toEqual(before);
    const totals = () => journal.usage.rows({ by: ["day", "model", "task"], limit: 100 });
    const sums = await totals();
    await journal.purge({ stream: "work", author: "user:owner", reason: "tidy" });
    await journal.purge({ stream: "plain", author: "user:owner", reason: "tidy" });
    expect(await totals()).toEqual(sums);
    const gone = await journal.usage.rows({ by: ["thread", "workspace"], only: { thread: "" }, limit: 100 });
    expect(gone.map(({ of, requests }) => [of, requests])).toEqual([[{ thread: "", workspace: "" }, 5]]);
    const after = await all(journal);
    await journal.rebuildProjections();
    expect(await all(journal)).toEqual(after);
  });

  test("an empty ledger has no rows", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    expect(await journal.usage.rows({ by: [], limit: 10 })).toEqual([]);
    expect(await journal.usage.rows({ by: ["day"], limit: 10 })).toEqual([]);
  });

  test("14.8: what an opinion used is moved to its task as often as one is asked for, and none of it is lost", async () => {
    await using store = await newStore();
    await using journal = await openWithWork(store);
    await journal.append({ stream: "opinion", author: "system", events: answer("r6", "judge", 1) });
    await journal.append({ stream: "task_1", author: "system", events: [checked] });
    const [judged] = await journal.usage.rows({ by: ["task"], only: { model: "judge" }, limit: 10 });
    expect(judged).toMatchObject({ of: { task: "task_1" }, requests: 2, costUsd: 2 });
  });
}
