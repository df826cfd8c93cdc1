/** Counts the test cases of a JUnit report. A scanner, no parser: reports differ in everything but these few tags. */
import type { TestCounts } from "./check.ts";

const TAG = /<(\/?)([A-Za-z_][\w.:-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>/y;

/** Undefined when it is no report, or one that is cut off. */
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

/** What tests print is kept in CDATA, and may look like anything. */
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
