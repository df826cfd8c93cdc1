import { expect, test } from "vitest";
import type { TaskEventBody } from "./task-event-kinds.ts";
import { afterEvents } from "./task-machine.ts";
import type { CheckResult } from "./task-checks.ts";
import { TaskSpec } from "./task-spec.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const spec = TaskSpec.parse({
  name: "t",
  workspace: "/w",
  goal: "g",
  checks: [{ kind: "file-exists", path: "a" }],
  agents: [{ runner: "a" }, { runner: "b" }],
});
const asked: TaskEventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
const taken = (attempt = 1): TaskEventBody => ({ type: "task.taken", v: 1, attempt, holder });
const opened = (generation: number, attempt = 1): TaskEventBody => ({
  type: "task.contest-opened",
  v: 1,
  attempt,
  generation,
  contestants: [1, 2].map((number) => ({ number, name: `${number}`, taskId: `task_${number}`, agent: {} })),
});
const waits: TaskEventBody = { type: "task.waited", v: 1, cause: "contest", message: "" };
const picked = (number: number): TaskEventBody => ({
  type: "task.contest-picked",
  v: 1,
  attempt: 1,
  number,
  reason: "best",
  rows: [],
});
const over = (number?: number): TaskEventBody => ({
  type: "task.contest-ended",
  v: 1,
  attempt: 1,
  reason: "best",
  rows: [],
  ...(number === undefined ? {} : { number }),
});
const claimed: TaskEventBody = { type: "task.claimed", v: 1, attempt: 1, by: "contest", summary: "" };
const verified: TaskEventBody = { type: "task.verified", v: 1, attempt: 1 };
const rejected: TaskEventBody = { type: "task.rejected", v: 1, attempt: 1, failing: ["a"] };
const retried: TaskEventBody = { type: "task.retried", v: 1, reason: "" };
const failed: TaskEventBody = {
  type: "task.failed",
  v: 1,
  attempt: 1,
  class: "rejected",
  failure: { code: "task.rejected", message: "nobody" },
};
const checked = (outcome: CheckResult["outcome"]): TaskEventBody => ({
  type: "task.checked",
  v: 1,
  attempt: 1,
  round: 1,
  results: [{ name: "a", kind: "file-exists", outcome, message: "", startedAt: 0, durationMs: 5 }],
  violations: [],
  passed: outcome === "passed",
});

const run = (...bodies: readonly TaskEventBody[]) => afterEvents(undefined, "task_1", bodies, 0);
const illegal = (...bodies: readonly TaskEventBody[]): void =>
  expect(() => run(...bodies)).toThrow(expect.objectContaining({ code: "task.illegal" }));

test("a contest is opened once, by who has taken it, and waits without a worker", () => {
  illegal(asked, opened(1));
  illegal(asked, taken(), opened(2));
  illegal(asked, taken(), waits);
  illegal(asked, taken(), opened(1), opened(2));
  const waiting = run(asked, taken(), opened(1), waits);
  expect(waiting).toMatchObject({ state: "waiting", wait: { cause: "contest" } });
  expect(waiting).not.toHaveProperty("holder");
  expect(waiting).not.toHaveProperty("nextAt");
});

test("it is verified only by a judgement of its own on work that was picked", () => {
  const held = [asked, taken(), opened(1)] as const;
  illegal(asked, taken(), picked(1));
  illegal(...held, claimed);
  illegal(...held, picked(3));
  illegal(...held, over(1));
  illegal(...held, picked(1), picked(2));
  illegal(...held, picked(1), verified);
  illegal(...held, picked(1), waits);
  expect(run(...held, picked(1), claimed, checked("passed"), over(1), verified)).toMatchObject({
    state: "verified",
    contest: { generation: 1, picked: { number: 1 }, refused: [], hasEnded: true },
  });
});

test("what was refused is not picked again, and the contest continues", () => {
  const refused = [asked, taken(), opened(1), picked(1), claimed, checked("failed"), rejected] as const;
  expect(run(...refused).contest).toMatchObject({ refused: [1], hasEnded: false });
  expect(run(...refused).contest).not.toHaveProperty("picked");
  illegal(...refused, picked(1));
  expect(run(...refused, waits).state).toBe("waiting");
  expect(run(...refused, picked(2))).toMatchObject({ state: "running", round: 2, contest: { picked: { number: 2 } } });
});

test("a retry by the user is another contest, with contestants of its own", () => {
  const failedOnce = [asked, taken(), opened(1), over(), failed, retried, taken(2)] as const;
  illegal(...failedOnce, opened(1, 2));
  expect(run(...failedOnce, opened(2, 2)).contest).toMatchObject({ generation: 2, refused: [], hasEnded: false });
  const cancelled: TaskEventBody = { type: "task.cancelled", v: 1, reason: "" };
  expect(run(asked, taken(), opened(1), waits, cancelled, retried).contest?.hasEnded).toBe(true);
});
