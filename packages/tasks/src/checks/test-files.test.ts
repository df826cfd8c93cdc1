import { expect, test } from "vitest";
import { isTestFile } from "./test-files.ts";

test.each([
  ["a.test.ts", true],
  ["src/deep/a.spec.jsx", true],
  ["a_test.go", true],
  ["a_spec.rb", true],
  ["test_a.py", true],
  ["pkg/tests/it.rs", true],
  ["test/helper.js", true],
  ["src/__tests__/a.js", true],
  ["src/__snapshots__/a.test.js.snap", true],
  ["src/SumTest.java", true],
  ["conftest.py", true],
  ["vitest.config.ts", true],
  ["a.ts", false],
  ["latest.ts", false],
  ["contest.py", false],
  ["tests/data/fixture.json", false],
  ["tests/output.log", false],
  ["src/testing.ts", false],
  ["protest/a.js", false],
])("60: %s is a test: %s", (path, expected) => {
  expect(isTestFile(path)).toBe(expected);
});
