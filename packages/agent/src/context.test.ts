import { NO_USAGE, type EventBody, type EventOf, type ModelOutputPart } from "@heddle/protocol";
import { expect, test } from "vitest";
import { buildContext } from "./context.ts";

const turnId = "turn-1";
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

function admitted(text: string, turn = turnId): EventOf<"turn.admitted"> {
  return {
    type: "turn.admitted",
    v: 1,
    turnId: turn,
    input: [{ type: "text", text }],
    settings: {
      provider: "scripted",
      model: "m",
      sandboxMode: "read-only",
      networkAccess: false,
      writableRoots: [],
      approvalPolicy: "never",
    },
    holder,
  };
}

function said(...output: ModelOutputPart[]): EventBody {
  return { type: "model.responded", v: 1, turnId, requestId: "r", output, stopReason: "end", usage: NO_USAGE };
}

function userMessage(text: string, turn = turnId): EventBody {
  const item = { type: "userMessage" as const, id: `item-${text}`, content: [{ type: "text" as const, text }] };
  return { type: "item.completed", v: 1, turnId: turn, item };
}

function settled(callId: string, text: string, outcome: "ok" | "unknown" = "ok"): EventBody {
  return {
    type: "tool.settled",
    v: 1,
    turnId,
    callId,
    itemId: "i",
    tool: "exec_command",
    outcome,
    output: [{ type: "text", text }],
  };
}

const call = (callId: string): ModelOutputPart => ({
  kind: "toolCall",
  callId,
  name: "exec_command",
  input: "{}",
  shape: "json",
});

test("the surroundings are told before the message of the turn they were stored with", () => {
  const context = buildContext([
    admitted("hello"),
    { type: "context.loaded", v: 1, turnId, text: "you are here", sources: [] },
    userMessage("hello"),
  ]);
  expect(context).toEqual([
    { kind: "user", parts: [{ type: "text", text: "you are here" }] },
    { kind: "user", parts: [{ type: "text", text: "hello" }] },
  ]);
});

test("results stand behind their calls in the order of the calls, whatever order they came in", () => {
  const context = buildContext([
    admitted("go"),
    said(call("a"), call("b")),
    settled("b", "second"),
    settled("a", "first"),
  ]);
  const results = context.filter((part) => part.kind === "toolResult");
  expect(results.map(({ callId, parts }) => [callId, parts])).toEqual([
    ["a", [{ type: "text", text: "first" }]],
    ["b", [{ type: "text", text: "second" }]],
  ]);
});

test("a call id used again by a later answer gets the later result", () => {
  const context = buildContext([
    admitted("go"),
    said(call("a")),
    settled("a", "first"),
    said(call("a")),
    settled("a", "second"),
  ]);
  const texts = context.flatMap((part) => (part.kind === "toolResult" ? part.parts : []));
  expect(texts).toEqual([
    { type: "text", text: "first" },
    { type: "text", text: "second" },
  ]);
});

test("a call that never got a result is told as not run, as an error", () => {
  const [, , result] = buildContext([admitted("go"), said(call("a"))]);
  expect(result).toMatchObject({ kind: "toolResult", callId: "a", isError: true });
  expect(JSON.stringify(result)).toContain("not run");
});

test("an unknown outcome is told as an error with its text", () => {
  const [, , result] = buildContext([admitted("go"), said(call("a")), settled("a", "nobody knows", "unknown")]);
  expect(result).toMatchObject({ isError: true, parts: [{ type: "text", text: "nobody knows" }] });
});

test("steering stands where the agent was told, the admitted input only once", () => {
  const context = buildContext([
    admitted("one"),
    userMessage("one"),
    said(call("a")),
    settled("a", "x"),
    userMessage("wait, also this"),
    admitted("two", "turn-2"),
    userMessage("two", "turn-2"),
  ]);
  expect(context.map((part) => part.kind)).toEqual(["user", "assistant", "toolResult", "user", "user"]);
  expect(context.at(-2)).toEqual({ kind: "user", parts: [{ type: "text", text: "wait, also this" }] });
  expect(context.at(-1)).toEqual({ kind: "user", parts: [{ type: "text", text: "two" }] });
});
