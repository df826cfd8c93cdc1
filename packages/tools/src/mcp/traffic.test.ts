import { expect, test } from "vitest";
import { createTrafficRule } from "./traffic.ts";

test("a thousand notifications a second pass, more are dropped, and the next second starts afresh", () => {
  let now = 0;
  const judge = createTrafficRule(() => now);
  const verdicts = Array.from({ length: 1500 }, () => judge());
  expect(verdicts.filter((verdict) => verdict === "pass")).toHaveLength(1000);
  expect(verdicts.at(-1)).toBe("drop");
  now = 1000;
  expect(judge()).toBe("pass");
});

test("who goes on for long floods", () => {
  const judge = createTrafficRule(() => 0);
  let count = 0;
  while (judge() !== "flood" && count < 1_000_000) count += 1;
  expect(count).toBe(21_000);
});
