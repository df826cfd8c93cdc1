import { expect, test } from "vitest";
import { countJunit, countLines, countTap } from "./counts.ts";

const counts = (passed: number, failed: number, skipped: number) => ({ passed, failed, skipped });

test("52: JUnit reports are counted by their test cases, whatever tests print into them", () => {
  const report = `<?xml version="1.0"?>
    <testsuites tests="99"><testsuite name="a &lt;b>" tests="9">
      <testcase name="one"/><testcase name="two" time="0.1"></testcase>
      <testcase name="three"><failure message="a > b">no</failure><failure/></testcase>
      <testcase name="four"><error/></testcase>
      <testcase name="five"><skipped/></testcase>
      <testcase name="six"><system-out><![CDATA[<testcase name="fake"/></testsuite><failure>]]></system-out></testcase>
      <!-- <testcase name="comment"/> -->
    </testsuite></testsuites>`;
  expect(countJunit(report)).toEqual(counts(3, 2, 1));
  expect(countJunit("<html><testcase/></html>")).toBeUndefined();
  expect(countJunit(report.slice(0, 300))).toBeUndefined();
  expect(countJunit('<testsuite tests="0"/>')).toEqual(counts(0, 0, 0));
});

test("52: a report made to be slow is read quickly", () => {
  const began = process.threadCpuUsage();
  countJunit(`<testsuite>${"<a ".repeat(200_000)}`);
  countJunit(`<testsuite>${'<a b="'.repeat(100_000)}`);
  countLines(`${"1 passed, ".repeat(50_000)}\n`.repeat(3));
  countTap("ok ".repeat(500_000));
  const { user, system } = process.threadCpuUsage(began);
  expect((user + system) / 1000).toBeLessThan(5_000);
});

test("52: TAP is counted by its plan", () => {
  expect(countTap("TAP version 13\n1..4\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no\nnot ok 4 # TODO later\n")).toEqual(
    counts(1, 1, 2),
  );
  expect(countTap("TAP version 14\n    ok 1 - nested\n    1..1\nok 1 - outer\n1..1\n")).toEqual(counts(1, 0, 0));
  expect(countTap("1..3\nok 1\nok 2\n"), "a plan that was not kept").toEqual(counts(2, 1, 0));
  expect(countTap("1..1\nok 1\nBail out! no database\n")).toEqual(counts(1, 1, 0));
  expect(countTap("ok then\nnot ok at all\n")).toBeUndefined();
});

test.each([
  ["node", "✔ a (1ms)\nℹ tests 5\nℹ suites 0\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n", [3, 1, 1]],
  ["node's TAP", "TAP version 13\nok 1 - f\n# tests 4\n# pass 4\n# fail 0\n# skipped 0\n", [4, 0, 0]],
  ["vitest", " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 5 passed | 2 skipped (8)\n", [5, 1, 2]],
  [
    "vitest in colour",
    "\u001b[2m      Tests \u001b[22m \u001b[1m\u001b[32m6 passed\u001b[39m\u001b[22m\u001b[90m (6)\u001b[39m\n",
    [6, 0, 0],
  ],
  ["jest", "Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 skipped, 1 todo, 5 passed, 9 total\n", [5, 1, 3]],
  ["mocha", "\n  5 passing (12ms)\n  2 pending\n  1 failing\n\n  1) a\n", [5, 1, 2]],
  ["pytest", "collected 6 items\n=== 1 failed, 4 passed, 1 skipped, 2 warnings in 0.12s ===\n", [4, 1, 1]],
  ["pytest -q", "....\n4 passed in 0.01s\n", [4, 0, 0]],
  ["pytest with errors", "=== 2 passed, 1 error in 1.20s (0:00:01) ===\n", [2, 1, 0]],
  ["unittest", "....\n----\nRan 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n", [2, 2, 1]],
  ["unittest, good", "Ran 1 test in 0.000s\n\nOK\n", [1, 0, 0]],
  [
    "go -v",
    "=== RUN TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestB (0s)\n--- FAIL: TestC (0s)\nFAIL\n",
    [2, 1, 1],
  ],
  ["go", "ok  \texample.org/a\t0.01s\nFAIL\texample.org/b\t0.02s\nok  \texample.org/c\t(cached)\n", [2, 1, 0]],
  [
    "cargo",
    "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n",
    [4, 1, 1],
  ],
] as const)("52: the summary of %s is understood", (_, text, [passed, failed, skipped]) => {
  expect(countLines(text)).toEqual(counts(passed, failed, skipped));
});

test.each(["", "all good\n", "Tests are fine\n", "I ran 5 tests and they passed\n", "no tests ran in 0.01s\n"])(
  "52: %j counts nothing",
  (text) => {
    expect(countLines(text)).toBeUndefined();
  },
);
