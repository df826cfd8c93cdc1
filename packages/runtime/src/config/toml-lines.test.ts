import { expect, test } from "vitest";
import { keyAndValue } from "./toml-lines.ts";

test("12.11: a long word without a value is looked at once", () => {
  expect(keyAndValue("a".repeat(100_000))).toBeUndefined();
  expect(keyAndValue(`${'"a".'.repeat(20_000)}!`)).toBeUndefined();
  expect(keyAndValue('a . "b.c" = 1')).toMatchObject({ key: ["a", "b.c"] });
});
