import { expect, test } from "vitest";
import type { TaskEventBody } from "./task-event-kinds.ts";
import { afterEvents } from "./task-machine.ts";
import type { CheckResult } from "./task-checks.ts";
import type { TaskRecord } from "./task-record.ts";
import { TaskSpec } from "./task-spec.ts";
import { NO_USAGE } from "./usage.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const spec = TaskSpec.parse({
  name: "t",
  workspace: "/w",
  goal: "g",
  checks: [{ kind: "file-exists", path: "a" }],
});
const passed: CheckResult = {
  name: "a",
  kind: "file-exists",
  outcome: "passed",
  message: "",
  startedAt: 0,
  durationMs: 5,
};

const created: TaskEventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
const taken = (attempt: number): TaskEventBody => ({ type: "task.taken", v: 1, attempt, holder });
const prompted = (attempt: number, round: number): TaskEventBody => ({
  type: "task.prompted",
  v: 1,
  attempt,
  round,
  clientId: `c${attempt}.${round}`,
  why: round === 1 ? "first" : "rejected",
  text: "do it",
});
const ended = (attempt: number, round: number): TaskEventBody => ({
  type: "task.turn-ended",
  v: 1,
  attempt,
  round,
  turnId: "t",
  status: "completed",
  usage: { ...NO_USAGE, inputTokens: 10, outputTokens: 2 },
  durationMs: 100,
});
const claimed = (attempt: number): TaskEventBody => ({
  type: "task.claimed",
  v: 1,
  attempt,
  by: "report",
  summary: "done",
});
const checked = (attempt: number, results: CheckResult[], isPassed = true): TaskEventBody => ({
  type: "task.checked",
  v: 1,
  attempt,
  round: 1,
  results,
  violations: [],
  passed: isPassed,
});
const verified = (attempt: number): TaskEventBody => ({ type: "task.verified", v: 1, attempt });

const run = (bodies: readonly TaskEventBody[], from?: TaskRecord): TaskRecord =>
  afterEvents(from, "task_1", bodies, 1000);
const toClaim = [created, taken(1), prompted(1, 1), ended(1, 1), claimed(1)];

test("a task whose checks passed is verified, and only then", () => {
  const task = run([...toClaim, checked(1, [passed]), verified(1)]);
  expect(task).toMatchObject({ state: "verified", spent: { timeMs: 105, turns: 1, tokens: 12, nudges: 0 } });
  expect(task.holder).toBeUndefined();
  expect(() => run([...toClaim, verified(1)])).toThrow(/does not fit/);
});

test.each([
  ["a check that failed", [{ ...passed, outcome: "failed" as const }]],
  ["a check that could not be run", [{ ...passed, outcome: "error" as const }]],
  ["no results at all", []],
])("%s does not verify, whatever `passed` says", (_, results) => {
  expect(() => run([...toClaim, checked(1, results, true), verified(1)])).toThrow(/does not fit/);
});

test("checks of an earlier attempt verify nothing, and a stale attempt is refused", () => {
  const first = run([...toClaim, checked(1, [{ ...passed, outcome: "failed" }], false)]);
  const second = run([taken(2), prompted(2, 2), ended(2, 2), claimed(2)], first);
  expect(() => run([verified(2)], second)).toThrow(/does not fit/);
  expect(() => run([checked(1, [passed])], second)).toThrow(/not the current one/);
});

test("a prompt is open until its turn ended, and a second one is refused meanwhile", () => {
  const task = run([created, taken(1), prompted(1, 1)]);
  expect(task.openPrompt).toMatchObject({ round: 1, clientId: "c1.1" });
  expect(() => run([prompted(1, 2)], task)).toThrow(/does not fit/);
});

test("a task without checks ends at claimed, and says so", () => {
  const bare = TaskSpec.parse({ name: "t", workspace: "/w", goal: "g" });
  const task = run([{ ...created, spec: bare }, taken(1), prompted(1, 1), ended(1, 1), claimed(1)]);
  expect(task.state).toBe("claimed");
  expect(task.holder).toBeUndefined();
  expect(() => run([verified(1)], task)).toThrow(/does not fit/);
});

test("26: an archived task takes nothing but to be brought back", () => {
  const task = run([
    created,
    { type: "task.cancelled", v: 1, reason: "no" },
    { type: "task.archived", v: 1, isArchived: true },
  ]);
  expect(task.state).toBe("archived");
  expect(() => run([{ type: "task.resumed", v: 1 }], task)).toThrow(/archived/);
  expect(run([{ type: "task.archived", v: 1, isArchived: false }], task).state).toBe("cancelled");
});
