import { expect, test } from "vitest";
import { globMatcher } from "./glob-match.ts";

test.each([
  ["*.ts", "a.ts", true],
  ["*.ts", "src/a.ts", false],
  ["**/*.ts", "a.ts", true],
  ["**/*.ts", "src/deep/a.ts", true],
  ["src/**", "src/a/b", true],
  ["src/**/test/*.ts", "src/a/b/test/x.ts", true],
  ["src/**/test/*.ts", "src/test/x.ts", true],
  ["src/**/test/*.ts", "src/test/y/x.ts", false],
  ["./src/*.ts", "src/a.ts", true],
  ["*.{ts,tsx}", "a.tsx", true],
  ["{a,b/{c,d}}.txt", "b/d.txt", true],
  ["{a,b/{c,d}}.txt", "b/e.txt", false],
  ["file?.txt", "file1.txt", true],
  ["file?.txt", "file12.txt", false],
  ["[a-c]*.md", "bob.md", true],
  ["[!a-c]*.md", "bob.md", false],
  ["a[", "a[", true],
  ["(a+)+", "aaa", false],
  ["ü*", "über", true],
  ["?.md", "🎉.md", true],
])("%s on %s: %s", (pattern, path, expected) => {
  expect(globMatcher(pattern)(path)).toBe(expected);
});

test("a pattern made to be slow is quick", () => {
  const startedAt = performance.now();
  expect(globMatcher(`${"*a".repeat(200)}b`)("a".repeat(4000))).toBe(false);
  expect(globMatcher(`${"**/a/".repeat(100)}b`)("a/".repeat(1000))).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(1000);
});

test("braces that multiply are refused", () => {
  expect(() => globMatcher("{a,b}".repeat(10))).toThrow(/alternatives/);
});
