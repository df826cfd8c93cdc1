import { expect, test } from "vitest";
import { didYouMean, nearest } from "./suggest.ts";

test("the nearest word within a third of its letters is named", () => {
  expect(nearest("modle", ["model", "mode"])).toBe("model");
  expect(didYouMean("sandbox_mod", ["model", "sandbox_mode"])).toBe('; did you mean "sandbox_mode"?');
  expect(didYouMean("xyz", ["model"])).toBe("");
});

test("S42: a word that is far too long is near to none, and costs nothing to compare", () => {
  const known = Array.from({ length: 50 }, (_, index) => `a_known_key_${index}`);
  expect(nearest("a".repeat(10_000_000), known)).toBeUndefined();
});
