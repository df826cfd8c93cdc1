import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { SpecError } from "./positions.ts";
import { readSpec } from "./read-spec.ts";

const YAML = `name: a
workspace: .
goal: |
  do it
steps: [one, {title: two, acceptance: [x]}]
checks:
  - npm test
  - tests: npm test
    timeout: 5m
  - any: [{file-exists: x}, {not: {contains: {path: y, text: z}}}]
schedule: {cron: "0 9 * * 1-5", time_zone: Europe/Berlin}
budget: {time: 1h, turns: 3}
retries: 2
worktree: true
mode: normal
check_interval: 5m
---
tasks: [{name: b, workspace: ., goal: g, depends_on: a}]
`;
const PAGE = `---
workspace: .
labels: [x]
---
# Title

Goal.

## Steps
1. one
   - two
## Checks
\`\`\`yaml
- file-exists: x
\`\`\`
`;
const PIECES = [
  "{",
  "}",
  "[",
  "]",
  ":",
  " - ",
  "\n",
  "---\n",
  "#",
  "&a ",
  "*a",
  "!!x ",
  "|",
  '"',
  "'",
  "\t",
  "null",
  "0x1",
  "1e999",
  "__proto__: ",
  "? ",
  "~",
  "\u2028",
  "\uFEFF",
  "```\n",
  "## Goal\n",
];

/** A small generator of its own, so that what failed once fails again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

test(
  "whatever is done to a file, it is read or refused with positions, and never anything else",
  { timeout: 240_000 },
  () => {
    const random = randomFrom(7);
    let refused = 0;
    for (let round = 0; round < 800; round += 1) {
      const file = round % 2 === 0 ? "t.yaml" : "t.md";
      let text = file === "t.yaml" ? YAML : PAGE;
      for (let change = 0; change <= random(4); change += 1) {
        const at = random(text.length);
        const piece = random(3) === 0 ? "" : (PIECES[random(PIECES.length)] ?? "");
        text = text.slice(0, at) + piece + text.slice(at + random(6));
      }
      try {
        for (const spec of readSpec({ file, text, folder: tmpdir() }).specs) expect(spec.goal).not.toBe("");
      } catch (error) {
        if (!(error instanceof SpecError)) throw new Error(`seed 7, round ${round}:\n${text}`, { cause: error });
        refused += 1;
        const lines = text.split("\n").length;
        for (const { line, column, message } of error.problems) {
          expect(line).toBeLessThanOrEqual(lines);
          expect(Math.min(line, column)).toBeGreaterThan(0);
          expect(message).not.toMatch(/undefined|\[object/);
        }
      }
    }
    expect(refused).toBeGreaterThan(100);
  },
);
