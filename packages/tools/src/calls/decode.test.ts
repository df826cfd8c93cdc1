import { expect, test } from "vitest";
import { z } from "zod";
import { decodeInput, parseArguments } from "./decode.ts";

const json = (input: string) => decodeInput({ callId: "c", name: "t", input, shape: "json" }, "json");

test("a JSON object comes out as it is, and no text means no arguments", () => {
  expect(json('{"a":[1,{"b":"]}"}]}')).toEqual({ kind: "ok", value: { a: [1, { b: "]}" }] } });
  expect(json("")).toEqual({ kind: "ok", value: {} });
});

test.each([
  ["cut off", '{"a":', "not valid JSON"],
  ["not JSON", "rm -rf /", "not valid JSON"],
  ["1,000 levels deep", `${"[".repeat(1000)}${"]".repeat(1000)}`, "deeper than 64"],
  ["a million brackets", "[".repeat(1_000_000), "deeper than 64"],
  ["larger than the cap", JSON.stringify({ a: "x".repeat(3 * 1024 * 1024) }), "larger than"],
  ["wide characters beyond the cap", JSON.stringify({ a: "é".repeat(1_500_000) }), "larger than"],
  ["a key into the prototype", '{"a":{"__proto__":{"b":1}}}', "__proto__"],
  ["a prototype key in a list", '[[{"__proto__":1}]]', "__proto__"],
])("input that is %s is refused with the reason", (_name, input, message) => {
  expect(json(input)).toEqual({ kind: "bad", message: expect.stringContaining(message) });
});

test("brackets inside strings are no depth", () => {
  expect(json(JSON.stringify({ a: `${"[{".repeat(500)}\\"` }))).toMatchObject({ kind: "ok" });
});

test("a freeform tool takes bare text, or one string field where the wire has no bare text", () => {
  const call = { callId: "c", name: "apply_patch" };
  expect(decodeInput({ ...call, input: "{not json", shape: "freeform" }, "freeform")).toEqual({
    kind: "ok",
    value: "{not json",
  });
  expect(decodeInput({ ...call, input: '{"input":"x"}', shape: "json" }, "freeform")).toEqual({
    kind: "ok",
    value: "x",
  });
  expect(decodeInput({ ...call, input: "*** Begin Patch", shape: "json" }, "freeform")).toEqual({
    kind: "ok",
    value: "*** Begin Patch",
  });
  expect(decodeInput({ ...call, input: '{"input":"x', shape: "json" }, "freeform")).toMatchObject({ kind: "bad" });
  expect(decodeInput({ ...call, input: '{"text":1}', shape: "json" }, "freeform")).toMatchObject({ kind: "bad" });
  expect(decodeInput({ ...call, input: "text", shape: "freeform" }, "json")).toMatchObject({ kind: "bad" });
});

test("a value that does not fit names each field", () => {
  const schema = z.object({ cmd: z.string(), plan: z.array(z.object({ step: z.string() })) });
  expect(parseArguments(schema, { cmd: 5, plan: [{ step: "a" }, {}] })).toEqual({
    kind: "bad",
    message: expect.stringMatching(/cmd: .*string.*; plan\.1\.step: /),
  });
});
