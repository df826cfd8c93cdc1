import { NO_USAGE } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { modelInfo, type InfoSource } from "./catalog.ts";
import { costOf } from "./price.ts";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, sampleRequest, testProvider } from "../testing/testing-requests.ts";

const OPENAI: InfoSource = { wire: "openai-responses", vendor: "openai" };
const ANTHROPIC: InfoSource = { wire: "anthropic", vendor: "anthropic" };
const GATEWAY: InfoSource = { wire: "openai-chat" };

describe("modelInfo", () => {
  test.each([
    [OPENAI, "gpt-6-sol", "openai", 1_050_000],
    [OPENAI, "gpt-5-2026-04-01", "openai", 400_000],
    [OPENAI, "o9-unheard-of", "openai", undefined],
    [ANTHROPIC, "claude-haiku-4-5-20251001", "anthropic", 200_000],
    [GATEWAY, "anthropic/claude-sonnet-4.5", "anthropic", 200_000],
    [GATEWAY, "google/gemini-2.5-pro:free", "gemini", 1_048_576],
    [GATEWAY, "qwen/qwen5-coder", "other", undefined],
    [GATEWAY, "constructor", "other", undefined],
    [{ wire: "anthropic" } as const, "kimi-k3", "anthropic", undefined],
    [{ wire: "scripted" } as const, "any", "other", undefined],
    [{ wire: "scripted", family: "openai" } as const, "any", "openai", undefined],
  ])("%j %s is of the family %s and reads %s tokens", (provider, model, family, contextTokens) => {
    const info = modelInfo(provider, model);
    expect([info.family, info.contextTokens]).toEqual([family, contextTokens]);
  });
});

describe("12.19: what the rows of the makers' own models say", () => {
  test.each([
    ["claude-fable-5-1", 10, 0.25, 50],
    ["claude-opus-5-5", 4, 0.2, 20],
    ["claude-sonnet-5-5", 2, 0.1, 10],
    ["claude-opus-5", 5, 0.5, 25],
  ])("%s reads its cache at its own price", (model, input, cached, output) => {
    expect(modelInfo(ANTHROPIC, model).price).toEqual({ input, cached, output, cacheWrite: input * 1.25 });
  });

  test.each([
    [OPENAI, "gpt-5.5", 272_000],
    [OPENAI, "gpt-6.1-terra", 272_000],
    [OPENAI, "gpt-5.6-luna", 272_000],
    // A prompt may be no longer, though the window is.
    [OPENAI, "gpt-5", 272_000],
    [ANTHROPIC, "claude-haiku-5-5", 100_000],
    [ANTHROPIC, "claude-opus-5", 1_000_000],
    [{ wire: "gemini", vendor: "gemini" } as const, "gemini-2.5-pro", 200_000],
    // The maker's step holds where somebody else serves the model, too.
    [GATEWAY, "openai/gpt-5.5", 272_000],
  ])("%j %s is used up to %s tokens, where its price steps up", (provider, model, windowTokens) => {
    expect(modelInfo(provider, model).windowTokens).toBe(windowTokens);
  });

  test("exactly at the step the low price holds, and the whole prompt is dearer behind it", () => {
    const info = modelInfo(OPENAI, "gpt-6.1-sol");
    const cost = (more: object) => costOf({ ...NO_USAGE, outputTokens: 1000, ...more }, info);
    expect(cost({ inputTokens: 272_000 })).toBeCloseTo(0.272 * 2 + 0.01, 10);
    expect(cost({ inputTokens: 272_001 })).toBeCloseTo(0.272001 * 4 + 0.015, 10);
    const cached = { inputTokens: 300_000, cachedInputTokens: 200_000, cacheWriteInputTokens: 50_000 };
    expect(cost(cached)).toBeCloseTo(0.05 * 4 + 0.2 * 0.2 + 0.05 * 5 + 0.015, 10);
  });
});

describe("costOf", () => {
  const usage = {
    ...NO_USAGE,
    inputTokens: 100_000,
    cachedInputTokens: 60_000,
    outputTokens: 10_000,
    reasoningOutputTokens: 4000,
  };

  test("cached, written and fresh input each have their price; reasoning is output", () => {
    expect(costOf(usage, modelInfo(OPENAI, "gpt-6-sol"))).toBeCloseTo(0.04 * 2 + 0.06 * 0.2 + 0.01 * 10, 10);
    const written = { ...usage, cacheWriteInputTokens: 30_000 };
    expect(costOf(written, modelInfo(ANTHROPIC, "claude-opus-5-5"))).toBeCloseTo(
      0.01 * 4 + 0.06 * 0.2 + 0.03 * 5 + 0.01 * 20,
      10,
    );
  });

  test("a long prompt is charged at its own rates", () => {
    const long = { ...NO_USAGE, inputTokens: 300_000, outputTokens: 1000 };
    expect(costOf(long, modelInfo(OPENAI, "gpt-6-sol"))).toBeCloseTo(0.3 * 4 + 0.001 * 15, 10);
  });

  test("14: a price of the owner's own counts before that of a list, and where there is none", () => {
    const prices = { "gpt-6-sol": { input: 1, output: 2, cached: 1 }, mine: { input: 3, output: 4, cached: 3 } };
    const million = { ...NO_USAGE, inputTokens: 1_000_000, outputTokens: 1_000_000, cachedInputTokens: 500_000 };
    expect(costOf(million, modelInfo({ ...OPENAI, prices }, "gpt-6-sol"))).toBe(3);
    expect(costOf(million, modelInfo({ ...GATEWAY, prices }, "mine"))).toBe(7);
    expect(costOf(million, modelInfo({ ...GATEWAY, prices }, "toString"))).toBeUndefined();
  });

  test("what is not known is not guessed", () => {
    expect(costOf(usage, modelInfo(OPENAI, "gpt-99"))).toBeUndefined();
    expect(costOf(usage, modelInfo(GATEWAY, "openai/gpt-6-sol"))).toBeUndefined();
    expect(costOf({ ...usage, cacheWriteInputTokens: 1 }, modelInfo(OPENAI, "gpt-5.5"))).toBeUndefined();
    const flash = modelInfo({ wire: "gemini", vendor: "gemini" }, "gemini-3.8-flash");
    expect(costOf(usage, flash, Date.UTC(2026, 11, 31, 23))).toBeGreaterThan(0);
    expect(costOf(usage, flash, Date.UTC(2027, 0, 1))).toBeUndefined();
  });

  test("a script costs nothing", () => {
    expect(costOf(usage, modelInfo({ wire: "scripted" }, "any"))).toBe(0);
  });
});

test("a completed answer carries its cost when the provider is the maker of the model", async () => {
  await using server = await startModelServer({
    script: [{ text: "hi", usage: { inputTokens: 1_000_000, cachedInputTokens: 0, outputTokens: 0 } }],
  });
  const request = sampleRequest({ model: "claude-sonnet-5" });
  expect(completedOf(await collect(testProvider(server, "anthropic", { vendor: "anthropic" }), request)).costUsd).toBe(
    2,
  );
  expect(completedOf(await collect(testProvider(server, "anthropic"), request))).not.toHaveProperty("costUsd");
});

test("an answer without usage has no cost, though the price is known", async () => {
  const body = 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  await using server = await startModelServer({ faults: [{ kind: "body", body }] });
  const outcome = await collect(
    testProvider(server, "openai-chat", { vendor: "openai" }),
    sampleRequest({ model: "gpt-6-sol" }),
  );
  expect(completedOf(outcome)).toEqual({
    type: "completed",
    output: [{ kind: "text", text: "hi" }],
    stopReason: "end",
    usage: NO_USAGE,
  });
});
