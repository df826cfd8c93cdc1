import { expect, test } from "vitest";
import { checksText, nearestLimit, pipsOf } from "./groups.ts";

const CHECKS = { all: 4, passed: 2, failed: 1, errors: 0, vacuous: 1, violations: 1, at: 5 };

test("a check is green only where the whole is verified; vacuous, failed, not run and violated look different", () => {
  expect(pipsOf({ state: "running", checks: CHECKS })).toEqual(["no", "pass", "vac", "open", "bad"]);
  expect(pipsOf({ state: "verified", checks: { ...CHECKS, failed: 0, violations: 0, passed: 4 } })).toEqual([
    "ok",
    "ok",
    "ok",
    "okvac",
  ]);
});

test("checks are said in words too", () => {
  const none = { all: 0, passed: 0, failed: 0, errors: 0, vacuous: 0, violations: 0 };
  expect(checksText({ checks: none })).toBe("no checks");
  expect(checksText({ checks: { ...none, all: 2 } })).toBe("not run");
  expect(checksText({ checks: { ...CHECKS, violations: 0 } })).toBe("2 of 4");
});

test("the limit that ends first is named", () => {
  const spent = { timeMs: 10, turns: 2, tokens: 90, costUsd: 0, isCostPartial: false, nudges: 0 };
  expect(nearestLimit({ spent, budget: { timeMs: 100, turns: 20, tokens: 100, onReached: "pause" } })).toEqual({
    name: "tokens",
    share: 0.9,
  });
});
