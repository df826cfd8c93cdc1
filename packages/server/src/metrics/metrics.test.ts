import { thisHolder } from "@heddle/agent";
import { NO_USAGE, newTurnId, type EventBody } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { openMetrics } from "./open-metrics.ts";
import { openHttpWorld, SETTINGS, type HttpWorld } from "../../test/http-world.ts";

const USAGE = { ...NO_USAGE, inputTokens: 100, cachedInputTokens: 40, outputTokens: 7 };

async function read(world: HttpWorld): Promise<string> {
  const { status, text, headers } = await world.ask("/metrics", { token: world.tokens.viewer });
  expect([status, headers["content-type"]]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  return text;
}

/** Polls, since what is stored is counted by a reader of its own. */
async function until(world: HttpWorld, line: string): Promise<string> {
  for (let asked = 0; asked < 1_000; asked += 1) {
    const text = await read(world);
    if (text.split("\n").includes(line)) return text;
  }
  throw new Error(`no metric came to ${line}`);
}

function turn(turnId: string): readonly EventBody[] {
  const requestId = `req_${turnId}`;
  return [
    { type: "turn.admitted", v: 1, turnId, input: [], settings: SETTINGS, holder: thisHolder() },
    { type: "model.requested", v: 1, turnId, requestId, provider: "mock", model: "m", requestBytes: 10 },
    {
      type: "model.retried",
      v: 1,
      turnId,
      requestId,
      attempt: 1,
      maxAttempts: 3,
      delayMs: 1,
      cause: { code: "provider.overloaded", message: "secret words of a provider" },
    },
    { type: "model.responded", v: 1, turnId, requestId, output: [], stopReason: "end", usage: USAGE, costUsd: 0.5 },
  ];
}

test("metrics are read with a viewer's token, count what is stored since the first question, and name no thread", async () => {
  await using world = await openHttpWorld();
  expect((await world.ask("/metrics", { token: "" })).status).toBe(401);
  const { journal } = world.heddle;
  const [before, threadId] = [await world.newThread(), await world.newThread()];
  await journal.append({ stream: before, author: "user:owner", events: turn(newTurnId()) });
  expect(await read(world)).not.toContain("heddle_model_requests_total{");
  const turnId = newTurnId();
  await journal.append({ stream: threadId, author: "user:owner", events: turn(turnId) });
  const running = await until(world, 'heddle_model_requests_total{provider="mock",outcome="answered",code=""} 1');
  const lines = running.split("\n");
  for (const line of [
    'heddle_model_requests_total{provider="mock",outcome="retried",code="provider.overloaded"} 1',
    'heddle_tokens_total{provider="mock",model="m",kind="input"} 100',
    'heddle_tokens_total{provider="mock",model="m",kind="cached_input"} 40',
    'heddle_tokens_total{provider="mock",model="m",kind="output"} 7',
    'heddle_cost_usd_total{provider="mock",model="m"} 0.5',
    'heddle_turns{state="running"} 2',
    'heddle_append_seconds_count{outcome="ok"} 1',
    "heddle_append_group_size_count 1",
    "heddle_tail_lag_events 0",
    "heddle_store_writable 1",
    "heddle_followers 0",
    "heddle_sandboxes 0",
    'heddle_build_info{version="0.0.0"} 1',
  ]) {
    expect(lines).toContain(line);
  }
  for (const name of ["process_resident_memory_bytes", "heddle_event_loop_delay_seconds", "process_cpu_seconds_total"])
    expect(running).toContain(`# TYPE ${name}`);
  const failure = { code: "turn.interrupted", message: "stop" } as const;
  await journal.append({
    stream: threadId,
    author: "system",
    events: [{ type: "turn.completed", v: 1, turnId, status: "interrupted", failure, usage: USAGE, durationMs: 2_000 }],
  });
  const text = await until(world, 'heddle_turns_ended_total{status="interrupted",code="turn.interrupted"} 1');
  expect(text).toContain('heddle_turn_seconds_bucket{status="interrupted",le="5"} 1');
  for (const hidden of [threadId, turnId, world.home, "secret words"]) expect(text).not.toContain(hidden);
});

test("tasks and the inputs that wait are counted by state", async () => {
  await using world = await openHttpWorld();
  const { journal } = world.heddle;
  await world.newTask();
  const spec = TaskSpec.parse({ name: "fix", goal: "fix it", workspace: world.home });
  await journal.append({
    stream: "task_1",
    author: "system",
    events: [
      { type: "task.created", v: 1, spec, source: { kind: "cli" } },
      { type: "task.taken", v: 1, attempt: 1, holder: thisHolder() },
    ],
  });
  await journal.append({
    stream: await world.newThread(),
    author: "user:owner",
    events: [{ type: "turn.queued", v: 1, turnId: newTurnId(), input: [], settings: SETTINGS }],
  });
  const lines = (await read(world)).split("\n");
  for (const line of [
    'heddle_tasks{state="pending"} 1',
    'heddle_tasks{state="running"} 1',
    'heddle_tickets{queue="tasks",state="active"} 1',
    'heddle_turns{state="queued"} 1',
  ]) {
    expect(lines).toContain(line);
  }
});

test("a question costs as much in a store with a thousand ended turns and many ended tasks as in an empty one", async () => {
  await using small = await openHttpWorld();
  await using large = await openHttpWorld();
  const { journal } = large.heddle;
  const spec = TaskSpec.parse({ name: "fix", goal: "fix it", workspace: large.home });
  const threadId = await large.newThread();
  for (let batch = 0; batch < 5; batch += 1) {
    const turns = Array.from({ length: 200 }, () => ended(newTurnId())).flat();
    await journal.append({ stream: threadId, author: "user:owner", events: turns, durability: "relaxed" });
    const tasks = Array.from({ length: 20 }, (_, at) =>
      journal.append({
        stream: `task_${batch}_${at}`,
        author: "system",
        events: [
          { type: "task.created", v: 1, spec, source: { kind: "cli" } },
          { type: "task.cancelled", v: 1, reason: "not needed" },
        ],
        durability: "relaxed",
      }),
    );
    await Promise.all(tasks);
  }
  const [few, many] = [await costMs(small), await costMs(large)];
  expect([few, many, many < 2 * few + 0.05]).toEqual([few, many, true]);
}, 60_000);

function ended(turnId: string): readonly EventBody[] {
  const end = { type: "turn.completed", v: 1, turnId, status: "completed", usage: USAGE, durationMs: 1 } as const;
  return [...turn(turnId).slice(0, 1), end];
}

/** Of this thread alone, and the least of several, so that a busy machine changes nothing. */
async function costMs({ heddle }: HttpWorld): Promise<number> {
  const log = (line: string): never => {
    throw new Error(line);
  };
  using metrics = await openMetrics({ heddle, version: "0", followers: () => 0, isDraining: () => false, log });
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round += 1) {
    const before = process.threadCpuUsage();
    for (let asked = 0; asked < 20; asked += 1) await metrics.text();
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 20_000);
  }
  return least;
}
