/** What single providers answer, word for word, and what it means. */
import { describe, expect, test } from "vitest";
import { startModelServer, type Fault, type HttpWire } from "../testing/testing.ts";
import { collect, completedOf, sampleRequest, testProvider } from "../testing/testing-requests.ts";

const status = (code: number, body: unknown): Fault => ({ kind: "status", status: code, body });

function quota(quotaId: string, retryDelay: string): unknown {
  return {
    error: {
      code: 429,
      message: "You exceeded your current quota, please check your plan and billing details. Please retry in 0.02s.",
      status: "RESOURCE_EXHAUSTED",
      details: [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay },
      ],
    },
  };
}

describe("12.18: a quota of Gemini", () => {
  test("of a minute is waited for as long as it says", async () => {
    const minute = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "0.02s");
    await using server = await startModelServer({ script: [{ text: "hi" }], faults: [status(429, minute)] });
    const { events } = await collect(testProvider(server, "gemini"));
    expect(events.find(({ type }) => type === "retrying")).toMatchObject({
      delayMs: 20,
      cause: { code: "provider.rate-limited" },
    });
    expect(events.at(-1)?.type).toBe("completed");
  });

  test("of a day is final", async () => {
    const day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "36s");
    await using server = await startModelServer({ faults: () => status(429, day) });
    expect((await collect(testProvider(server, "gemini"))).error?.code).toBe("provider.rate-limited");
    expect(server.requests).toHaveLength(1);
  });

  test("and money that is spent stays final, whatever the headers say", async () => {
    const spent = { error: { code: "insufficient_quota", message: "You exceeded your current quota." } };
    await using server = await startModelServer({
      faults: () => ({ kind: "status", status: 429, body: spent, headers: { "retry-after": "0" } }),
    });
    expect((await collect(testProvider(server, "openai-responses"))).error?.code).toBe("provider.rate-limited");
    expect(server.requests).toHaveLength(1);
  });
});

test.each<[string, HttpWire, number, unknown]>([
  [
    "Anthropic",
    "anthropic",
    404,
    { type: "error", error: { type: "not_found_error", message: "model: claude-nothing" } },
  ],
  ["OpenRouter", "openai-chat", 400, { error: { message: "acme/nothing is not a valid model ID", code: 400 } }],
  [
    "DeepSeek",
    "openai-chat",
    400,
    { error: { message: "Model Not Exist", type: "invalid_request_error", code: "invalid_request_error" } },
  ],
  [
    "Moonshot",
    "openai-chat",
    404,
    { error: { message: "Not found the model nothing or Permission denied", type: "resource_not_found_error" } },
  ],
])("12.18: a model that %s does not know is model.unknown", async (_name, wire, code, body) => {
  await using server = await startModelServer({ faults: () => status(code, body) });
  expect((await collect(testProvider(server, wire))).error?.code).toBe("model.unknown");
  expect(server.requests).toHaveLength(1);
});

test("12.18: a path that Anthropic does not know is not a model", async () => {
  const body = { type: "error", error: { type: "not_found_error", message: "Not found" } };
  await using server = await startModelServer({ faults: () => status(404, body) });
  expect((await collect(testProvider(server, "anthropic"))).error?.code).toBe("provider.rejected");
});

describe("12.18: a call that Groq could not read", () => {
  const failed = {
    error: {
      message: "Failed to call a function. Please adjust your prompt.",
      type: "invalid_request_error",
      code: "tool_use_failed",
      failed_generation: "<function=bash>",
    },
  };
  test("is asked for again", async () => {
    await using server = await startModelServer({ script: [{ text: "hi" }], faults: [status(400, failed)] });
    const outcome = await collect(testProvider(server, "openai-chat"));
    expect(completedOf(outcome).stopReason).toBe("end");
    expect(outcome.events.find(({ type }) => type === "retrying")).toMatchObject({
      cause: { code: "provider.malformed" },
    });
  });

  test("as often as anything is, and no more", async () => {
    await using server = await startModelServer({ faults: () => status(400, failed) });
    const { error } = await collect(testProvider(server, "openai-chat", { maxAttempts: 3 }));
    expect(error?.code).toBe("provider.malformed");
    expect(server.requests).toHaveLength(3);
  });
});

describe("12.18: fields that a provider or model refuses are not sent", () => {
  async function body(
    wire: HttpWire,
    model: string,
    overrides: Parameters<typeof testProvider>[2] = {},
  ): Promise<unknown> {
    await using server = await startModelServer({ script: [{ text: "hi" }] });
    const provider = testProvider(server, wire, overrides);
    completedOf(await collect(provider, sampleRequest({ model, maxOutputTokens: 100, effort: "xhigh" })));
    return server.requests[0]?.body;
  }

  test("the ChatGPT login gets no limit of the output", async () => {
    await using server = await startModelServer({ script: [{ text: "a summary" }] });
    const { id: _, ...config } = server.provider("openai-responses");
    const { resolveProvider } = await import("../providers/providers.ts");
    const asLogin = { ...resolveProvider([{ ...config, id: "test" }], "test", {}), id: "openai-codex" };
    completedOf(await collect(asLogin, sampleRequest({ model: "gpt-5.5", maxOutputTokens: 100, tools: [] })));
    expect(server.requests[0]?.body).not.toHaveProperty("max_output_tokens");
    expect(await body("openai-responses", "gpt-5.5")).toHaveProperty("max_output_tokens", 100);
  });

  test.each([
    ["gpt-5.1", "max_completion_tokens"],
    ["o4-mini", "max_completion_tokens"],
    ["gpt-5.5", "max_completion_tokens"],
    ["gpt-4o", "max_tokens"],
    ["gpt-oss-120b", "max_tokens"],
    ["llama-3", "max_tokens"],
  ])("%s over Chat Completions is limited by %s", async (model, field) => {
    expect(await body("openai-chat", model)).toHaveProperty(field, 100);
  });

  test.each([
    ["gpt-4.1", undefined, undefined],
    ["gpt-4o", undefined, undefined],
    ["gpt-5", ["reasoning.encrypted_content"], "high"],
    ["gpt-5.1-codex-max", ["reasoning.encrypted_content"], "xhigh"],
    ["gpt-5.4", ["reasoning.encrypted_content"], "xhigh"],
    ["some-model", ["reasoning.encrypted_content"], "xhigh"],
  ])(
    "%s is asked for sealed reasoning only when it reasons, with an effort that it has",
    async (model, include, effort) => {
      const { include: asked, reasoning } = (await body("openai-responses", model)) as Record<string, unknown>;
      expect([asked, reasoning]).toEqual([include, effort === undefined ? undefined : { effort, summary: "auto" }]);
    },
  );
});

describe.each<HttpWire>(["openai-responses", "openai-chat", "anthropic", "gemini"])("14: over %s", (wire) => {
  test.each([
    [status(401, { error: { message: "no" } }), "auth.rejected", /heddle login \S+ \(heddle accounts/],
    [status(404, { error: { message: "model not found: x" } }), "model.unknown", /heddle models \S+ lists .* -m MODEL/],
    [
      status(429, { error: { code: "insufficient_quota", message: "spent" } }),
      "provider.rate-limited",
      /says that the quota is used up .* another provider with -m PROVIDER:MODEL/,
    ],
    [
      status(402, { error: { message: "Insufficient credits" } }),
      "provider.rejected",
      /says that the quota is used up .* another provider with -m PROVIDER:MODEL/,
    ],
    [
      status(400, { error: { code: "context_length_exceeded", message: "too long" } }),
      "provider.context-exceeded",
      /larger window with -m MODEL/,
    ],
  ])("a failure that no other try helps names the command that does: %j", async (fault, code, next) => {
    await using server = await startModelServer({ faults: () => fault });
    const { error } = await collect(testProvider(server, wire));
    expect(error).toMatchObject({ code, message: expect.stringMatching(next) });
  });
});
