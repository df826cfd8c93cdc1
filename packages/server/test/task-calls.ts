/** Calls about tasks as a client makes them, and tasks as workers leave them: events are appended by hand. */
import { NO_USAGE, type EventBody } from "@heddle/protocol";
import { expect } from "vitest";
import type { HttpWorld } from "./http-world.ts";

export interface TaskJson {
  readonly id: string;
  readonly state: string;
  readonly seq: number;
  readonly spec: { readonly goal: string; readonly workspace: string; readonly steps: readonly unknown[] };
}

export const post = (world: HttpWorld, path: string, body: unknown, token = world.tokens.owner) =>
  world.ask(path, { method: "POST", body, token });

export async function made(world: HttpWorld, body: unknown): Promise<TaskJson> {
  const answer = await post(world, "/api/tasks", body);
  expect(answer.status, answer.text).toBe(201);
  return answer.json as TaskJson;
}

export async function count(world: HttpWorld): Promise<number> {
  return (await world.heddle.journal.tasks.page({ limit: 1_000 })).length;
}

export const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
export const say = (world: HttpWorld, stream: string, ...events: EventBody[]) =>
  world.heddle.journal.append({ stream, author: "system", events });

/** As a worker leaves it: taken, prompted, rejected once, verified. */
export async function workedOn(world: HttpWorld): Promise<string> {
  const id = await world.newTask({ checks: [{ kind: "file-exists", path: "x" }] });
  const result = {
    name: "x",
    kind: "file-exists",
    outcome: "failed",
    message: "no x",
    startedAt: 1,
    durationMs: 1,
  } as const;
  const turn = { status: "completed", usage: { ...NO_USAGE, outputTokens: 5 }, costUsd: 0.5, durationMs: 9 } as const;
  const round = (number: number, passed: boolean): EventBody[] => [
    {
      type: "task.prompted",
      v: 1,
      attempt: 1,
      round: number,
      clientId: `c${number}`,
      why: number === 1 ? "first" : "rejected",
      text: "do it",
    },
    { type: "task.turn-ended", v: 1, attempt: 1, round: number, turnId: `t${number}`, ...turn },
    { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: "done" },
    {
      type: "task.checked",
      v: 1,
      attempt: 1,
      round: number,
      results: [{ ...result, outcome: passed ? "passed" : "failed" }],
      violations: [],
      passed,
    },
    passed ? { type: "task.verified", v: 1, attempt: 1 } : { type: "task.rejected", v: 1, attempt: 1, failing: ["x"] },
  ];
  await say(world, id, { type: "task.taken", v: 1, attempt: 1, holder });
  await say(world, id, { type: "task.prepared", v: 1, attempt: 1, threadId: "thr", folder: world.home });
  await say(world, id, ...round(1, false));
  await say(world, id, ...round(2, true));
  return id;
}
