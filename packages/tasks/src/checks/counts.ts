/**
 * Counts tests in JUnit reports, in TAP, and by the summaries that runners print: node, vitest, jest, mocha, pytest, unittest,
 * go and cargo. The last summary counts; cargo prints one per crate and go one line per test, so theirs are added up.
 */
import { stripVTControlCharacters } from "node:util";
import type { TestCounts } from "./check.ts";

type Count = (lines: readonly string[]) => TestCounts | undefined;

const RUNNERS: readonly Count[] = [
  countNode,
  countVitestOrJest,
  countCargo,
  countPytest,
  countUnittest,
  countMocha,
  countGo,
];

export function countLines(text: string): TestCounts | undefined {
  const lines = stripVTControlCharacters(text).split(/\r?\n/);
  for (const count of RUNNERS) {
    const counts = count(lines);
    if (counts !== undefined) return counts;
  }
  return undefined;
}

/** Of node's own runner, in its TAP and its spec reporter. */
export function countNodeSummary(text: string): TestCounts | undefined {
  return countNode(stripVTControlCharacters(text).split(/\r?\n/));
}

/** `ℹ pass 4`, or `# pass 4`. */
function countNode(lines: readonly string[]): TestCounts | undefined {
  const figures = new Map<string, number>();
  for (const line of lines) {
    const match = /^(?:ℹ|#) (tests|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line.trimEnd());
    if (match?.[1] !== undefined) figures.set(match[1], Number(match[2]));
  }
  const of = (name: string): number => figures.get(name) ?? 0;
  if (!figures.has("tests") || !figures.has("pass")) return undefined;
  return { passed: of("pass"), failed: of("fail") + of("cancelled"), skipped: of("skipped") + of("todo") };
}

/** `Tests  1 failed | 5 passed (6)`, or `Tests: 1 failed, 5 passed, 6 total`. */
function countVitestOrJest(lines: readonly string[]): TestCounts | undefined {
  return last(lines, (line) => {
    const match = /^\s*Tests:?\s+(\d+ \w+.*)$/.exec(line);
    return match?.[1] === undefined ? undefined : figuresOf(match[1]);
  });
}

/** `===== 1 failed, 5 passed in 0.12s =====`, bare with -q. */
function countPytest(lines: readonly string[]): TestCounts | undefined {
  return last(lines, (line) => {
    const match = /^(?:=+ )?(\d+ \w+.*?) in [\d.]+s\b/.exec(line);
    return match?.[1] === undefined ? undefined : figuresOf(match[1]);
  });
}

/** `test result: ok. 5 passed; 0 failed; 1 ignored; …`, once a crate. */
function countCargo(lines: readonly string[]): TestCounts | undefined {
  return sum(
    lines.map((line) => {
      const match = /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/.exec(line);
      return match === null ? undefined : counted(match[1], match[2], match[3]);
    }),
  );
}

/** `Ran 5 tests in 0.001s`, then `OK (skipped=1)` or `FAILED (failures=1, errors=1)`. */
function countUnittest(lines: readonly string[]): TestCounts | undefined {
  const at = lines.findLastIndex((line) => /^Ran \d+ tests? in [\d.]+s$/.test(line));
  if (at === -1) return undefined;
  const total = Number(/\d+/.exec(lines[at] ?? "")?.[0]);
  const verdict = lines.slice(at).find((line) => /^(OK|FAILED)\b/.test(line)) ?? "";
  const of = (name: string): number => Number(new RegExp(`${name}=(\\d+)`).exec(verdict)?.[1] ?? 0);
  const bad = of("failures") + of("errors");
  return { passed: total - bad - of("skipped"), failed: bad, skipped: of("skipped") };
}

/** `5 passing (12ms)`, `1 failing`, `2 pending`. */
function countMocha(lines: readonly string[]): TestCounts | undefined {
  const of = (word: string): string | undefined =>
    last(lines, (line) => new RegExp(`^\\s+(\\d+) ${word}\\b`).exec(line)?.[1]);
  const passing = of("passing");
  return passing === undefined ? undefined : counted(passing, of("failing"), of("pending"));
}

/** `--- PASS: TestX` with -v; without it only packages are printed. */
function countGo(lines: readonly string[]): TestCounts | undefined {
  const one = (word: string | undefined): TestCounts => ({
    passed: word === "PASS" || word === "ok" ? 1 : 0,
    failed: word === "FAIL" ? 1 : 0,
    skipped: word === "SKIP" ? 1 : 0,
  });
  const tests = lines.flatMap((line) => {
    const match = /^\s*--- (PASS|FAIL|SKIP): \S/.exec(line);
    return match === null ? [] : [one(match[1])];
  });
  const packages = lines.flatMap((line) => {
    const match = /^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[)/.exec(line);
    return match === null ? [] : [one(match[1])];
  });
  return sum(tests.length > 0 ? tests : packages);
}

/** `1 failed, 5 passed, 2 skipped`, in any order and with any separator. */
function figuresOf(text: string): TestCounts | undefined {
  const of = (...words: readonly string[]): number =>
    words.reduce((total, word) => total + Number(new RegExp(`\\b(\\d+) ${word}\\b`).exec(text)?.[1] ?? 0), 0);
  if (!/\b\d+ (passed|failed|skipped|errors?|todo|xfailed|xpassed)\b/.test(text)) return undefined;
  return {
    passed: of("passed", "xpassed"),
    failed: of("failed", "error", "errors"),
    skipped: of("skipped", "todo", "xfailed"),
  };
}

function last<T>(lines: readonly string[], read: (line: string) => T | undefined): T | undefined {
  for (const line of lines.toReversed()) {
    const found = read(line);
    if (found !== undefined) return found;
  }
  return undefined;
}

function sum(all: readonly (TestCounts | undefined)[]): TestCounts | undefined {
  const known = all.filter((one) => one !== undefined);
  if (known.length === 0) return undefined;
  return known.reduce((a, b) => ({
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
  }));
}

function counted(passed: string | undefined, failed: string | undefined, skipped: string | undefined): TestCounts {
  return { passed: Number(passed ?? 0), failed: Number(failed ?? 0), skipped: Number(skipped ?? 0) };
}

const TAG = /<(\/?)([A-Za-z_][\w.:-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>/y;

/** Scans for a few tags, because reports differ in everything else. undefined: not a report, or cut off. */
export function countJunit(text: string): TestCounts | undefined {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let depth = 0;
  let isReport = false;
  let open: { verdict: keyof TestCounts } | undefined;
  for (const { name, isEnd, isEmpty } of tags(text)) {
    if (name === "testsuite" || name === "testsuites") {
      isReport = true;
      if (!isEmpty) depth += isEnd ? -1 : 1;
    } else if (name === "testcase") {
      if (open !== undefined) counts[open.verdict] += 1;
      open = isEnd ? undefined : { verdict: "passed" };
      if (isEmpty && open !== undefined) {
        counts.passed += 1;
        open = undefined;
      }
    } else if (open !== undefined && !isEnd) {
      if (name === "failure" || name === "error") open.verdict = "failed";
      else if (name === "skipped" && open.verdict === "passed") open.verdict = "skipped";
    }
  }
  return isReport && depth === 0 && open === undefined ? counts : undefined;
}

interface Tag {
  readonly name: string;
  readonly isEnd: boolean;
  readonly isEmpty: boolean;
}

function* tags(text: string): Generator<Tag> {
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", at)) {
    const skipped = endOfSkipped(text, at);
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    TAG.lastIndex = at;
    const match = TAG.exec(text);
    if (match === null) {
      at += 1;
      continue;
    }
    at = TAG.lastIndex;
    const [, slash, name = "", rest = ""] = match;
    yield { name: name.slice(name.indexOf(":") + 1), isEnd: slash === "/", isEmpty: rest.endsWith("/") };
  }
}

/** Output of tests is in CDATA, and may look like anything. */
function endOfSkipped(text: string, at: number): number | undefined {
  for (const [start, end] of [
    ["<![CDATA[", "]]>"],
    ["<!--", "-->"],
    ["<?", "?>"],
  ] as const) {
    if (!text.startsWith(start, at)) continue;
    const found = text.indexOf(end, at + start.length);
    return found === -1 ? text.length : found + end.length;
  }
  return undefined;
}

const POINT = /^(not )?ok\b([^#]*)(#.*)?$/;

/** Of the outermost level, as the plan counts. undefined: not TAP. A broken plan and a bail-out count as one failure. */
export function countTap(text: string): TestCounts | undefined {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let planned: number | undefined;
  let isBailed = false;
  let isTap = false;
  for (const line of text.split(/\r?\n/)) {
    const plan = /^1\.\.(\d+)\b/.exec(line);
    const point = POINT.exec(line);
    if (/^TAP version \d+/.test(line)) isTap = true;
    else if (plan !== null) planned = Number(plan[1]);
    else if (line.startsWith("Bail out!")) isBailed = true;
    else if (point !== null) {
      const directive = (point[3] ?? "").toLowerCase();
      if (/^#\s*(skip|todo)/.test(directive)) counts.skipped += 1;
      else if (point[1] === undefined) counts.passed += 1;
      else counts.failed += 1;
    }
  }
  if (!isTap && planned === undefined) return undefined;
  const seen = counts.passed + counts.failed + counts.skipped;
  if (isBailed || (planned !== undefined && planned !== seen)) counts.failed += 1;
  return counts;
}
