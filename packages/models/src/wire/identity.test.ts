/** Servers leave indexes out, repeat them, or send an item only at the end: each call is one call, each message one message. */
import { describe, expect, test } from "vitest";
import type { HttpWire } from "../testing/testing.ts";
import { completedOf, decode } from "../testing/testing-requests.ts";

type Event = Readonly<Record<string, unknown>>;

/** Messages as their text, calls as name and arguments. */
async function said(wire: HttpWire, events: readonly unknown[]): Promise<readonly string[]> {
  const outcome = await decode(wire, ...events);
  const { output } = completedOf(outcome);
  const parts = outcome.events.filter((event) => event.type === "part");
  expect(parts.map(({ part }) => part).toSorted(byJson)).toEqual([...output].sort(byJson));
  for (const { index, part } of parts) {
    const deltas = outcome.events.flatMap((event) =>
      event.type === "text.delta" && event.index === index ? [event.delta] : [],
    );
    if (part.kind === "text") expect(deltas.join("")).toBe(part.text);
  }
  const ids = output.flatMap((part) => (part.kind === "toolCall" ? [part.callId] : []));
  expect(new Set(ids).size).toBe(ids.length);
  return output.map((part) => {
    if (part.kind === "text") return part.text;
    return part.kind === "toolCall" ? `${part.name}${part.input}` : `(${part.summary.join()})`;
  });
}

const byJson = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

const message = (text: string, id?: string): Event => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
  ...(id === undefined ? {} : { id }),
});
const call = (name: string, call_id?: string, fields: object = {}): Event => ({
  type: "function_call",
  name,
  arguments: "{}",
  ...(call_id === undefined ? {} : { call_id }),
  ...fields,
});
const added = (item: Event, fields: object = {}): Event => ({ type: "response.output_item.added", item, ...fields });
const done = (item: Event, fields: object = {}): Event => ({ type: "response.output_item.done", item, ...fields });
const delta = (text: string, fields: object = {}): Event => ({
  type: "response.output_text.delta",
  delta: text,
  ...fields,
});
const completed = (...output: readonly Event[]): Event => ({ type: "response.completed", response: { output } });

const PREAMBLE = message("Looking.", "msg_1");
const TWO_CALLS = [call("a", "c1", { id: "fc_1" }), call("b", "c2", { id: "fc_2" })] as const;
const [A, B] = TWO_CALLS;

/** The same answer as servers number it. */
const NUMBERED: readonly (readonly [name: string, fields: (at: number) => object])[] = [
  ["distinct", (output_index) => ({ output_index })],
  ["missing", () => ({})],
  ["the same for all", () => ({ output_index: 0 })],
  ["null", () => ({ output_index: null })],
];

describe.each(NUMBERED)("OpenAI Responses, indexes: %s", (_name, at) => {
  const stream = [
    added(message("", "msg_1"), at(0)),
    delta("Look", { item_id: "msg_1", ...at(0) }),
    delta("ing.", { item_id: "msg_1", ...at(0) }),
    done(PREAMBLE, at(0)),
    added(A, at(1)),
    done(A, at(1)),
    added(B, at(2)),
    done(B, at(2)),
  ];
  const whole = ["Looking.", "a{}", "b{}"];

  test.each([
    ["the end repeats all of it", [...stream, completed(PREAMBLE, A, B)], whole],
    ["the end repeats nothing", [...stream, completed()], whole],
    ["the end repeats it under other ids", [...stream, completed(message("Looking.", "x"), A, B)], whole],
    ["items that are not announced", stream.filter(({ type }) => type !== "response.output_item.added"), whole],
    ["no items but in the end", [completed(PREAMBLE, A, B)], whole],
    ["a preamble in deltas, calls in the end", [delta("Looking.", at(0)), completed(PREAMBLE, A, B)], whole],
    [
      "a preamble in deltas alone, a call as an item",
      [delta("Looking.", at(0)), done(A, at(1)), completed()],
      whole.slice(0, 2),
    ],
    [
      "an item that is sent twice",
      [...stream, done(B, at(2)), done(PREAMBLE, at(0)), completed(PREAMBLE, A, B)],
      whole,
    ],
    [
      "calls announced before the first is whole",
      [added(A, at(0)), added(B, at(1)), done(A, at(0)), done(B, at(1)), completed(A, B)],
      ["a{}", "b{}"],
    ],
    [
      "arguments written with other spaces in the end",
      [done(call("a", "c1", { arguments: '{"n":1}' }), at(0)), completed(call("a", "c1", { arguments: '{ "n": 1 }' }))],
      ['a{"n":1}'],
    ],
    [
      "two messages",
      [
        delta("One.", { item_id: "m1", ...at(0) }),
        done(message("One.", "m1"), at(0)),
        delta("Two.", { item_id: "m2", ...at(1) }),
        done(message("Two.", "m2"), at(1)),
        completed(message("One.", "m1"), message("Two.", "m2")),
      ],
      ["One.", "Two."],
    ],
    [
      "the same message twice, both meant",
      [
        done(message("Yes.", "m1"), at(0)),
        done(message("Yes.", "m2"), at(1)),
        completed(message("Yes.", "m1"), message("Yes.", "m2")),
      ],
      ["Yes.", "Yes."],
    ],
    [
      "items without ids",
      [
        delta("Hi", at(0)),
        done(message("Hi"), at(0)),
        done(call("a"), at(1)),
        done(call("b"), at(2)),
        completed(message("Hi"), call("a"), call("b")),
      ],
      ["Hi", "a{}", "b{}"],
    ],
    [
      "reasoning only in the end goes before what it led to",
      [done(A, at(1)), completed({ type: "reasoning", id: "rs", summary: [{ text: "why" }] }, A)],
      ["(why)", "a{}"],
    ],
  ])("%s", async (name, events, expected) => {
    const isEnded = events.some(({ type }) => type === "response.completed");
    expect(await said("openai-responses", isEnded ? events : [...events, completed()]), name).toEqual(expected);
  });

  test("a call that is announced and never comes is no success", async () => {
    const events = [delta("Looking.", at(0)), done(PREAMBLE, at(0)), added(A, at(1)), completed(PREAMBLE)];
    expect((await decode("openai-responses", ...events)).error).toMatchObject({ code: "provider.cut" });
  });
});

test("OpenAI Responses: an item with another id in every event is told by its index", async () => {
  const at = { output_index: 0 };
  const events = [
    added(message("", "a"), at),
    delta("Hel", { item_id: "b", ...at }),
    delta("lo", { item_id: "c", ...at }),
    done(message("Hello", "d"), at),
    added(call("f", "c1", { id: "e" }), { output_index: 1 }),
    done(call("f", "c1", { id: "f" }), { output_index: 1 }),
    completed(message("Hello", "g"), call("f", "c1", { id: "h" })),
  ];
  expect(await said("openai-responses", events)).toEqual(["Hello", "f{}"]);
});

test("OpenAI Responses: messages in deltas alone are told by their ids", async () => {
  const events = [delta("One.", { item_id: "m1" }), delta("Two.", { item_id: "m2" }), completed()];
  expect(await said("openai-responses", events)).toEqual(["One.", "Two."]);
});

const piece = (fields: object): Event => ({ choices: [{ delta: { tool_calls: [fields] } }] });
const begins = (name: string, id?: string, json = ""): object => ({
  function: { name, arguments: json },
  ...(id === undefined ? {} : { id }),
});
const goesOn = (json: string): object => ({ function: { arguments: json } });
const END: readonly unknown[] = [{ choices: [{ delta: {}, finish_reason: "tool_calls" }] }, "[DONE]"];

describe.each<readonly [string, (at: number) => object]>([
  ["distinct", (index) => ({ index })],
  ["missing", () => ({})],
  ["the same for all", () => ({ index: 0 })],
])("Chat Completions, indexes: %s", (_name, at) => {
  const first = '{"n":1}';
  const second = '{"n":2}';
  test.each([
    [
      "arguments in pieces without an id",
      [
        { ...begins("f", "a"), ...at(0) },
        { ...goesOn('{"n":'), ...at(0) },
        { ...goesOn("1}"), ...at(0) },
        { ...begins("f", "b"), ...at(1) },
        { ...goesOn('{"n":'), ...at(1) },
        { ...goesOn("2}"), ...at(1) },
      ],
      [`f${first}`, `f${second}`],
    ],
    [
      "whole calls without ids",
      [
        { ...begins("f", undefined, first), ...at(0) },
        { ...begins("f", undefined, second), ...at(1) },
      ],
      [`f${first}`, `f${second}`],
    ],
    [
      "calls of two tools without arguments or ids",
      [
        { ...begins("f"), ...at(0) },
        { ...begins("g"), ...at(1) },
      ],
      ["f{}", "g{}"],
    ],
    [
      "a call that is sent whole again",
      [
        { ...begins("f", "a", first), ...at(0) },
        { ...begins("f", "a", first), ...at(0) },
      ],
      [`f${first}`],
    ],
    [
      "the name in every piece",
      [
        { ...begins("f", "a", '{"n":'), ...at(0) },
        { ...begins("f", "a", "1}"), ...at(0) },
      ],
      [`f${first}`],
    ],
  ])("%s", async (name, pieces, expected) => {
    const events = [{ choices: [{ delta: { content: "Looking." } }] }, ...pieces.map(piece), ...END];
    expect(await said("openai-chat", events), name).toEqual(["Looking.", ...expected]);
  });
});

test("Chat Completions: several calls in one chunk are several calls, whatever they lack", async () => {
  const both = (...tool_calls: readonly object[]): Event => ({ choices: [{ delta: { tool_calls } }] });
  const events = [both(begins("f"), begins("f")), both(goesOn('{"n":1}'), goesOn('{"n":2}')), ...END];
  expect(await said("openai-chat", events)).toEqual(['f{"n":1}', 'f{"n":2}']);
});

describe.each<readonly [string, (at: number) => object]>([
  ["distinct", (index) => ({ index })],
  ["missing", () => ({})],
  ["the same for all", () => ({ index: 0 })],
])("Anthropic Messages, indexes: %s", (_name, at) => {
  const start = (index: number, content_block: object): Event => ({
    type: "content_block_start",
    content_block,
    ...at(index),
  });
  const grow = (index: number, fields: object): Event => ({
    type: "content_block_delta",
    delta: fields,
    ...at(index),
  });
  const stop = (index: number): Event => ({ type: "content_block_stop", ...at(index) });
  const use = (index: number, id: string): readonly Event[] => [
    start(index, { type: "tool_use", id, name: "f", input: {} }),
    grow(index, { type: "input_json_delta", partial_json: `{"n":${index}}` }),
    stop(index),
  ];
  const text = [start(0, { type: "text", text: "" }), grow(0, { type: "text_delta", text: "Looking." }), stop(0)];
  const end = [{ type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" }];

  test.each([
    ["a message and two calls", [...text, ...use(1, "a"), ...use(2, "b")]],
    ["a block that begins twice", [...text, ...use(1, "a").slice(0, 1), ...use(1, "a"), ...use(2, "b")]],
    ["a block that comes twice", [...text, ...use(1, "a"), ...use(1, "a"), ...use(2, "b")]],
    [
      "blocks that are never stopped",
      [...text, ...use(1, "a"), ...use(2, "b")].filter(({ type }) => type !== "content_block_stop"),
    ],
  ])("%s", async (name, events) => {
    expect(await said("anthropic", [...events, ...end]), name).toEqual(["Looking.", 'f{"n":1}', 'f{"n":2}']);
  });
});

test("Gemini: calls have no index; one with an id is one call however often it comes, one without is its own", async () => {
  const chunk = (...parts: readonly object[]): Event => ({ candidates: [{ content: { parts } }] });
  const named = { functionCall: { id: "a", name: "f", args: { n: 1 } } };
  const bare = { functionCall: { name: "g", args: {} } };
  const events = [
    chunk({ text: "Looking." }, named),
    chunk(named, bare),
    chunk(bare),
    { candidates: [{ finishReason: "STOP" }] },
  ];
  expect(await said("gemini", events)).toEqual(["Looking.", 'f{"n":1}', "g{}", "g{}"]);
});

test.each<readonly [HttpWire, readonly Event[]]>([
  ["openai-responses", Array.from({ length: 1100 }, (_, at) => done(message(`${at}`, `m${at}`)))],
  ["openai-chat", Array.from({ length: 1100 }, (_, at) => piece(begins("f", `c${at}`)))],
  [
    "anthropic",
    Array.from({ length: 1100 }, () => ({ type: "content_block_start", content_block: { type: "text", text: "x" } })),
  ],
])("%s: an answer of thousands of parts is refused", async (wire, events) => {
  expect((await decode(wire, ...events)).error).toMatchObject({ code: "provider.malformed" });
});
