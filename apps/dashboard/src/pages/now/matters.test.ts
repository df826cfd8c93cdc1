import { expect, test } from "vitest";
import type { Approval, StateAnswer, TaskSummary } from "@heddle/protocol/http";
import { mattersOf } from "./matters.ts";

const SPENT = { timeMs: 1000, turns: 2, tokens: 15_600, costUsd: 0, isCostPartial: true, nudges: 0 };

function task(more: Partial<TaskSummary>): TaskSummary {
  return {
    id: "task_1",
    name: "write the guide",
    state: "running",
    workspace: "/home/ada/mailer",
    labels: [],
    priority: 0,
    source: { kind: "cli" },
    createdAt: 1,
    updatedAt: 10,
    attempt: 1,
    spent: SPENT,
    steps: { done: 0, all: 0 },
    isStalled: false,
    budget: { timeMs: 60_000, turns: 20, tokens: 5_000_000, onReached: "pause" },
    checks: { all: 0, passed: 0, failed: 0, errors: 0, vacuous: 0, violations: 0 },
    dependsOn: [],
    ...more,
  };
}

function state(more: Partial<StateAnswer> = {}): StateAnswer {
  const config = { carriesOutTasks: true, concurrency: 2, workspaceRoots: null, inboxes: [], sinks: [], webhooks: [] };
  const usage = { today: [], month: [], total: [] };
  const none = { counts: {}, tasks: [], stalls: [], approvals: 0, sinks: [], usage, dayLimits: {}, config };
  return { version: "0", now: 100, position: 9, ...none, ...more };
}

const OUTSIDE: Approval = {
  id: "apr_1",
  threadId: "0198",
  turnId: "turn_1",
  seq: 4,
  askedAt: 50,
  mayAnswer: ["accept", "acceptForThread", "decline", "cancel"],
  question: {
    kind: "command",
    callId: "call",
    itemId: "item",
    command: "npm install nock",
    cwd: "/w",
    wish: { kind: "outside" },
    reason: "the registry",
  },
};

test("a question comes with its exact command, the agent's reason and the task that asks", () => {
  const asking = task({ state: "waiting", threadId: "0198", wait: { cause: "approval", message: "waits" } });
  const [matter] = mattersOf({
    state: state({ tasks: [asking] }),
    approvals: [{ ...OUTSIDE, taskId: "task_1", taskName: "write the guide" }],
    stopped: [],
  });
  expect(matter).toMatchObject({
    band: "you",
    tone: "yours",
    before: "Run this ",
    strong: "outside the sandbox",
    exact: ["npm install nock"],
    quote: "the registry",
    to: "/tasks/task_1",
    name: "write the guide",
  });
});

test("what cannot move by itself is listed, never as verified, and an unknown price is not nothing", () => {
  const stopped = [
    task({ id: "task_2", state: "claimed" }),
    task({ id: "task_3", state: "failed", reason: "the key was refused" }),
  ];
  const matters = mattersOf({ state: state(), approvals: [], stopped });
  expect(matters.map(({ band, tone, strong }) => ({ band, tone, strong }))).toEqual([
    { band: "stopped", tone: "said", strong: "Claimed, not verified:" },
    { band: "stopped", tone: "refused", strong: "Failed." },
  ]);
  expect(matters[0]?.facts).toEqual(["mailer", "15.6k tokens, price unknown"]);
});

test("a name that an agent gave cannot hide or reorder what is shown", () => {
  const [matter] = mattersOf({
    state: state(),
    approvals: [],
    stopped: [task({ state: "failed", name: "good\u202Eevil\n<img onerror=x>" })],
  });
  expect(matter?.name).toBe("good\\u{202e}evil\\n<img onerror=x>");
});

test("a queue that nobody works on is a matter, and so is a sink that does not deliver", () => {
  const config = { ...state().config, carriesOutTasks: false };
  const sink = { name: "phone", kind: "ntfy", target: "ntfy.example", events: [], queued: 7, delivered: 0, dead: 2 };
  const matters = mattersOf({
    state: state({ counts: { pending: 3 }, config, sinks: [sink] }),
    approvals: [],
    stopped: [],
  });
  expect(matters.map(({ band, of }) => [band, of.kind])).toEqual([
    ["heddle", "worker"],
    ["heddle", "sink"],
  ]);
});
