import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { plantTree } from "./planted-tree.ts";
import { checkTestHabits } from "./test-habits.ts";

function findingsIn(source: string, path = "packages/agent/src/a.test.ts"): string[] {
  using tree = plantTree({ [path]: source });
  return checkTestHabits(tree.root).findings.map(({ at, text }) => `${at}: ${text}`);
}

test.each([
  [`vi.mock("./x.ts");`, "vi.mock"],
  [`vi.doMock("./x.ts");`, "vi.doMock"],
  [`vi.spyOn(journal, "append");`, "vi.spyOn"],
  [`test.only("x", () => {});`, "test.only"],
  [`test.skip("x", () => {});`, "test.skip"],
  [`test.todo("x");`, "test.todo"],
  [`it.only("x", () => {});`, "it.only"],
  [`describe.skip("x", () => {});`, "describe.skip"],
  [`test.concurrent.skip("x", () => {});`, "test.skip"],
  [`test.skip.each([1])("x", () => {});`, "test.skip"],
  [`test["only"]("x", () => {});`, "test.only"],
  [`const run = condition ? test : test.skip;`, "test.skip"],
  [`test("x", { skip: true }, () => {});`, "{ skip }"],
  [`describe("x", { only: true }, () => {});`, "{ only }"],
])("%s is found", (source, text) => {
  const findings = findingsIn(`\n${source}`);
  expect(findings).toHaveLength(1);
  expect(findings[0]).toContain(`packages/agent/src/a.test.ts:2: ${text}`);
});

test("whole-program tests are examined too", () => {
  expect(findingsIn(`test.only("x", () => {});`, "e2e/a.test.ts")).toHaveLength(1);
});

test("ordinary tests, conditions with a reason, comments and strings are left alone", () => {
  const source = [
    `// test.only("x") and vi.mock("y")`,
    `test.runIf(isRoot)("as root", () => expect("test.skip(").toBe(lines.skip(1)));`,
    `test("x", { timeout: 1 }, async () => { await vi.waitFor(() => list.only); });`,
  ].join("\n");
  expect(findingsIn(source)).toEqual([]);
});

test("a tree without tests is not called examined", () => {
  expect(findingsIn("export const x = 1;", "packages/agent/src/a.ts")).toEqual([]);
  using tree = plantTree({ "packages/agent/src/a.ts": "export const x = 1;" });
  expect(checkTestHabits(tree.root).examined).toBe(0);
});

test("the tests of this repository keep these habits", () => {
  const result = checkTestHabits(fileURLToPath(new URL("..", import.meta.url)));
  expect(result.findings).toEqual([]);
  expect(result.examined).toBeGreaterThan(5);
});
