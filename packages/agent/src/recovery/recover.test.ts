import { NO_USAGE, type EventBody, type EventOf, type Item, type StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { brokenOff } from "../turns/recorder.ts";
import { closingEvents } from "./recover.ts";

const turnId = "turn-1";
const admitted: EventOf<"turn.admitted"> = {
  type: "turn.admitted",
  v: 1,
  turnId,
  input: [],
  settings: {
    provider: "p",
    model: "m",
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  },
  holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" },
};

function stored(bodies: readonly EventBody[]): StoredEvent[] {
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

const command: Item = {
  type: "commandExecution",
  id: "item-1",
  callId: "call-1",
  command: "make",
  cwd: "/w",
  status: "inProgress",
  output: "",
};
const intent: EventBody = {
  type: "tool.intended",
  v: 1,
  turnId,
  callId: "call-1",
  itemId: "item-1",
  tool: "exec_command",
  arguments: {},
  isReadOnly: false,
};

test("a turn that had only been admitted ends interrupted, with nothing else to close", () => {
  expect(closingEvents(admitted, stored([admitted]))).toEqual([
    {
      type: "turn.completed",
      v: 1,
      turnId,
      status: "interrupted",
      failure: expect.objectContaining({ code: "turn.abandoned" }),
      usage: NO_USAGE,
      durationMs: 0,
    },
  ]);
});

test("input that was acknowledged and not told yet is told with the end: the prompt, and what was added", () => {
  const words = (text: string) => [{ type: "text" as const, text }];
  const said: EventOf<"turn.admitted"> = { ...admitted, input: words("do it"), clientId: "m1" };
  const message = (id: string, text: string): Item => ({ type: "userMessage", id, content: words(text) });
  const steered = (text: string): EventBody => ({ type: "turn.steered", v: 1, turnId, input: words(text) });
  const told = (bodies: readonly EventBody[]): unknown[] =>
    closingEvents(said, stored(bodies)).flatMap((body) =>
      body.type === "item.completed" && body.item.type === "userMessage" ? [body.item] : [],
    );
  expect(told([said])).toEqual([{ ...message(`item_${turnId}`, "do it"), clientId: "m1" }]);
  const first: EventBody = { type: "item.completed", v: 1, turnId, item: message(`item_${turnId}`, "do it") };
  expect(told([said, first])).toEqual([]);
  const second: EventBody = { type: "item.completed", v: 1, turnId, item: message("item_2", "also") };
  expect(told([said, first, steered("also"), second, steered("and this")])).toMatchObject([
    { content: words("and this") },
  ]);
});

test("an intent without a result becomes unknown, its item keeps what was checkpointed, the question is cancelled", () => {
  const events = closingEvents(
    admitted,
    stored([
      admitted,
      {
        type: "approval.requested",
        v: 1,
        turnId,
        approvalId: "apr_1",
        question: { kind: "command", callId: "call-1", itemId: "item-1", command: "make", cwd: "/w" },
      },
      intent,
      { type: "item.started", v: 1, turnId, item: command },
      { type: "item.checkpointed", v: 1, turnId, itemId: "item-1", channel: "output", appended: "one\n" },
      { type: "item.checkpointed", v: 1, turnId, itemId: "item-1", channel: "output", appended: "two\n" },
    ]),
  );
  expect(events.map(({ type }) => type)).toEqual([
    "approval.resolved",
    "tool.settled",
    "item.completed",
    "turn.completed",
  ]);
  expect(events[0]).toMatchObject({ approvalId: "apr_1", decision: "cancel" });
  expect(events[1]).toMatchObject({ callId: "call-1", outcome: "unknown" });
  expect(events[2]).toMatchObject({ item: { ...command, status: "unknown", output: "one\ntwo\n" } });
});

test("what was settled and completed before the crash is left alone, and its tokens are counted", () => {
  const usage = { ...NO_USAGE, inputTokens: 7, outputTokens: 3 };
  const events = closingEvents(
    admitted,
    stored([
      admitted,
      { type: "model.responded", v: 1, turnId, requestId: "r", output: [], stopReason: "end", usage },
      intent,
      { type: "item.started", v: 1, turnId, item: command },
      {
        type: "tool.settled",
        v: 1,
        turnId,
        callId: "call-1",
        itemId: "item-1",
        tool: "exec_command",
        outcome: "ok",
        output: [],
      },
      { type: "item.completed", v: 1, turnId, item: { ...command, status: "completed" } },
    ]),
  );
  expect(events).toHaveLength(1);
  expect(events[0]).toMatchObject({ type: "turn.completed", usage, durationMs: 5 });
});

test("a message that broke off keeps its text and says that it is partial", () => {
  const plan = { type: "proposedPlan", id: "p", status: "inProgress", text: "" } as const;
  expect(brokenOff(plan, "- half a pl")).toEqual({ ...plan, status: "unknown", text: "- half a pl" });
  expect(brokenOff({ type: "agentMessage", id: "i", text: "" }, "half a sent")).toEqual({
    type: "agentMessage",
    id: "i",
    text: "half a sent",
    isPartial: true,
  });
});
