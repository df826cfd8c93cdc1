import type { ModelOutputPart } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import type { ModelEvent } from "../requests/stream.ts";
import { startModelServer, type HttpWire } from "../testing/testing.ts";
import { collect, completedOf, decode, sampleRequest, testProvider } from "../testing/testing-requests.ts";

/** Reasoning goes back only with what it led to. */
const SAID = { kind: "text", text: "done" } as const;

/** What a client would send next, as the wire's own JSON. */
async function sendBack(wire: HttpWire, output: readonly ModelOutputPart[]): Promise<string> {
  await using server = await startModelServer({ script: [] });
  await collect(testProvider(server, wire), sampleRequest({ input: [{ kind: "assistant", parts: output }] }));
  return JSON.stringify(server.requests[0]?.body);
}

function deltas(events: readonly ModelEvent[]): unknown[] {
  const told: unknown[] = [];
  for (const event of events) {
    if (event.type === "text.delta") told.push(event.delta);
    if (event.type === "reasoning.delta") told.push([event.channel, event.section, event.delta]);
  }
  return told;
}

describe("an event of OpenAI Responses that cannot be read", () => {
  const TORN = '{"type": "response.output_text.delta", "delta": ';
  const message = (text: string): unknown => ({ type: "message", content: [{ type: "output_text", text }] });
  const delta = (text: string): unknown => ({ type: "response.output_text.delta", output_index: 0, delta: text });
  const done = (text: string): unknown => ({
    type: "response.output_item.done",
    output_index: 0,
    item: message(text),
  });
  const completed = (...output: readonly unknown[]): unknown => ({ type: "response.completed", response: { output } });

  test("is passed over and told when the answer is whole without it", async () => {
    const outcome = await decode(
      "openai-responses",
      delta("Hel"),
      TORN,
      TORN,
      delta("lo"),
      completed(message("Hello")),
    );
    expect(completedOf(outcome)).toMatchObject({
      output: [{ kind: "text", text: "Hello" }],
      skipped: { events: 2, firstBytes: TORN.trimEnd() },
    });
    expect(deltas(outcome.events)).toEqual(["Hel", "lo"]);
    const whole = await decode("openai-responses", delta("Hello"), completed(message("Hello")));
    expect(completedOf(whole)).not.toHaveProperty("skipped");
  });

  test("may be the end of an item, which the last event repeats", async () => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const outcome = await decode("openai-responses", delta("Hi"), done("Hi"), TORN, completed(message("Hi"), call));
    expect(completedOf(outcome).output).toMatchObject([{ text: "Hi" }, { kind: "toolCall", callId: "c" }]);
  });

  test.each([
    ["words were lost with it", [delta("He"), TORN, delta("o"), done("Hello"), completed(message("Hello"))]],
    ["words were lost, as only the last event shows", [delta("He"), TORN, delta("o"), completed(message("Hello"))]],
    ["the last event does not repeat the answer", [delta("Hi"), TORN, done("Hi"), completed()]],
    [
      "the last event repeats only a part",
      [
        delta("Hi"),
        done("Hi"),
        { type: "response.output_item.done", output_index: 1, item: message("more") },
        TORN,
        completed(message("Hi")),
      ],
    ],
    [
      "thoughts were lost with it",
      [
        { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "a" },
        TORN,
        { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "c" },
        completed({ type: "reasoning", summary: [{ type: "summary_text", text: "abc" }] }),
      ],
    ],
  ])("fails the answer when %s", async (_, events) => {
    const { error } = await decode("openai-responses", ...events);
    expect(error).toMatchObject({ code: "provider.malformed", details: { firstBytes: TORN.trimEnd() } });
  });

  test("does not stand for the end of an answer", async () => {
    const { error } = await decode("openai-responses", delta("Hello"), TORN);
    expect(error).toMatchObject({ code: "provider.cut" });
  });
});

describe("OpenAI Responses", () => {
  test("a server that sends no item events is understood by its last event", async () => {
    const output = [
      {
        type: "reasoning",
        summary: [
          { type: "summary_text", text: "one" },
          { type: "summary_text", text: "two" },
        ],
        encrypted_content: "x",
      },
      {
        type: "message",
        content: [
          { type: "output_text", text: "a" },
          { type: "output_text", text: "b" },
        ],
      },
      { type: "function_call", call_id: "c", name: "f", arguments: "" },
    ];
    const outcome = await decode("openai-responses", { type: "response.completed", response: { output } });
    expect(deltas(outcome.events)).toEqual([["summary", 0, "one"], ["summary", 1, "two"], "ab"]);
    expect(completedOf(outcome).output).toMatchObject([
      { kind: "reasoning", summary: ["one", "two"] },
      { kind: "text", text: "ab" },
      { kind: "toolCall", callId: "c", name: "f", input: "{}" },
    ]);
  });

  test("text that was only partly streamed is completed", async () => {
    const item = { type: "message", content: [{ type: "output_text", text: "whole text" }] };
    const outcome = await decode(
      "openai-responses",
      { type: "response.output_text.delta", output_index: 0, delta: "whole" },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { output: [item] } },
    );
    expect(deltas(outcome.events)).toEqual(["whole", " text"]);
    expect(completedOf(outcome).output).toHaveLength(1);
  });

  test("raw reasoning and items nobody knows are kept and sent back", async () => {
    const item = { type: "novelty", id: "n_1", content: [1, { deep: true }] };
    const outcome = await decode(
      "openai-responses",
      { type: "response.reasoning_text.delta", output_index: 0, content_index: 0, delta: "raw" },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { type: "reasoning", content: [{ type: "reasoning_text", text: "raw" }], encrypted_content: "sealed" },
      },
      { type: "response.output_item.done", output_index: 1, item },
      { type: "response.completed", response: {} },
    );
    const { output } = completedOf(outcome);
    expect(deltas(outcome.events)).toEqual([["text", 0, "raw"]]);
    expect(output).toMatchObject([
      { kind: "reasoning", text: "raw" },
      { kind: "reasoning", summary: [] },
    ]);
    const body = await sendBack("openai-responses", [...output, SAID]);
    expect(body).toContain(JSON.stringify(item));
    expect(body).toContain('"encrypted_content":"sealed"');
  });
});

describe("Chat Completions", () => {
  test("signed reasoning of a gateway is joined piece by piece and sent back beside a call", async () => {
    const piece = (fields: object): unknown => ({
      choices: [{ delta: { reasoning_details: [{ type: "reasoning.text", index: 0, ...fields }] } }],
    });
    const outcome = await decode(
      "openai-chat",
      piece({ text: "think", format: "x" }),
      piece({ text: "ing" }),
      piece({ signature: "signed" }),
      { choices: [{ delta: { reasoning: "thinking" } }] },
      {
        choices: [
          {
            delta: { tool_calls: [{ id: "c", function: { name: "f", arguments: "{}" } }] },
            finish_reason: "tool_calls",
          },
        ],
      },
      "[DONE]",
    );
    const { output } = completedOf(outcome);
    expect(output[0]).toMatchObject({ kind: "reasoning", text: "thinking" });
    const details = [{ type: "reasoning.text", index: 0, text: "thinking", format: "x", signature: "signed" }];
    expect(await sendBack("openai-chat", output)).toContain(`"reasoning_details":${JSON.stringify(details)}`);
  });

  test("calls that all carry the index 0 are told apart by their ids", async () => {
    const call = (id: string, json: string): unknown => ({
      choices: [{ delta: { tool_calls: [{ index: 0, id, function: { name: "f", arguments: json } }] } }],
    });
    const outcome = await decode("openai-chat", call("a", '{"n":'), call("a", "1}"), call("b", '{"n":2}'), {
      choices: [{ delta: {}, finish_reason: "stop" }],
    });
    expect(completedOf(outcome)).toMatchObject({
      stopReason: "toolCalls",
      output: [
        { callId: "a", input: '{"n":1}' },
        { callId: "b", input: '{"n":2}' },
      ],
    });
  });

  test("an end mark without a finish reason ends an answer that has words, and cuts one that has none", async () => {
    expect(
      completedOf(await decode("openai-chat", { choices: [{ delta: { content: "hi" } }] }, "[DONE]")).output,
    ).toHaveLength(1);
    expect((await decode("openai-chat", { choices: [{ delta: {} }] }, "[DONE]")).error?.code).toBe("provider.cut");
  });
});

describe("Anthropic Messages", () => {
  test("redacted thinking is kept and goes back unmodified, before the call it led to", async () => {
    const outcome = await decode(
      "anthropic",
      {
        type: "message_start",
        message: {
          usage: { input_tokens: 10, cache_read_input_tokens: 20, cache_creation_input_tokens: 30, output_tokens: 1 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "redacted_thinking", data: "sealed" } },
      { type: "content_block_stop", index: 0 },
      {
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
      },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 7, input_tokens: null } },
      { type: "message_stop" },
    );
    const done = completedOf(outcome);
    expect(done.output).toMatchObject([
      { kind: "reasoning", summary: [] },
      { callId: "t", input: '{"a":1}' },
    ]);
    expect(done.usage).toEqual({
      inputTokens: 60,
      cachedInputTokens: 20,
      cacheWriteInputTokens: 30,
      outputTokens: 7,
      reasoningOutputTokens: 0,
    });
    expect(await sendBack("anthropic", done.output)).toContain(
      '"content":[{"type":"redacted_thinking","data":"sealed"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]',
    );
  });

  test("a signature in pieces is one signature", async () => {
    const outcome = await decode(
      "anthropic",
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "sig" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "ned" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" },
    );
    const { output } = completedOf(outcome);
    expect(output).toMatchObject([{ kind: "reasoning", summary: [] }]);
    expect(await sendBack("anthropic", [...output, SAID])).toContain(
      '{"type":"thinking","thinking":"","signature":"signed"}',
    );
  });
});

describe("Gemini", () => {
  test("a signature stays on the piece that carried it", async () => {
    const chunk = (parts: unknown[], more: object = {}): unknown => ({ candidates: [{ content: { parts }, ...more }] });
    const outcome = await decode(
      "gemini",
      chunk([{ text: "Hel" }]),
      chunk([{ text: "lo" }]),
      chunk([{ text: "", thoughtSignature: "s1" }]),
      chunk([{ text: "!" }], { finishReason: "STOP" }),
    );
    const { output } = completedOf(outcome);
    expect(output).toMatchObject([{ kind: "text", text: "Hello!" }]);
    expect(await sendBack("gemini", output)).toContain(
      '"parts":[{"text":"Hello"},{"text":"","thoughtSignature":"s1"},{"text":"!"}]',
    );
  });

  test("tokens of thoughts count as output", async () => {
    const usageMetadata = {
      promptTokenCount: 9,
      cachedContentTokenCount: 4,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 6,
      toolUsePromptTokenCount: 1,
    };
    const outcome = await decode("gemini", {
      candidates: [{ content: { parts: [{ text: "x" }] }, finishReason: "STOP" }],
      usageMetadata,
    });
    expect(completedOf(outcome).usage).toEqual({
      inputTokens: 10,
      cachedInputTokens: 4,
      cacheWriteInputTokens: 0,
      outputTokens: 11,
      reasoningOutputTokens: 6,
    });
  });
});
