/** Counts the test points of TAP: those of the outermost level, as their plan does. */
import type { TestCounts } from "./check.ts";

const POINT = /^(not )?ok\b([^#]*)(#.*)?$/;

/** Undefined when it is no TAP. A plan that was not kept, and a bail-out, count as one failure. */
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
