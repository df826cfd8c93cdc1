import { describe, expect, test } from "vitest";
import { ProviderError } from "./failure.ts";
import { pause, planRetry, readRetryAfter } from "./retry.ts";

const busy = (retryAfterMs?: number): ProviderError =>
  new ProviderError("provider.overloaded", "busy", { isRetryable: true, retryAfterMs });
const plan = (error: unknown, attempt: number, random = 0): unknown =>
  planRetry(error, { attempt, round: attempt, maxRounds: 5, sent: 1, maxSent: 1, baseMs: 500, random: () => random });

describe("planRetry", () => {
  test("pauses double, with jitter between half and all of the pause, up to 30 s", () => {
    expect([1, 2, 3, 4].map((attempt) => plan(busy(), attempt, 0))).toMatchObject([
      { delayMs: 250 },
      { delayMs: 500 },
      { delayMs: 1000 },
      { delayMs: 2000 },
    ]);
    expect(plan(busy(), 1, 1)).toMatchObject({ kind: "retry", delayMs: 500 });
    const state = { attempt: 15, round: 15, maxRounds: 20, sent: 1, maxSent: 1, baseMs: 500, random: () => 1 };
    expect(planRetry(busy(), state)).toMatchObject({ kind: "retry", delayMs: 30_000 });
  });

  test("a request that met no answer is sent again within its round, then the next round begins", () => {
    const refused = new ProviderError("provider.overloaded", "busy", { isRetryable: true, isBeforeAnswer: true });
    const at = (round: number, sent: number): unknown =>
      planRetry(refused, { attempt: 4, round, maxRounds: 2, sent, maxSent: 3, baseMs: 500, random: () => 1 });
    expect(at(1, 1)).toMatchObject({ kind: "retry", level: "request", delayMs: 500 });
    expect(at(1, 2)).toMatchObject({ kind: "retry", level: "request", delayMs: 1000 });
    expect(at(1, 3)).toMatchObject({ kind: "retry", level: "stream", delayMs: 500 });
    expect(at(2, 3)).toMatchObject({ kind: "give-up", error: { details: { attempts: 4 } } });
    // An answer that broke off is asked for anew, whatever the round has left.
    const state = { attempt: 1, round: 1, maxRounds: 2, sent: 1, maxSent: 3, baseMs: 500, random: () => 1 };
    expect(planRetry(busy(), state)).toMatchObject({ level: "stream" });
  });

  test("the fifth failure is the last", () => {
    expect(plan(busy(), 5)).toMatchObject({
      kind: "give-up",
      error: { code: "provider.overloaded", details: { attempts: 5 } },
    });
  });

  test("a wait of five minutes is obeyed, a longer one ends the request and says so", () => {
    expect(plan(busy(300_000), 1)).toMatchObject({ kind: "retry", delayMs: 300_000 });
    expect(plan(busy(300_001), 1)).toMatchObject({
      kind: "give-up",
      error: {
        message: "busy; it asks to wait 301 s, more than the 300 s Heddle waits",
        details: { retryAfterMs: 300_001 },
      },
    });
  });

  test("a kept connection that was already closed is replaced at once", () => {
    const stale = new ProviderError("provider.unreachable", "ECONNRESET", { isRetryable: true, wasStaleSocket: true });
    expect(plan(stale, 1)).toMatchObject({ kind: "retry", delayMs: 0 });
  });

  test("what is not a provider's failure is not tried again", () => {
    expect(plan(new Error("a bug"), 1)).toMatchObject({
      kind: "give-up",
      error: { code: "internal", message: "a bug" },
    });
  });
});

test.each([
  [{ "retry-after": "2" }, 2000],
  [{ "retry-after": " 1.5 " }, 1500],
  [{ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 50_000],
  [{ "retry-after": "Thu, 01 Jan 1970 00:00:01 GMT" }, 0],
  [{ "retry-after-ms": "120", "retry-after": "9" }, 120],
  [{ "retry-after": ["3", "4"] }, 3000],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "-1" }, undefined],
  [{}, undefined],
])("Retry-After %j means %s ms", (headers, ms) => {
  expect(readRetryAfter(headers, 10_000)).toBe(ms);
});

test("a pause ends at once when it is aborted, before or during it", async () => {
  const during = new AbortController();
  const paused = pause(60_000, during.signal);
  during.abort(new Error("during"));
  await expect(paused).rejects.toThrow("during");
  await expect(pause(60_000, AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
});
