import {
  inputItemId,
  NO_USAGE,
  type ApprovalQuestion,
  type EventBody,
  type Item,
  type StoredEvent,
} from "@heddle/protocol";
import { expect, test } from "vitest";
import { takeStoredQuestion, takeStoredRun } from "./carried.ts";
import { carryOver, leaseOf, waitingQuestions } from "./parked.ts";

const turnId = "turn-1";
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const settings = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "untrusted",
} as const;
const question: ApprovalQuestion = { kind: "command", callId: "c1", itemId: "i1", command: "make", cwd: "/w" };

const admitted: EventBody = {
  type: "turn.admitted",
  v: 1,
  turnId,
  input: [],
  settings: { ...settings, writableRoots: [] },
  holder,
};
const asked: EventBody = { type: "approval.requested", v: 1, turnId, approvalId: "a1", question };
const accepted: EventBody = { type: "approval.resolved", v: 1, turnId, approvalId: "a1", decision: "accept" };
const call = { turnId, callId: "c1", itemId: "i1", tool: "exec_command" };
const intended: EventBody = { type: "tool.intended", v: 1, ...call, arguments: {}, isReadOnly: false };
const settled: EventBody = { type: "tool.settled", v: 1, ...call, outcome: "ok", output: [] };
const stopped: EventBody = {
  type: "turn.interrupt-requested",
  v: 1,
  turnId,
  failure: { code: "turn.interrupted", message: "stop" },
};
const other: Item = {
  type: "commandExecution",
  id: "i0",
  callId: "c0",
  command: "x",
  cwd: "/w",
  status: "inProgress",
  output: "",
};

function stored(...bodies: readonly EventBody[]): StoredEvent[] {
  return bodies.map((body, index) => ({
    position: index + 1,
    stream: "t",
    version: index + 1,
    id: `evt_${index}`,
    at: 1000 + index,
    author: "system",
    body,
    hash: "",
  }));
}

test.each<[string, readonly EventBody[], boolean | undefined]>([
  ["asked", [admitted, asked], false],
  ["asked and answered", [admitted, asked, accepted], true],
  [
    "taken by a process that died too",
    [admitted, asked, accepted, { type: "turn.resumed", v: 1, turnId, holder }],
    true,
  ],
  ["begun", [admitted, asked, accepted, intended], undefined],
  ["settled", [admitted, asked, accepted, intended, settled], undefined],
  ["declined and settled", [admitted, asked, settled], undefined],
  ["never asked", [admitted], undefined],
  ["told to stop", [admitted, asked, stopped], undefined],
  ["asked by a run that nobody watched", [admitted, { ...asked, isUnattended: true }], undefined],
  ["asked while a command was open", [admitted, { type: "item.started", v: 1, turnId, item: other }, asked], undefined],
  ["asked in another turn", [admitted, { ...asked, turnId: "turn-0" }], undefined],
])("a turn that was %s can be carried on only when all it waits for is an answer", (_name, bodies, isAnswered) => {
  const found = waitingQuestions(turnId, stored(...bodies))?.get("c1");
  expect(found?.isAnswered).toBe(isAnswered);
});

test("the holder of a turn is whoever took it last", () => {
  const next = { ...holder, pid: 2 };
  const taken = (more: { epoch?: number }): EventBody => ({
    type: "turn.resumed",
    v: 1,
    turnId,
    holder: next,
    ...more,
  });
  const events = stored(admitted, asked, accepted, taken({}));
  expect(leaseOf(turnId, stored(admitted))).toEqual({ holder, epoch: 1 });
  expect(leaseOf(turnId, events)).toEqual({ holder: next, epoch: 2 });
  expect(leaseOf(turnId, stored(admitted, taken({}), taken({ epoch: 7 })))).toEqual({ holder: next, epoch: 7 });
  expect(leaseOf("turn-0", events)).toBeUndefined();
});

test("what nobody has heard is carried over: answers, and the steering that was not told yet", () => {
  const said = (text: string): EventBody => ({ type: "turn.steered", v: 1, turnId, input: [{ type: "text", text }] });
  const told = (id: string, text: string): EventBody => ({
    type: "item.completed",
    v: 1,
    turnId,
    item: { type: "userMessage", id, content: [{ type: "text", text }] },
  });
  const usage = { ...NO_USAGE, inputTokens: 7 };
  const responded: EventBody = {
    type: "model.responded",
    v: 1,
    turnId,
    requestId: "r",
    output: [],
    stopReason: "end",
    usage,
  };
  const history = stored(
    admitted,
    told(inputItemId(turnId), "go"),
    said("one"),
    told("item_1", "one"),
    said("two"),
    responded,
    asked,
    said("three"),
    accepted,
  );
  const carried = carryOver(turnId, history, waitingQuestions(turnId, history) ?? new Map());
  expect(carried.unread.map(({ body }) => body)).toEqual([accepted, said("two"), said("three")]);
  expect(carried.spent.usage.inputTokens).toBe(7);
  expect(carried.admittedAt).toBe(1000);
});

test("a stored answer is met once, by the same act alone", () => {
  const history = stored(admitted, asked, accepted);
  const carried = carryOver(turnId, history, waitingQuestions(turnId, history) ?? new Map());
  expect(takeStoredQuestion(carried, { ...question, wish: { kind: "outside" } })).toBeUndefined();
  expect(takeStoredQuestion(carried, { ...question, command: "make all" })).toBeUndefined();
  expect(takeStoredQuestion(carried, { ...question, reason: "in other words" })).toMatchObject({ approvalId: "a1" });
  expect(takeStoredQuestion(carried, question)).toBeUndefined();
});

test("what a hook said to a call without a result is met once, by the same hook alone", () => {
  const ran = (subject: string, command: string, exitCode = 0): EventBody => ({
    type: "hook.ran",
    v: 1,
    turnId,
    event: "PreToolUse",
    command,
    subject,
    outcome: "ok",
    ...(exitCode < 0 ? {} : { exitCode }),
    durationMs: 1,
    output: "",
  });
  const settled: EventBody = {
    type: "tool.settled",
    v: 1,
    turnId,
    callId: "before",
    itemId: "item_0",
    tool: "exec_command",
    outcome: "ok",
    output: [],
  };
  const { callId } = question;
  const history = stored(
    admitted,
    ran("before", "guard"),
    settled,
    ran(callId, "guard"),
    ran(callId, "stopped", -1),
    asked,
    accepted,
  );
  const carried = carryOver(turnId, history, waitingQuestions(turnId, history) ?? new Map());
  expect(takeStoredRun(carried, { event: "PreToolUse", subject: "before", command: "guard" })).toBeUndefined();
  expect(takeStoredRun(carried, { event: "PreToolUse", subject: callId, command: "another" })).toBeUndefined();
  expect(takeStoredRun(carried, { event: "PreToolUse", subject: callId, command: "stopped" })).toBeUndefined();
  expect(takeStoredRun(carried, { event: "PostToolUse", subject: callId, command: "guard" })).toBeUndefined();
  expect(takeStoredRun(carried, { event: "PreToolUse", subject: callId, command: "guard" })).toEqual(
    ran(callId, "guard"),
  );
  expect(takeStoredRun(carried, { event: "PreToolUse", subject: callId, command: "guard" })).toBeUndefined();
});
