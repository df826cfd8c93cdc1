import type { ContestRow } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { resultsOf, wilsonInterval } from "./statistics.ts";

/** Known values of Wilson's interval without correction, to four places. */
test.each([
  [0, 1, 0, 0.7935],
  [1, 1, 0.2065, 1],
  [0, 10, 0, 0.2775],
  [10, 10, 0.7225, 1],
  [5, 10, 0.2366, 0.7634],
  [2, 4, 0.15, 0.85],
  [81, 263, 0.2553, 0.3662],
])("of %i of %i the interval is %f to %f", (successes, runs, low, high) => {
  const [from, to] = wilsonInterval(successes, runs);
  expect(from).toBeCloseTo(low, 4);
  expect(to).toBeCloseTo(high, 4);
});

function row(name: string, more: Partial<ContestRow>): ContestRow {
  const facts = { number: 1, name, taskId: "task_1", isPicked: false, why: "", isCostPartial: false };
  return { ...facts, state: "verified", isVerified: true, costUsd: 0.5, timeMs: 10, turns: 1, tokens: 5, ...more };
}

test("rates are of runs that came to rest; a cost that is not known makes the sum one of at least", () => {
  const { costUsd: _, ...unpriced } = row("b", { isCostPartial: true, state: "paused", isVerified: false });
  expect(resultsOf([row("a", {}), unpriced, row("a", { state: "running", isVerified: false }), row("b", {})])).toEqual([
    {
      name: "a",
      runs: 1,
      verified: 1,
      rate: 1,
      interval: wilsonInterval(1, 1),
      costUsd: 0.5,
      isCostPartial: false,
      timeMs: 10,
      turns: 1,
      tokens: 5,
      open: 1,
    },
    {
      name: "b",
      runs: 2,
      verified: 1,
      rate: 0.5,
      interval: wilsonInterval(1, 2),
      costUsd: 0.5,
      isCostPartial: true,
      timeMs: 20,
      turns: 2,
      tokens: 10,
      open: 0,
    },
  ]);
  expect(resultsOf([unpriced])[0]).not.toHaveProperty("costUsd");
  expect(resultsOf([row("c", { state: "pending", isVerified: false })])[0]).not.toHaveProperty("rate");
});
