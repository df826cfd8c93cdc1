import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { deliverLine } from "../spec/propose-deliver.ts";
import { readSpec } from "../spec/read-spec.ts";
import { globList, globOf, literalGlob, mayHoldMatches } from "./globs.ts";

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

describe("13: a literal glob", () => {
  const names = [
    "pages/[slug].js",
    "!x.json",
    "a*b",
    "a?b",
    "{a,b}.js",
    "\\odd",
    "a\\*b",
    " a b ",
    "[!]",
    "#x: y",
    "it's",
    '"q"',
  ];

  test.each(names)("means %s and nothing else, read back from the line of a spec too", (name) => {
    const text = `name: a\nworkspace: .\ngoal: g\n${deliverLine([literalGlob(name)])}\n`;
    const { specs } = readSpec({ file: "task.yaml", text, folder: tmpdir() });
    const isTaken = globList(specs[0]?.deliver ?? []);
    const others = ["pages/s.js", "x.json", "axb", "aab", "a.js", "b.js", "odd", "b", "a b", `\\${name}`];
    expect([name, ...others].filter(isTaken)).toEqual([name]);
  });

  test("of a folder takes nothing in it, takes out what it names, and a plain name stays as it is", () => {
    expect(globList([literalGlob("strict", true)])("strict")).toBe(true);
    expect(globList([literalGlob("strict", true)])("strict/x")).toBe(false);
    expect(globList(["**", `!${literalGlob("[a]")}`])("[a]")).toBe(false);
    expect(globList(["**", `!${literalGlob("[a]")}`])("a")).toBe(true);
    expect(literalGlob("src/a.js")).toBe("src/a.js");
  });
});
