/** Answers as single services send them: what is said arrives whole, and a failure never looks like success. */
import type { ModelOutputPart } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { startModelServer, type HttpWire } from "../testing.ts";
import { collect, completedOf, sampleRequest, testProvider, type Outcome } from "../testing-requests.ts";

async function decode(wire: HttpWire, ...events: readonly unknown[]): Promise<Outcome> {
  const body = events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");
  await using server = await startModelServer({ faults: () => ({ kind: "body", body }) });
  return await collect(testProvider(server, wire, { maxAttempts: 1 }));
}

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
