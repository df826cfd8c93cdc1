import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import type { ProviderConfig } from "../providers/providers.ts";
import { startModelServer, type Fault } from "../testing/testing.ts";
import { collect, completedOf, HTTP_WIRES, testProvider } from "../testing/testing-requests.ts";

const SCRIPT = [
  {
    reasoning: "Thinking it over.",
    text: "Hello, this is the answer.",
    calls: [{ tool: "exec_command", args: { cmd: "ls -la /tmp" } }],
  },
];
/** For faults that only a time limit ends; a good answer on a busy machine stays within it. */
const SHORT: Partial<ProviderConfig> = {
  maxAttempts: 2,
  connectTimeoutMs: 2000,
  firstByteTimeoutMs: 1600,
  idleTimeoutMs: 1000,
  keepAliveTimeoutMs: 2000,
};
/** For faults that end by themselves: no limit is reached by what is only slow. */
const TWICE: Partial<ProviderConfig> = { maxAttempts: 2 };

const stall = (at: Extract<Fault, { kind: "stall" }>["at"]): Fault => ({ kind: "stall", at });
const cutAt = (at: Extract<Fault, { kind: "cut" }>["at"]): Fault => ({ kind: "cut", at });
const reset = (at: Extract<Fault, { kind: "reset" }>["at"]): Fault => ({ kind: "reset", at });

/** Faults that another try may fix: the first attempt fails, the second is whole. */
const PASSING: readonly (readonly [string, Fault, string])[] = [
  ["a stall before the headers", stall("before-headers"), "provider.stalled"],
  ["a stall after the headers", stall("after-headers"), "provider.stalled"],
  ["a stall inside a delta", stall("mid-delta"), "provider.stalled"],
  ["a stall inside tool arguments", stall("mid-args"), "provider.stalled"],
  ["a stall after the last delta", stall("after-last-delta"), "provider.stalled"],
  ["comments for ever", { kind: "comments", everyMs: 10 }, "provider.stalled"],
  ["one byte at a time, without end", { kind: "drip", everyMs: 40 }, "provider.stalled"],
  ["an empty answer", cutAt("after-headers"), "provider.cut"],
  ["a cut inside a delta", cutAt("mid-delta"), "provider.cut"],
  ["a cut inside tool arguments", cutAt("mid-args"), "provider.cut"],
  ["a cut after the last delta", cutAt("after-last-delta"), "provider.cut"],
  ["a reset before the headers", reset("before-headers"), "provider.unreachable"],
  ["a reset after the headers", reset("after-headers"), "provider.cut"],
  ["a reset inside a delta", reset("mid-delta"), "provider.cut"],
  ["status 408", { kind: "status", status: 408 }, "provider.stalled"],
  ["status 409", { kind: "status", status: 409 }, "provider.overloaded"],
  ["status 429", { kind: "status", status: 429 }, "provider.rate-limited"],
  ["status 500", { kind: "status", status: 500 }, "provider.overloaded"],
  ["status 502 with a page", { kind: "status", status: 502, body: "<html>bad gateway</html>" }, "provider.overloaded"],
  ["status 503", { kind: "status", status: 503 }, "provider.overloaded"],
  ["status 529", { kind: "status", status: 529 }, "provider.overloaded"],
];

/** Faults that end the request at once. */
const FINAL: readonly (readonly [string, Fault, string])[] = [
  ["bytes that are not UTF-8", { kind: "bad-utf8" }, "provider.malformed"],
  ["an event of 10 MB", { kind: "huge-event", bytes: 10_000_000 }, "provider.malformed"],
  [
    "a page with status 200",
    { kind: "body", body: "<!DOCTYPE html><p>Sign in", contentType: "text/html" },
    "provider.malformed",
  ],
  [
    "a document with status 200",
    { kind: "body", body: '{"id": 1}', contentType: "application/json" },
    "provider.malformed",
  ],
  [
    "an error with status 200",
    { kind: "body", body: '{"error":{"message":"bad field","type":"invalid_request_error"}}' },
    "provider.rejected",
  ],
  ["status 400", { kind: "status", status: 400 }, "provider.rejected"],
  ["status 401", { kind: "status", status: 401 }, "auth.rejected"],
  ["status 403", { kind: "status", status: 403 }, "auth.rejected"],
  ["status 404", { kind: "status", status: 404 }, "provider.rejected"],
  [
    "status 404 for the model",
    { kind: "status", status: 404, body: { error: { message: "The model `x` does not exist" } } },
    "model.unknown",
  ],
  ["status 407", { kind: "status", status: 407 }, "provider.rejected"],
  ["status 413", { kind: "status", status: 413 }, "provider.context-exceeded"],
  [
    "a context that is too long",
    { kind: "status", status: 400, body: { error: { code: "context_length_exceeded", message: "too long" } } },
    "provider.context-exceeded",
  ],
  [
    "an empty purse",
    { kind: "status", status: 429, body: { error: { code: "insufficient_quota", message: "pay first" } } },
    "provider.rate-limited",
  ],
  [
    "a redirect",
    { kind: "status", status: 307, headers: { location: "https://elsewhere.example/v1" } },
    "provider.rejected",
  ],
  [
    "Retry-After of an hour",
    { kind: "status", status: 429, headers: { "retry-after": "3600" } },
    "provider.rate-limited",
  ],
];

/** Oddities that are none of our business. */
const HARMLESS: readonly (readonly [string, Fault])[] = [
  ["events nobody knows", { kind: "unknown-events" }],
  ["mixed line ends", { kind: "line-ends" }],
  ["one byte in each packet", { kind: "pieces", bytes: 1 }],
  ["packets of seven bytes", { kind: "pieces", bytes: 7 }],
];

describe.each(HTTP_WIRES)("%s", (wire) => {
  test.concurrent.each(PASSING)("%s is tried again, and the cause is told", async (_, fault, code) => {
    await using server = await startModelServer({ script: SCRIPT, faults: [fault] });
    const outcome = await collect(testProvider(server, wire, code === "provider.stalled" ? SHORT : TWICE));
    expect(outcome.events.find((event) => event.type === "retrying")).toMatchObject({
      attempt: 1,
      maxAttempts: 2,
      cause: { code },
    });
    expect(completedOf(outcome).output.map((part) => part.kind)).toEqual(
      expect.arrayContaining(["reasoning", "text", "toolCall"]),
    );
    expect(server.requests).toHaveLength(2);
  });

  test.concurrent.each(
    PASSING.filter(([, fault]) => fault.kind === "status" || fault.kind === "cut" || fault.kind === "reset"),
  )("%s that stays ends the request with its code", async (_, fault, code) => {
    await using server = await startModelServer({ script: SCRIPT, faults: () => fault });
    const { error } = await collect(testProvider(server, wire, TWICE));
    expect(error).toMatchObject({
      code,
      details: { attempts: 2 },
      message: expect.stringMatching(/\(after 2 tries\); (try again later|check that it runs)/),
    });
    expect(server.requests).toHaveLength(2);
  });

  test.each(FINAL)("%s ends the request at once", async (_, fault, code) => {
    await using server = await startModelServer({ script: SCRIPT, faults: [fault] });
    const { error, events } = await collect(testProvider(server, wire, { maxAttempts: 5 }));
    expect(error).toMatchObject({ code });
    expect(events.some((event) => event.type === "retrying")).toBe(false);
    expect(server.requests).toHaveLength(1);
  });

  test.each(HARMLESS)("%s change nothing", async (_, fault) => {
    await using server = await startModelServer({ script: SCRIPT, faults: [fault, undefined] });
    const provider = testProvider(server, wire);
    const odd = completedOf(await collect(provider));
    expect(odd).toEqual(completedOf(await collect(provider)));
  });

  test("a malformed answer is quoted by its first 200 bytes, without the key", async () => {
    const body = `<html>test-key ${"x".repeat(500)}`;
    await using server = await startModelServer({ faults: [{ kind: "body", body }] });
    const { error } = await collect(testProvider(server, wire));
    expect(error?.details).toEqual({ firstBytes: `<html>[redacted] ${"x".repeat(185)}` });
  });

  test("a key that the provider repeats does not get into errors or events", async () => {
    const body = { error: { message: `key test-key is wrong, so is Bearer test-key ${"y".repeat(9000)}` } };
    const faults: Fault[] = [
      { kind: "status", status: 500, body, headers: { "x-request-id": "test-key" } },
      { kind: "status", status: 401, body },
    ];
    await using server = await startModelServer({ faults });
    const outcome = await collect(testProvider(server, wire));
    const { message, details, cause, stack } = outcome.error!;
    const all = JSON.stringify([outcome.events, message, details, String(cause), stack]);
    expect(all).toContain("[redacted]");
    expect(all).not.toContain("test-key");
    expect(message.length).toBeLessThan(2300);
  });
});

test("an answer without its end mark is whole once the model has said why it stopped", async () => {
  for (const wire of ["openai-chat", "anthropic"] as const) {
    await using server = await startModelServer({ script: SCRIPT, faults: [{ kind: "no-end-mark" }] });
    expect(completedOf(await collect(testProvider(server, wire)))).toMatchObject({ stopReason: "toolCalls" });
    expect(server.requests).toHaveLength(1);
  }
});

test.each(HTTP_WIRES.filter((wire) => wire !== "openai-responses"))(
  "%s: a line that is not JSON ends the request at once, for it may have held words",
  async (wire) => {
    await using server = await startModelServer({ script: SCRIPT, faults: [{ kind: "malformed" }] });
    const { error } = await collect(testProvider(server, wire));
    expect(error).toMatchObject({ code: "provider.malformed" });
    expect(server.requests).toHaveLength(1);
  },
);

test("an answer that never stops is ended by a cap on its size", async () => {
  const data = JSON.stringify({ choices: [{ delta: { role: "assistant", filler: "z".repeat(1_000_000) } }] });
  await using server = await startModelServer({ faults: [{ kind: "endless", data }] });
  const { error } = await collect(testProvider(server, "openai-chat"));
  expect(error).toMatchObject({ code: "provider.malformed", message: expect.stringContaining("64 MiB") });
});

test("a stall that stays ends the request after all tries", async () => {
  await using server = await startModelServer({ script: SCRIPT, faults: () => stall("mid-args") });
  const { error } = await collect(testProvider(server, "anthropic", SHORT));
  expect(error).toMatchObject({
    code: "provider.stalled",
    details: { attempts: 2, firstBytes: expect.stringContaining("message_start") },
  });
  expect(server.requests).toHaveLength(2);
});

test("pings do not count as an answer for longer than the limit", async () => {
  await using server = await startModelServer({ faults: () => ({ kind: "endless", data: '{"type":"ping"}' }) });
  const { error } = await collect(testProvider(server, "anthropic", SHORT));
  expect(error).toMatchObject({
    code: "provider.stalled",
    message: expect.stringContaining("only keep-alive messages for 2000 ms"),
  });
});

test("an error inside a stream is typed like one before it", async () => {
  const cases = [
    [
      "anthropic",
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
      "provider.overloaded",
    ],
    [
      "openai-responses",
      'data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}\n\n',
      "provider.rate-limited",
    ],
    [
      "openai-responses",
      'data: {"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}\n\n',
      "provider.context-exceeded",
    ],
    ["openai-responses", 'data: {"type":"error","code":"server_error","message":"oops"}\n\n', "provider.overloaded"],
    ["openai-chat", 'data: {"error":{"code":502,"message":"upstream died"},"choices":[]}\n\n', "provider.overloaded"],
    [
      "gemini",
      'data: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[{"retryDelay":"0.01s"}]}}\n\n',
      "provider.rate-limited",
    ],
    ["gemini", 'data: {"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}\n\n', "provider.malformed"],
  ] as const;
  for (const [wire, body, code] of cases) {
    await using server = await startModelServer({ faults: () => ({ kind: "body", body }) });
    const { error } = await collect(testProvider(server, wire, { maxAttempts: 1 }));
    expect([wire, error?.code]).toEqual([wire, code]);
  }
});

test("a server that is not there ends in a typed error after all tries", async () => {
  const server = await startModelServer();
  const provider = testProvider(server, "openai-chat", { maxAttempts: 3 });
  await server[Symbol.asyncDispose]();
  const { error, events } = await collect(provider);
  expect(error).toMatchObject({ code: "provider.unreachable", details: { reason: "ECONNREFUSED", attempts: 3 } });
  expect(events.map((event) => event.type)).toEqual(["requested", "retrying", "requested", "retrying", "requested"]);
});

test("a host that cannot be found ends in a typed error", async () => {
  // A label this long never leaves the resolver of this machine.
  const host = `${"a".repeat(64)}.invalid`;
  await using server = await startModelServer();
  const { error } = await collect(
    testProvider(server, "openai-chat", { baseUrl: `http://${host}/v1`, maxAttempts: 1 }),
  );
  expect(error).toMatchObject({
    code: "provider.unreachable",
    message: expect.stringMatching(/invalid: the name cannot be resolved/),
    details: { reason: expect.stringMatching(/^E(?:NOTFOUND|AI_AGAIN)$/) },
  });
});

test("a server that never finishes the handshake is given up after the connect deadline", async () => {
  const mute = createServer((socket) => socket.on("error", () => socket.destroy()).resume()).listen(0, "127.0.0.1");
  await once(mute, "listening");
  const address = mute.address();
  const baseUrl = `https://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`;
  await using server = await startModelServer();
  const { error } = await collect(
    testProvider(server, "openai-chat", { baseUrl, connectTimeoutMs: 100, maxAttempts: 2 }),
  );
  expect(error).toMatchObject({
    code: "provider.unreachable",
    details: { reason: "no connection within 100 ms", attempts: 2 },
  });
  mute.close();
  await once(mute, "close");
});

test("a server that does not speak TLS ends in a typed error", async () => {
  await using server = await startModelServer();
  const baseUrl = server.url.replace("http:", "https:");
  const { error } = await collect(testProvider(server, "openai-chat", { baseUrl, maxAttempts: 1 }));
  expect(error?.code).toBe("provider.unreachable");
});

test("Retry-After is obeyed", async () => {
  const faults: Fault[] = [
    { kind: "status", status: 429, headers: { "retry-after": "0.05" } },
    { kind: "status", status: 503, headers: { "retry-after-ms": "30" } },
  ];
  await using server = await startModelServer({ script: [{ text: "hi" }], faults });
  const { events } = await collect(testProvider(server, "openai-responses", { retryBaseMs: 10_000 }));
  expect(events.flatMap((event) => (event.type === "retrying" ? [event.delayMs] : []))).toEqual([50, 30]);
});

test("a kept connection that breaks when it is used again is replaced without a pause", async () => {
  await using server = await startModelServer({
    script: [{ text: "hi" }],
    faults: [undefined, undefined, reset("before-headers")],
  });
  const provider = testProvider(server, "gemini", { retryBaseMs: 10_000 });
  for (const _ of [1, 2]) completedOf(await collect(provider));
  const outcome = await collect(provider);
  expect(outcome.events.find((event) => event.type === "retrying")).toMatchObject({
    delayMs: 0,
    cause: { code: "provider.unreachable" },
  });
  completedOf(outcome);
});

describe("both kinds of retries together", () => {
  const BOTH = { maxAttempts: 2, requestAttempts: 3 };

  test.each([
    ["status 500", { kind: "status", status: 500 }, 6],
    ["a reset before the headers", reset("before-headers"), 6],
    ["a cut inside a delta", cutAt("mid-delta"), 2],
    ["status 429", { kind: "status", status: 429 }, 2],
  ] as const)("%s that stays is met by as many requests as both allow", async (_, fault, requests) => {
    await using server = await startModelServer({ script: SCRIPT, faults: () => fault });
    const { error, events } = await collect(testProvider(server, "openai-responses", BOTH));
    expect(error).toMatchObject({ details: { attempts: requests } });
    expect(server.requests).toHaveLength(requests);
    // Every one of them is told.
    expect(events.filter((event) => event.type === "retrying")).toHaveLength(requests - 1);
  });

  test("a provider that has said nothing for ten minutes is not asked again", async () => {
    await using server = await startModelServer({ faults: () => ({ kind: "status", status: 500 }) });
    const provider = testProvider(server, "openai-responses", { maxAttempts: 6, requestAttempts: 5 });
    let minutes = 0;
    const { error } = await collect(provider, undefined, { now: () => (minutes += 4) * 60_000 });
    expect(error).toMatchObject({ code: "provider.overloaded", details: { attempts: 3 } });
    expect(server.requests).toHaveLength(3);
  });

  test("each retry says which kind it is", async () => {
    const refusal: Fault = { kind: "status", status: 503 };
    await using server = await startModelServer({
      script: SCRIPT,
      faults: [refusal, cutAt("mid-delta"), refusal, refusal],
    });
    const outcome = await collect(testProvider(server, "openai-responses", BOTH));
    completedOf(outcome);
    expect(outcome.events.flatMap((event) => (event.type === "retrying" ? [event] : []))).toMatchObject([
      { level: "request", attempt: 1, maxAttempts: 6, round: 1, maxRounds: 2 },
      { level: "stream", attempt: 2, round: 1 },
      { level: "request", attempt: 3, round: 2 },
      { level: "request", attempt: 4, round: 2 },
    ]);
  });
});
