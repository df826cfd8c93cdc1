import { expect, test } from "vitest";
import { globOf, mayHoldMatches } from "./globs.ts";

test.each([
  ["src", "src/a.ts", true],
  ["src/", "src/deep/a.ts", true],
  ["src", "srcs/a.ts", false],
  ["src/a.ts", "src/a.ts", true],
  ["./src/a.ts", "src/a.ts", true],
  ["src/*.ts", "src/deep/a.ts", false],
  ["app/[id]/page.tsx", "app/[id]/page.tsx", true],
  ["app/[id]/page.tsx", "app/i/page.tsx", true],
  ["**", "a", true],
  [".", "a/b", true],
])("%s on %s: %s", (pattern, path, expected) => {
  expect(globOf(pattern).matches(path)).toBe(expected);
});

test.each([
  ["src/**", "src", true],
  ["src/**", "docs", false],
  ["src/a/*.ts", "src/b", false],
  ["**/*.ts", "node_modules", false],
  ["node_modules/x/**", "node_modules", true],
  ["node_modules/x/**", "node_modules/y", false],
  ["node_modules", "node_modules/y", true],
])("a walk for %s enters %s: %s", (pattern, folder, expected) => {
  expect(mayHoldMatches(globOf(pattern), folder, folder === "node_modules")).toBe(expected);
});
