import { BUILT_IN_PROVIDERS, resolveProvider } from "@heddle/models";
import { NO_USAGE, type EventOf, type TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { checkLimits, createMeter } from "./limits.ts";

const requested = (requestId: string): EventOf<"model.requested"> => ({
  type: "model.requested",
  v: 1,
  turnId: "turn",
  requestId,
  provider: "p",
  model: "m",
  requestBytes: 1,
});

const responded = (inputTokens: number, costUsd?: number): EventOf<"model.responded"> => ({
  type: "model.responded",
  v: 1,
  turnId: "turn",
  requestId: "r",
  output: [],
  stopReason: "end",
  usage: { ...NO_USAGE, inputTokens, outputTokens: 10 },
  ...(costUsd === undefined ? {} : { costUsd }),
});

test("the request after the last one allowed is refused, and another try of the same request is not", () => {
  const meter = createMeter({ maxRequests: 2 });
  expect(meter.before([requested("a")])).toBeUndefined();
  expect(meter.before([requested("a")])).toBeUndefined();
  expect(meter.before([requested("b")])).toBeUndefined();
  expect(meter.before([requested("b")])).toBeUndefined();
  expect(meter.before([requested("c")])).toMatchObject({
    code: "limit.reached",
    details: { limit: "turns", allowed: 2, used: 2 },
  });
});

test("tokens in and out count together: over the limit ends at the answer, at the limit before the next request", () => {
  const exact = createMeter({ maxTokens: 110 });
  expect(exact.before([requested("a")])).toBeUndefined();
  expect(exact.after([responded(100)])).toBeUndefined();
  expect(exact.before([requested("b")])).toMatchObject({ details: { limit: "tokens", allowed: 110, used: 110 } });

  const over = createMeter({ maxTokens: 109 });
  expect(over.after([responded(100)])).toMatchObject({ details: { limit: "tokens", allowed: 109, used: 110 } });
});

test("a cost limit counts dollars, and an answer of unknown cost reaches it", () => {
  const meter = createMeter({ maxCostUsd: 0.5 });
  expect(meter.after([responded(1, 0.3)])).toBeUndefined();
  expect(meter.after([responded(1, 0.3)])).toMatchObject({
    code: "limit.reached",
    details: { limit: "cost", allowed: 0.5, used: 0.6 },
  });
  expect(createMeter({ maxCostUsd: 0.5 }).after([responded(1)])).toMatchObject({
    code: "limit.reached",
    details: { limit: "cost", allowed: 0.5, isKnown: false },
  });
});

test("14.6: without a limit of its own a turn may use what it likes, and 200 requests, whoever runs it", () => {
  const meter = createMeter({});
  for (let index = 0; index < 200; index += 1) {
    expect(meter.before([requested(`r${index}`)])).toBeUndefined();
    expect(meter.after([responded(1_000_000)])).toBeUndefined();
  }
  const reached = meter.before([requested("r200")]);
  expect(reached).toMatchObject({ code: "limit.reached", message: "the model made 200 requests without finishing" });
  // Tasks take a limit that is named for one that they set themselves.
  expect(reached?.details).toEqual({});
});

test("a cost limit on a model without a known price is refused beforehand", () => {
  const settings = (model: string, maxCostUsd?: number): TurnSettings => ({
    provider: "openai",
    model,
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
    ...(maxCostUsd === undefined ? {} : { limits: { maxCostUsd } }),
  });
  const openai = resolveProvider(BUILT_IN_PROVIDERS, "openai", { OPENAI_API_KEY: "k" });
  expect(() => checkLimits(openai, settings("gpt-5.5", 1))).not.toThrow();
  expect(() => checkLimits(openai, settings("gpt-unheard-of"))).not.toThrow();
  expect(() => checkLimits(openai, settings("gpt-unheard-of", 1))).toThrow(
    expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining("gpt-unheard-of") }),
  );
});

test("what a child uses counts for its parent's turn, and the limit that is reached first ends it", () => {
  const parent = createMeter({ maxTokens: 200, maxRequests: 3 });
  const child = createMeter({}, parent);
  const grandchild = createMeter({}, child);
  expect(parent.before([requested("a")])).toBeUndefined();
  expect(child.before([requested("a")])).toBeUndefined();
  expect(grandchild.before([requested("b")])).toBeUndefined();
  expect(child.before([requested("a")])).toBeUndefined();
  expect(child.before([requested("c")])).toMatchObject({ details: { limit: "turns", allowed: 3, used: 3 } });
  expect(grandchild.after([responded(100)])).toBeUndefined();
  expect(child.after([responded(100)])).toMatchObject({ details: { limit: "tokens", allowed: 200, used: 220 } });
  expect(createMeter({}).before([requested("a")])).toBeUndefined();
});
