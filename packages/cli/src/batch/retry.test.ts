import { NO_USAGE, type EventOf } from "@heddle/protocol";
import { expect, test } from "vitest";
import { limitsLeft, nextAttempt, type RetryState } from "./retry.ts";
import { sumUp } from "./run-summary.ts";

const ended = (code: string | undefined): EventOf<"turn.completed"> => ({
  type: "turn.completed",
  v: 1,
  turnId: "t",
  status: code === undefined ? "completed" : code === "turn.interrupted" ? "interrupted" : "failed",
  usage: NO_USAGE,
  durationMs: 1,
  ...(code === undefined ? {} : { failure: { code, message: "m" } }),
});

const state = (over: Partial<RetryState>): RetryState => ({
  terminal: ended("provider.overloaded"),
  hasSideEffects: false,
  attempt: 1,
  retries: 2,
  isOlderThread: false,
  ...over,
});

test("a passing failure before any effect is begun again, after an effect the thread continues", () => {
  expect(nextAttempt(state({}))).toEqual({ kind: "restart", delayMs: 1000, reason: "provider.overloaded" });
  expect(nextAttempt(state({ hasSideEffects: true }))).toMatchObject({ kind: "resume" });
});

test("a thread that was there before is never begun again", () => {
  expect(nextAttempt(state({ isOlderThread: true }))).toMatchObject({ kind: "resume" });
});

test("success, a stop and failures that waiting cannot clear end the run", () => {
  for (const code of [
    undefined,
    "turn.interrupted",
    "provider.rejected",
    "auth.rejected",
    "limit.reached",
    "internal",
  ]) {
    expect(nextAttempt(state({ terminal: ended(code) }))).toEqual({ kind: "none" });
  }
  expect(nextAttempt(state({ terminal: undefined }))).toEqual({ kind: "none" });
});

test("there are as many retries as were asked for, each after a longer pause, up to half a minute", () => {
  expect(nextAttempt(state({ retries: 0 }))).toEqual({ kind: "none" });
  expect(nextAttempt(state({ attempt: 2 }))).toMatchObject({ delayMs: 2000 });
  expect(nextAttempt(state({ attempt: 3 }))).toEqual({ kind: "none" });
  expect(nextAttempt(state({ attempt: 20, retries: 20 }))).toMatchObject({ delayMs: 30_000 });
});

test("the limits of a run are shared by its attempts, and none is left when one is used up", () => {
  const spent = sumUp();
  spent.add({
    type: "model.requested",
    v: 1,
    turnId: "t",
    requestId: "r",
    provider: "p",
    model: "m",
    requestBytes: 1,
  });
  spent.add({
    type: "model.responded",
    v: 1,
    turnId: "t",
    requestId: "r",
    output: [],
    stopReason: "end",
    usage: { ...NO_USAGE, inputTokens: 60, outputTokens: 10 },
    costUsd: 0.25,
  });
  expect(limitsLeft({ maxRequests: 3, maxTokens: 100, maxCostUsd: 1 }, spent.now)).toEqual({
    maxRequests: 2,
    maxTokens: 30,
    maxCostUsd: 0.75,
  });
  expect(limitsLeft({ maxRequests: 1 }, spent.now)).toBeUndefined();
  expect(limitsLeft({ maxTokens: 70 }, spent.now)).toBeUndefined();
  expect(limitsLeft({ maxCostUsd: 0.25 }, spent.now)).toBeUndefined();
  expect(limitsLeft({}, spent.now)).toEqual({});
});
