import { expect, test } from "vitest";
import { withFittingCallIds } from "./call-ids.ts";
import type { ModelInput } from "../requests/stream.ts";

function call(...ids: readonly string[]): ModelInput {
  return {
    kind: "assistant",
    parts: ids.map((callId) => ({ kind: "toolCall", callId, name: "t", input: "{}", shape: "json" })),
  };
}

function result(callId: string): ModelInput {
  return { kind: "toolResult", callId, name: "t", shape: "json", isError: false, parts: [] };
}

function ids(input: readonly ModelInput[]): string[] {
  return input.flatMap((entry) =>
    entry.kind === "assistant"
      ? entry.parts.flatMap((part) => (part.kind === "toolCall" ? [part.callId] : []))
      : entry.kind === "toolResult"
        ? [`=${entry.callId}`]
        : [],
  );
}

test("G7: ids that fit go out as they are", () => {
  const input = [call("call_1", "toolu_2"), result("call_1"), result("toolu_2")];
  expect(withFittingCallIds(input, "anthropic")).toEqual(input);
});

test("G7: an id that two providers used is told apart, results included", () => {
  const input = [call("c"), result("c"), call("c", "d"), result("d"), result("c"), call("c_2"), result("c_2")];
  expect(ids(withFittingCallIds(input, "any"))).toEqual(["c", "=c", "c_2", "d", "=d", "=c_2", "c_2_2", "=c_2_2"]);
});

test("G7: what one provider allows and another refuses is written differently, and stays unique", () => {
  const input = [call("a.b", "a:b"), result("a.b"), result("a:b")];
  expect(ids(withFittingCallIds(input, "anthropic"))).toEqual(["a_b", "a_b_2", "=a_b", "=a_b_2"]);
  expect(ids(withFittingCallIds(input, "any"))).toEqual(["a.b", "a:b", "=a.b", "=a:b"]);
  const long = "x".repeat(80);
  const [first = "", second = ""] = ids(withFittingCallIds([call(long), call(`${long}y`)], "any"));
  expect([first.length, second.length]).toEqual([64, 64]);
  expect(first).not.toBe(second);
});

test("G7: what is sent of the beginning does not depend on what follows", () => {
  const beginning = [call("c"), result("c"), call("c"), result("c")];
  const whole = withFittingCallIds([...beginning, call("c", "c_2"), result("c")], "any");
  expect(whole.slice(0, 4)).toEqual(withFittingCallIds(beginning, "any"));
});

test("12.16: a service with ids of nine characters gets such ids, each its own, results included", () => {
  const input = [
    call("call_1_1", "toolu_abcdefghijk"),
    result("call_1_1"),
    result("toolu_abcdefghijk"),
    call("call01010"),
  ];
  const sent = ids(withFittingCallIds([...input, result("call01010")], "nine-characters"));
  for (const id of sent) expect(id.replace("=", "")).toMatch(/^[a-zA-Z0-9]{9}$/);
  expect(new Set(sent.filter((id) => !id.startsWith("="))).size).toBe(3);
  expect(withFittingCallIds([call("aB3xY9zQ1"), result("aB3xY9zQ1")], "nine-characters")).toEqual([
    call("aB3xY9zQ1"),
    result("aB3xY9zQ1"),
  ]);
});

test("12.16: an id is never cut inside a character, nor its twin, nor one that came in halves", () => {
  const long = `${"x".repeat(63)}\u{1f600}y`;
  const sent = ids(withFittingCallIds([call(long), call(`${long}z`), call(`${"x".repeat(61)}\u{1f600}`)], "any"));
  const halves = ids(withFittingCallIds([call("a\ud83d", "a\ud83e"), result("a\ud83d"), result("a\ud83e")], "any"));
  for (const id of [...sent, ...halves]) expect([id, id.isWellFormed(), id.length <= 65]).toEqual([id, true, true]);
  expect(new Set(sent).size).toBe(3);
  expect([halves[2], halves[3]]).toEqual([`=${halves[0]}`, `=${halves[1]}`]);
  expect(halves[0]).not.toBe(halves[1]);
});
