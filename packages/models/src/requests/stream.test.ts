import { machine, platform, release } from "node:os";
import { describe, expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, HTTP_WIRES, sampleRequest, testProvider, typesOf } from "../testing/testing-requests.ts";
import { resolveProvider } from "../providers/providers.ts";
import { streamModel, type ModelInput, type ModelRequest } from "./stream.ts";
import type { ModelOutputPart } from "@heddle/protocol";

const USAGE = {
  inputTokens: 1000,
  cachedInputTokens: 600,
  cacheWriteInputTokens: 0,
  outputTokens: 80,
  reasoningOutputTokens: 30,
};
const STEP = {
  reasoning: "The test calls a function that is missing.",
  text: "I will look — 世界 🌍.",
  calls: [
    { tool: "exec_command", args: { cmd: "ls -la" } },
    { tool: "apply_patch", args: "*** Begin Patch\n*** End Patch" },
  ],
  usage: USAGE,
};

const withoutOpaque = (parts: readonly ModelOutputPart[]): unknown[] =>
  parts.map((part) => ({ ...part, opaque: undefined }));

describe.each(HTTP_WIRES)("%s", (wire) => {
  test("a whole answer arrives as deltas, parts and one completed event with usage", async () => {
    await using server = await startModelServer({ script: [STEP] });
    const outcome = await collect(testProvider(server, wire));
    const done = completedOf(outcome);
    const reasoning =
      wire === "openai-chat"
        ? { kind: "reasoning", summary: [], text: STEP.reasoning }
        : { kind: "reasoning", summary: [STEP.reasoning] };
    expect(withoutOpaque(done.output).filter((part) => JSON.stringify(part) !== '{"kind":"text","text":""}')).toEqual([
      reasoning,
      { kind: "text", text: STEP.text },
      { kind: "toolCall", callId: "call_1_1", name: "exec_command", input: '{"cmd":"ls -la"}', shape: "json" },
      {
        kind: "toolCall",
        callId: "call_1_2",
        name: "apply_patch",
        input: "*** Begin Patch\n*** End Patch",
        shape: "freeform",
      },
    ]);
    expect({ stopReason: done.stopReason, usage: done.usage }).toEqual({ stopReason: "toolCalls", usage: USAGE });
    expect(done).not.toHaveProperty("costUsd");
    expect(typesOf(outcome)).toEqual(
      expect.arrayContaining(["requested", "reasoning.delta", "text.delta", "part", "completed"]),
    );
  });

  test("the first sign of a call is told once, before the call is whole; an answer without calls tells nothing", async () => {
    await using server = await startModelServer({ script: [STEP, { text: "Done." }], deltaChars: 3 });
    const provider = testProvider(server, wire);
    const told: string[] = [];
    const progress = { sent: () => undefined, calling: () => void told.push("began"), received: () => undefined };
    for await (const event of streamModel(provider, sampleRequest(), {
      signal: new AbortController().signal,
      progress,
    })) {
      if (event.type === "part" && event.part.kind === "toolCall") told.push(event.part.name);
      if (event.type === "completed") told.push("completed");
    }
    expect(told).toEqual(["began", "exec_command", "apply_patch", "completed"]);
    const answered: ModelInput = { kind: "assistant", parts: [{ kind: "text", text: "one" }] };
    const next = { ...sampleRequest(), input: [...sampleRequest().input, answered] };
    for await (const _ of streamModel(provider, next, { signal: new AbortController().signal, progress })) continue;
    expect(told).toHaveLength(4);
  });

  test("the deltas of a part concatenate to its text", async () => {
    await using server = await startModelServer({ script: [STEP], deltaChars: 3 });
    const { events } = await collect(testProvider(server, wire));
    const text = events.flatMap((event) => (event.type === "text.delta" ? [event] : []));
    const thoughts = events.flatMap((event) => (event.type === "reasoning.delta" ? [event] : []));
    expect(text.length).toBeGreaterThan(3);
    expect(text.map((event) => event.delta).join("")).toBe(STEP.text);
    expect(thoughts.map((event) => event.delta).join("")).toBe(STEP.reasoning);
    const part = events.find((event) => event.type === "part" && event.index === text[0]?.index);
    expect(part).toMatchObject({ part: { kind: "text", text: STEP.text } });
  });

  test("what the model made goes back to it, and the next step of the script is played", async () => {
    await using server = await startModelServer({ script: [STEP, { text: "Done." }] });
    const provider = testProvider(server, wire);
    const first = completedOf(await collect(provider));
    const second = completedOf(await collect(provider, conversation(first.output)));
    expect(second).toMatchObject({ stopReason: "end", output: [{ kind: "text", text: "Done." }] });
    const body = JSON.stringify(server.requests[1]?.body);
    for (const secret of SENT_BACK[wire]) expect(body).toContain(secret);
  });

  test("an answer cut off by the output limit is told apart from a finished one", async () => {
    await using server = await startModelServer({ faults: [{ kind: "body", body: LENGTH[wire] }] });
    expect(completedOf(await collect(testProvider(server, wire)))).toMatchObject({
      stopReason: "length",
      output: [{ kind: "text", text: "half" }],
    });
  });

  test("a refusal is told apart from an answer", async () => {
    await using server = await startModelServer({ faults: [{ kind: "body", body: REFUSAL[wire] }] });
    expect(completedOf(await collect(testProvider(server, wire)))).toMatchObject({ stopReason: "refusal" });
  });

  test("connections are used again", async () => {
    await using server = await startModelServer({ script: [{ text: "hi" }] });
    const provider = testProvider(server, wire);
    for (let round = 0; round < 10; round += 1) completedOf(await collect(provider));
    // An answer is complete before its last bytes are; the next request may then need a second connection.
    expect(server.openConnections).toBeLessThanOrEqual(2);
  });

  test("the key travels in a header and nowhere else", async () => {
    await using server = await startModelServer({ script: [{ text: "hi" }] });
    await collect(testProvider(server, wire, { query: { "api-version": "7" }, headers: { "X-Own": "1" } }));
    const request = server.requests[0];
    expect(request?.headers).toEqual({
      host: new URL(server.url).host,
      connection: "keep-alive",
      accept: "text/event-stream",
      "accept-encoding": "identity",
      "user-agent": "heddle",
      "content-type": "application/json",
      "content-length": String(request?.bytes),
      "x-own": "1",
      ...AUTH[wire],
    });
    expect(request?.path).toBe(PATH[wire]);
    expect(JSON.stringify(request?.body)).not.toContain("test-key");
  });
});

function conversation(output: readonly ModelOutputPart[]): ModelRequest {
  const results: ModelInput[] = output.flatMap((part) =>
    part.kind === "toolCall"
      ? [
          {
            kind: "toolResult" as const,
            callId: part.callId,
            name: part.name,
            shape: part.shape,
            isError: false,
            parts: [{ type: "text" as const, text: "ok" }],
          },
        ]
      : [],
  );
  const { input } = sampleRequest();
  return sampleRequest({ input: [...input, { kind: "assistant", parts: output }, ...results] });
}

const SENT_BACK = {
  "openai-responses": ['"encrypted_content":"sealed-1_0"', '"id":"msg_1_1"', '"type":"custom_tool_call_output"'],
  "openai-chat": ['"reasoning_content":"The test calls', '"tool_call_id":"call_1_2"'],
  anthropic: ['"signature":"signed-1-0-', '"tool_use_id":"call_1_1"'],
  gemini: [
    '"thoughtSignature":"signed-call_1_1"',
    '"thoughtSignature":"signed-1"',
    '"functionResponse":{"id":"call_1_1"',
  ],
};

const AUTH = {
  "openai-responses": { authorization: "Bearer test-key" },
  "openai-chat": { authorization: "Bearer test-key" },
  anthropic: { "x-api-key": "test-key", "anthropic-version": "2023-06-01" },
  gemini: { "x-goog-api-key": "test-key" },
};

const PATH = {
  "openai-responses": "/v1/responses?api-version=7",
  "openai-chat": "/v1/chat/completions?api-version=7",
  anthropic: "/v1/messages?api-version=7",
  gemini: "/v1beta/models/some-model:streamGenerateContent?alt=sse&api-version=7",
};

const sse = (...events: readonly unknown[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

const LENGTH = {
  "openai-responses": sse(
    { type: "response.output_text.delta", output_index: 0, delta: "half" },
    {
      type: "response.incomplete",
      response: {
        incomplete_details: { reason: "max_output_tokens" },
        output: [{ type: "message", content: [{ type: "output_text", text: "half" }] }],
      },
    },
  ),
  "openai-chat": sse({ choices: [{ delta: { content: "half" }, finish_reason: "length" }] }),
  anthropic: sse(
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "half" } },
    { type: "message_delta", delta: { stop_reason: "max_tokens" } },
    { type: "message_stop" },
  ),
  gemini: sse({ candidates: [{ content: { parts: [{ text: "half" }] }, finishReason: "MAX_TOKENS" }] }),
};

const REFUSAL = {
  "openai-responses": sse(
    { type: "response.refusal.delta", output_index: 0, delta: "No." },
    {
      type: "response.completed",
      response: { output: [{ type: "message", content: [{ type: "refusal", refusal: "No." }] }] },
    },
  ),
  "openai-chat": sse({ choices: [{ delta: {}, finish_reason: "content_filter" }] }),
  anthropic: sse({ type: "message_delta", delta: { stop_reason: "refusal" } }, { type: "message_stop" }),
  gemini: sse({ promptFeedback: { blockReason: "SAFETY" } }),
};

test("the provider is told who asks: the program that runs Heddle, before the client of its door", async () => {
  await using server = await startModelServer({ script: [{ text: "hi" }] });
  const config = server.provider("openai-responses");
  const asked = { ...sampleRequest(), caller: "Éditeur 2" };
  for (const [env, request] of [
    [{}, sampleRequest()],
    [{}, asked],
    [{ CODEX_INTERNAL_ORIGINATOR_OVERRIDE: "codex_sdk_ts" }, asked],
  ] as const) {
    completedOf(await collect(resolveProvider([config], "test", env), request));
  }
  const system = `0.166.0 (${platform()} ${release()}; ${machine()}) heddle`;
  expect(server.requests.map(({ headers }) => [headers["originator"], headers["user-agent"]])).toEqual([
    [undefined, "heddle"],
    ["_diteur 2", `_diteur 2/${system}`],
    ["codex_sdk_ts", `codex_sdk_ts/${system}`],
  ]);
});
