import { expect, test } from "vitest";
import { age, bytes, cost, duration, money, tokens } from "./figures.ts";

test("what has no known price is never nothing", () => {
  expect(cost({ known: 0, isPartial: true })).toBe("price unknown");
  expect(cost({ known: 0.5, isPartial: true, unpriced: 3 })).toBe("$0.50 + 3 requests without a price");
  expect(cost({ known: 0, isPartial: false })).toBe("$0");
  expect(money(0.0029)).toBe("$0.0029");
});

test("times and amounts are as people read them", () => {
  expect([duration(408), duration(27_300), duration(90_000), duration(3_700_000)]).toEqual([
    "408 ms",
    "27.3 s",
    "1 min 30 s",
    "1 h 1 min",
  ]);
  expect([age(4_900), age(360_000), age(7_200_000)]).toEqual(["4 s", "6 min", "2 h"]);
  expect([tokens(15_600), tokens(153_000), tokens(4_700_000), bytes(184_000)]).toEqual([
    "15.6k",
    "153k",
    "4.7M",
    "184 kB",
  ]);
});
