import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { BUILT_IN_PROVIDERS, resolveProvider, type ProviderConfig } from "./providers.ts";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, testProvider } from "../testing/testing-requests.ts";

const ENV = { OPENAI_API_KEY: "sk-secret-1234567890\n", GOOGLE_API_KEY: "AIza-secret" };

test("the built-in providers and their variables", () => {
  expect(BUILT_IN_PROVIDERS.map(({ id, wire, baseUrl, envKey }) => [id, wire, baseUrl, envKey])).toEqual([
    ["openai", "openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY"],
    ["anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"],
    ["gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta", ["GEMINI_API_KEY", "GOOGLE_API_KEY"]],
    ["openrouter", "openai-chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"],
    ["ollama", "openai-chat", "http://127.0.0.1:11434/v1", undefined],
    ["lmstudio", "openai-chat", "http://127.0.0.1:1234/v1", undefined],
    ["scripted", "scripted", undefined, undefined],
    ["openai-codex", "openai-responses", "https://chatgpt.com/backend-api/codex", undefined],
    ["copilot", "openai-chat", "https://api.githubcopilot.com", undefined],
    ["vertex", "gemini", undefined, undefined],
    ["vertex-anthropic", "anthropic", undefined, undefined],
    ["bedrock", "anthropic", undefined, "AWS_BEARER_TOKEN_BEDROCK"],
    ["azure", "openai-responses", undefined, "AZURE_OPENAI_API_KEY"],
  ]);
});

describe("keys", () => {
  test("a missing key names its variable", () => {
    expect(() => resolveProvider([], "openai", {})).toThrow(
      expect.objectContaining({
        code: "auth.missing",
        message:
          "OpenAI needs a key: set the environment variable OPENAI_API_KEY, or store one with: heddle login openai",
      }),
    );
    expect(() => resolveProvider([], "gemini", { GEMINI_API_KEY: " " })).toThrow(/GEMINI_API_KEY or GOOGLE_API_KEY/);
  });

  test("a key is trimmed and sent in the header of its wire", () => {
    expect(resolveProvider([], "openai", ENV).headers()).toEqual({ authorization: "Bearer sk-secret-1234567890" });
    expect(resolveProvider([], "gemini", ENV).headers()).toEqual({ "x-goog-api-key": "AIza-secret" });
    expect(resolveProvider([], "ollama", ENV).headers()).toEqual({});
  });

  test("a configured header takes the place of the wire's own", () => {
    const config: ProviderConfig = {
      id: "openai",
      headers: { Authorization: "Basic abc" },
      envHeaders: { "X-Org": "ORG", "X-No": "NONE" },
    };
    expect(resolveProvider([config], "openai", { ...ENV, ORG: "o1" }).headers()).toEqual({
      authorization: "Basic abc",
      "x-org": "o1",
    });
  });

  test("a resolved provider does not show its secrets", () => {
    const config: ProviderConfig = { id: "openai", headers: { "X-Auth-Token": "tok-987654" } };
    const provider = resolveProvider([config], "openai", ENV);
    expect(`${JSON.stringify(provider)} ${inspect(provider, { depth: 9 })}`).not.toMatch(/secret|987654/);
    expect(provider.redact("a sk-secret-1234567890 b tok-987654 c")).toBe("a [redacted] b [redacted] c");
  });

  test("a key with characters that no key has is refused without showing it", () => {
    expect(() => resolveProvider([], "openai", { OPENAI_API_KEY: "sk-a\r\nx: y" })).toThrow(
      expect.objectContaining({
        code: "config.invalid",
        message: "provider openai: key: the key in OPENAI_API_KEY has characters that are not allowed in a key",
      }),
    );
  });
});

describe("configuration", () => {
  test("an unknown provider is named, with those that exist", () => {
    expect(() => resolveProvider([{ id: "mine", wire: "gemini" }], "opnai", {})).toThrow(
      expect.objectContaining({
        code: "provider.unknown",
        message: expect.stringContaining("lmstudio, mine, ollama, openai"),
      }),
    );
    expect(() => resolveProvider([], "__proto__", {})).toThrow(expect.objectContaining({ code: "provider.unknown" }));
  });

  test.each([
    [{ id: "x" }, "wire: one of"],
    [{ id: "x", wire: "gemini" as const }, "base_url: it is needed"],
    [{ id: "x", wire: "gemini" as const, baseUrl: "nonsense" }, 'base_url: "nonsense" is not a URL'],
    [{ id: "x", wire: "gemini" as const, baseUrl: "ftp://x/" }, "is not http or https"],
    [
      { id: "x", wire: "gemini" as const, baseUrl: "http://me:hunter2@x/" },
      "base_url: it holds credentials; use http_headers or env_key",
    ],
    [
      { id: "x", wire: "gemini" as const, baseUrl: "http://x/", headers: { "a b": "c" } },
      "headers.a b: it is not a valid header",
    ],
    [
      { id: "x", wire: "gemini" as const, baseUrl: "http://x/", headers: { a: "c\nd" } },
      "headers.a: it is not a valid header",
    ],
  ])("%j is refused", (config, message) => {
    expect(() => resolveProvider([config], "x", {})).toThrow(
      expect.objectContaining({ code: "config.invalid", message: expect.stringContaining(message) }),
    );
  });

  test.each([
    [{ maxAttempts: 0 }, "maxAttempts: 0 is not a whole number from 1 to 101"],
    [{ maxAttempts: 102 }, "maxAttempts: 102 is not"],
    [{ requestAttempts: 0 }, "requestAttempts: 0 is not a whole number from 1 to 101"],
    [{ idleTimeoutMs: 1.5 }, "idleTimeoutMs: 1.5 is not"],
    [{ firstByteTimeoutMs: Number.POSITIVE_INFINITY }, "firstByteTimeoutMs: Infinity is not"],
  ])("limits like %j are refused", (limits, message) => {
    expect(() => resolveProvider([{ id: "ollama", ...limits }], "ollama", {})).toThrow(
      expect.objectContaining({ code: "config.invalid", message: expect.stringContaining(message) }),
    );
  });

  test("limits have defaults, and an entry changes only what it names", () => {
    const provider = resolveProvider([{ id: "openai", idleTimeoutMs: 5, baseUrl: undefined }], "openai", ENV);
    expect({ url: provider.baseUrl, ...provider.limits }).toEqual({
      url: "https://api.openai.com/v1",
      maxAttempts: 6,
      requestAttempts: 5,
      retryBaseMs: 200,
      connectTimeoutMs: 15_000,
      firstByteTimeoutMs: 120_000,
      idleTimeoutMs: 5,
      keepAliveTimeoutMs: 300_000,
    });
  });

  test("path and query of the base URL are kept", async () => {
    await using server = await startModelServer({ script: [{ text: "hi" }] });
    const baseUrl = `${server.url}/gate/way/v1/?tenant=a%20b`;
    completedOf(await collect(testProvider(server, "openai-chat", { baseUrl, query: { v: "2" } })));
    expect(server.requests[0]?.path).toBe("/gate/way/v1/chat/completions?tenant=a+b&v=2");
  });
});
