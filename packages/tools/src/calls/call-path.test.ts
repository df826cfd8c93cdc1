import { expect, test } from "vitest";
import { absolutePath, isInside } from "./call-path.ts";

test("relative paths start at the folder of the call", () => {
  expect(absolutePath("a/./b", "/w")).toBe("/w/a/b");
  expect(absolutePath("/etc/hosts", "/w")).toBe("/etc/hosts");
  expect(absolutePath("../x", "/w")).toBe("/x");
});

test.each([
  "",
  "  ",
  "~",
  "~/.ssh/id_rsa",
  "~root/x",
  "file:///etc/passwd",
  "https://example.com/x",
  "a\0b",
  "a\\..\\b",
  "C:/Windows",
  "c:x",
  `a/${"b".repeat(5000)}`,
  "a\uD800",
])("%j is refused for its spelling", (path) => {
  expect(() => absolutePath(path, "/w")).toThrow(expect.objectContaining({ code: "path.invalid" }));
});

test("inside means the folder and what is below it, not what begins with its name", () => {
  expect(isInside("/w", "/w")).toBe(true);
  expect(isInside("/w/a/..b", "/w")).toBe(true);
  expect(isInside("/w/..a", "/w")).toBe(true);
  expect(isInside("/work", "/w")).toBe(false);
  expect(isInside("/", "/w")).toBe(false);
  expect(isInside("/anything", "/")).toBe(true);
});
