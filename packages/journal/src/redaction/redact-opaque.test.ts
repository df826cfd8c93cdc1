/** What is kept for a provider alone: sealed where it is encrypted or signed, and as open as the rest where it is not. */
import { canonical, NO_USAGE, type EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { createRedactor } from "./redact.ts";

const token = `ghp_${"Q7x".repeat(12)}`;

function redact(body: EventBody, secrets: readonly string[] = []): EventBody {
  return createRedactor(secrets).body(body, canonical(body));
}

test("S36: words and calls are as open in what a provider gets back as beside it", () => {
  const said = { id: "msg_1", content: [{ type: "output_text", text: `it is ${token}` }] };
  const called = { arguments: `{"k":"${token}"}`, args: { k: token }, thoughtSignature: `gAAAA/${token}/+=` };
  const body: EventBody = {
    type: "model.responded",
    v: 1,
    turnId: "t",
    requestId: "r",
    output: [
      { kind: "text", text: `it is ${token}`, opaque: { wire: "w", data: said } },
      { kind: "toolCall", callId: "c", name: "x", input: "{}", shape: "json", opaque: { wire: "w", data: [called] } },
    ],
    stopReason: "end",
    usage: NO_USAGE,
  };
  const redacted = JSON.stringify(redact(body));
  expect(redacted.split(token)).toHaveLength(2);
  expect(redacted).toContain(`"thoughtSignature":"gAAAA/${token}/+="`);
});

test("S36: reasoning in plain words, and what was searched for, is as open as beside it", () => {
  const blob = `gAAAA/${token}/+=`;
  const said = [{ type: "summary_text", text: `it is ${token}` }];
  const reasoning = { type: "reasoning", id: "rs_1", summary: said, content: said, encrypted_content: blob };
  const search = { id: "ws_1", type: "web_search_call", action: { type: "search", query: token, queries: [token] } };
  const signed = { type: "thinking", thinking: `it is ${token}`, signature: "s" };
  const body: EventBody = {
    type: "model.responded",
    v: 1,
    turnId: "t",
    requestId: "r",
    output: [
      { kind: "reasoning", summary: [token], text: token, opaque: { wire: "w", data: reasoning } },
      { kind: "reasoning", summary: [], search: { query: token }, opaque: { wire: "w", data: search } },
      { kind: "reasoning", summary: [token], opaque: { wire: "w", data: { reasoning_content: token } } },
      { kind: "reasoning", summary: [token], opaque: { wire: "w", data: signed } },
    ],
    stopReason: "end",
    usage: NO_USAGE,
  };
  const redacted = JSON.stringify(redact(body));
  // What is encrypted or signed keeps every byte.
  expect(redacted.split(token)).toHaveLength(3);
  expect(redacted).toContain(JSON.stringify(blob));
  expect(redacted).toContain(JSON.stringify(signed));
});

test("what only a provider understands keeps every byte, unless it holds a registered value", () => {
  const blob = `gAAAA/${token}/+=`;
  const body: EventBody = {
    type: "model.responded",
    v: 1,
    turnId: "t",
    requestId: "r",
    output: [
      {
        kind: "reasoning",
        summary: [`I saw ${token}`],
        opaque: { wire: "responses", data: { encrypted_content: blob } },
      },
      {
        kind: "toolCall",
        callId: "c",
        name: "x",
        input: `{"k":"${token}"}`,
        shape: "json",
        opaque: { wire: "gemini", data: blob },
      },
    ],
    stopReason: "end",
    usage: {
      inputTokens: 0,
      cachedInputTokens: 0,
      cacheWriteInputTokens: 0,
      outputTokens: 0,
      reasoningOutputTokens: 0,
    },
  };
  expect(redact(body)).toMatchObject({
    output: [
      { summary: ["I saw [redacted:github-token]"], opaque: { data: { encrypted_content: blob } } },
      { input: '{"k":"[redacted:github-token]"}', opaque: { data: blob } },
    ],
  });
  expect(JSON.stringify(redact(body, [token]))).not.toContain(token);
});
