/** Answers as single services send them: what is said arrives whole, and a failure never looks like success. */
import type { ModelOutputPart } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";
import {
  collect,
  completedOf,
  decode,
  sampleRequest,
  testProvider,
  type Outcome,
} from "../testing/testing-requests.ts";

const delta = (fields: object, finish_reason: string | null = null): unknown => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
});

function textOf(output: readonly ModelOutputPart[]): string {
  return output.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

test("12.17: content in parts, as Mistral sends it, is read like bare content, and its thinking is no text", async () => {
  const outcome = await decode(
    "openai-chat",
    delta({ content: [{ type: "thinking", thinking: [{ type: "text", text: "twelve times twelve" }] }] }),
    delta({ content: [{ type: "text", text: "1" }] }),
    delta({ content: "44" }, "stop"),
    "[DONE]",
  );
  const { output } = completedOf(outcome);
  expect(textOf(output)).toBe("144");
  expect(output[0]).toMatchObject({ kind: "reasoning", text: "twelve times twelve" });
});

describe("12.17: an answer that the server broke off", () => {
  test.each(["error", "insufficient_system_resource", "network_error", "abort", "something new"])(
    "with %s is a failure that is tried again, never half an answer",
    async (reason) => {
      const outcome = await decode("openai-chat", delta({ content: "half an ans" }), delta({}, reason), "[DONE]");
      expect(outcome.error).toMatchObject({ code: "provider.cut", details: { finishReason: reason } });

      const broken = `data: ${JSON.stringify(delta({ content: "half" }, reason))}\n\ndata: [DONE]\n\n`;
      await using server = await startModelServer({
        script: [{ text: "whole" }],
        faults: [{ kind: "body", body: broken }],
      });
      expect(textOf(completedOf(await collect(testProvider(server, "openai-chat"))).output)).toBe("whole");
    },
  );

  test.each(["stop", "eos_token", "STOP"])("%s is not one", async (reason) => {
    expect(completedOf(await decode("openai-chat", delta({ content: "hi" }, reason))).stopReason).toBe("end");
  });
});

const said = (stop_reason: unknown): readonly unknown[] => [
  { type: "message_start", message: {} },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "half an ans" } },
  { type: "content_block_stop", index: 0 },
  ...(stop_reason === undefined ? [] : [{ type: "message_delta", delta: { stop_reason } }]),
  { type: "message_stop" },
];

describe("12.17: an answer of Anthropic Messages is whole only with a word that means an end", () => {
  test.each(["error", "something new", "constructor", "", null, undefined])("not %s", async (reason) => {
    const { error } = await decode("anthropic", ...said(reason));
    expect(error).toMatchObject({ code: "provider.cut" });
  });

  test.each([
    ["end_turn", "end"],
    ["stop_sequence", "end"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "refusal"],
    ["pause_turn", "pause"],
  ])("%s", async (reason, stopReason) => {
    expect(completedOf(await decode("anthropic", ...said(reason))).stopReason).toBe(stopReason);
  });

  test("what was broken off is asked for again", async () => {
    const body = said("something new")
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join("");
    await using server = await startModelServer({ script: [{ text: "whole" }], faults: [{ kind: "body", body }] });
    expect(textOf(completedOf(await collect(testProvider(server, "anthropic"))).output)).toBe("whole");
  });
});

describe("12.17: an answer of OpenAI Responses is whole only with a status that says so", () => {
  const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "half an ans" }] }];
  const ended = (fields: object, type = "response.completed"): Promise<Outcome> =>
    decode("openai-responses", { type, response: { output, ...fields } });

  test.each(["cancelled", "in_progress", "queued", "something new", ""])("not %s", async (status) => {
    for (const type of ["response.completed", "response.incomplete"])
      expect((await ended({ status }, type)).error).toMatchObject({ code: "provider.cut" });
  });

  test("failed is the failure that it names", async () => {
    const error = { code: "rate_limit_exceeded", message: "Slow down." };
    expect((await ended({ status: "failed", error })).error).toMatchObject({ code: "provider.rate-limited" });
    expect((await ended({ status: "failed", error: null })).error).toMatchObject({ code: "provider.overloaded" });
  });

  test("incomplete means what its own event means", async () => {
    const cutBy = (reason: string): object => ({ status: "incomplete", incomplete_details: { reason } });
    expect(completedOf(await ended(cutBy("max_output_tokens"))).stopReason).toBe("length");
    expect(completedOf(await ended(cutBy("content_filter"))).stopReason).toBe("refusal");
  });

  test.each([{ status: "completed" }, { status: null }, {}])("%j", async (fields) => {
    expect(completedOf(await ended(fields)).stopReason).toBe("end");
  });
});

test("12.17: an answer of Gemini that says no more than that its end is unspecified is cut", async () => {
  const half = (finishReason: string): unknown => ({
    candidates: [{ content: { parts: [{ text: "half" }] }, finishReason }],
  });
  expect((await decode("gemini", half("FINISH_REASON_UNSPECIFIED"))).error).toMatchObject({ code: "provider.cut" });
  const whole = await decode("gemini", half("FINISH_REASON_UNSPECIFIED"), half("STOP"));
  expect(completedOf(whole).stopReason).toBe("end");
});

describe("12.17: a refusal is told with its reason", () => {
  test("Chat Completions: the words of a refusal are kept, beside empty content too", async () => {
    const outcome = await decode(
      "openai-chat",
      delta({ content: "", refusal: "I cannot " }),
      delta({ content: "", refusal: "help with that." }),
      delta({}, "stop"),
      "[DONE]",
    );
    const { stopReason, explanation, output } = completedOf(outcome);
    expect([stopReason, explanation, textOf(output)]).toEqual([
      "refusal",
      "I cannot help with that.",
      "I cannot help with that.",
    ]);
  });

  test("OpenAI Responses", async () => {
    const item = { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "No, sorry." }] };
    const refused = { type: "response.completed", response: { output: [item] } };
    expect(completedOf(await decode("openai-responses", refused))).toMatchObject({
      stopReason: "refusal",
      explanation: "No, sorry.",
    });
    const filtered = {
      type: "response.incomplete",
      response: { output: [], incomplete_details: { reason: "content_filter" } },
    };
    expect(completedOf(await decode("openai-responses", filtered))).toMatchObject({
      stopReason: "refusal",
      explanation: "content_filter",
    });
  });

  test("Anthropic Messages", async () => {
    const stop_details = { type: "refusal", category: "cyber", explanation: "It asks for working malware." };
    const outcome = await decode(
      "anthropic",
      { type: "message_start", message: {} },
      { type: "message_delta", delta: { stop_reason: "refusal", stop_details } },
      { type: "message_stop" },
    );
    expect(completedOf(outcome)).toMatchObject({
      stopReason: "refusal",
      explanation: "cyber: It asks for working malware.",
    });
  });

  test("Gemini: of the prompt and of the answer", async () => {
    const blocked = { promptFeedback: { blockReason: "PROHIBITED_CONTENT", blockReasonMessage: "Not allowed." } };
    expect(completedOf(await decode("gemini", blocked))).toMatchObject({
      stopReason: "refusal",
      explanation: "PROHIBITED_CONTENT: Not allowed.",
    });
    const broken = { candidates: [{ finishReason: "RECITATION", finishMessage: "Too close to a source." }] };
    expect(completedOf(await decode("gemini", broken))).toMatchObject({
      stopReason: "refusal",
      explanation: "RECITATION: Too close to a source.",
    });
  });
});

test("12.17: what Google signs on its calls and texts over Chat Completions goes back in its place", async () => {
  const extra = (signature: string): object => ({ extra_content: { google: { thought_signature: signature } } });
  const call = { index: 0, id: "c1", type: "function", function: { name: "exec_command", arguments: '{"cmd":"ls"}' } };
  const outcome = await decode(
    "openai-chat",
    delta({ content: "looking", ...extra("on the text") }),
    delta({ tool_calls: [{ ...call, ...extra("on the call") }] }, "tool_calls"),
    "[DONE]",
  );
  const { output } = completedOf(outcome);
  await using server = await startModelServer({ script: [] });
  await collect(testProvider(server, "openai-chat"), sampleRequest({ input: [{ kind: "assistant", parts: output }] }));
  expect(server.requests[0]?.body).toMatchObject({
    messages: [
      { role: "system" },
      {
        role: "assistant",
        content: "looking",
        ...extra("on the text"),
        tool_calls: [{ id: "c1", ...extra("on the call") }],
      },
    ],
  });
});

describe("12.17: arguments", () => {
  const calling = (args: unknown): unknown =>
    delta({ tool_calls: [{ index: 0, id: "c", function: { name: "exec_command", arguments: args } }] }, "tool_calls");
  const item = (args: unknown): unknown => ({
    type: "response.completed",
    response: { output: [{ type: "function_call", call_id: "c", name: "exec_command", arguments: args }] },
  });
  test.each([
    ["null, as models write it for a tool without any", "null", "{}"],
    ["an object where the wire has text", { cmd: "ls" }, '{"cmd":"ls"}'],
    ["nothing", "", "{}"],
    ["what is not JSON stays as it was written", "{broken", "{broken"],
  ])("%s", async (_name, args, input) => {
    for (const outcome of [await decode("openai-chat", calling(args)), await decode("openai-responses", item(args))]) {
      expect(completedOf(outcome).output).toMatchObject([{ kind: "toolCall", input }]);
    }
  });
});
