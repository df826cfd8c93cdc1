import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { CHECKLIST, checkEnvelopeChecklist, CODE_LIST, itemsOf } from "./envelope-checklist.ts";
import { plantTree, type Files } from "./planted-tree.ts";

const LISTED = { [CODE_LIST]: `export const CODES = {\n  gap: { level: 1 },\n  cut: { level: 1 },\n} as const;\n` };
const TEST = "packages/tools/src/a.test.ts";

function findingsIn(rows: string, files: Files): readonly string[] {
  using tree = plantTree({
    ...LISTED,
    [CHECKLIST]: `| Item | What holds | Tests |\n|---|---|---|\n${rows}\n`,
    ...files,
  });
  return checkEnvelopeChecklist(tree.root).findings.flatMap(({ at, text }) =>
    text.endsWith("has 0 rows instead of one") ? [] : [`${at.replace(CHECKLIST, "")} ${text}`],
  );
}

test("every item of the checklist and every code of a verification has a test named after it", () => {
  const { examined, findings } = checkEnvelopeChecklist(fileURLToPath(new URL("..", import.meta.url)));
  expect(findings).toEqual([]);
  expect(examined).toBeGreaterThan(81);
});

test("an item without a test, with one that has another name, or with a file that is no test, is found", () => {
  const files = {
    [TEST]: `// "D3: only said"\ntest("D2: it holds", () => {});\ntest(\`D14: \${1} of them\`, () => {});\n`,
    "packages/tools/src/a.ts": `export const text = "D4: it holds";\n`,
  };
  const rows = [
    `| D2 | held | \`${TEST}\` |`,
    `| D14 | held | \`${TEST}\` |`,
    `| D1 | held | \`${TEST}\` |`,
    `| D3 | held | \`${TEST}\` |`,
    "| D4 | held | `packages/tools/src/a.ts` |",
    "| D5 | held | `packages/tools/src/gone.test.ts` |",
    "| D6 | held | |",
    "| D15 | held | |",
  ].join("\n");
  const unnamed = (item: string) => `${item} names ${TEST}, where no name of a test begins with ${item}`;
  expect(findingsIn(rows, files)).toEqual([
    `:5 ${unnamed("D1")}`,
    `:6 ${unnamed("D3")}`,
    ":7 D4 names packages/tools/src/a.ts, which is no test file",
    ":8 D5 names packages/tools/src/gone.test.ts, which is no test file",
    ":9 D6 names no test",
    ":10 D15 is no item",
  ]);
});

test("an item that was dropped or is listed twice is found, and so is a code", () => {
  using tree = plantTree({ ...LISTED, [CHECKLIST]: "| `gap` | |\n| E1 | a | |\n| E1 | b | |\n" });
  const found = checkEnvelopeChecklist(tree.root).findings.map(({ text }) => text);
  expect(found).toContain("cut has 0 rows instead of one");
  expect(found).toContain("W10 has 0 rows instead of one");
  expect(found).toContain("E1 has 2 rows instead of one");
  expect(found).not.toContain("gap has 0 rows instead of one");
});

test("a name begins with one item, with several, or with a code of a verification", () => {
  const codes = new Set(["gap", "cut"]);
  const of = (name: string) => itemsOf(name, codes);
  expect(of("D2, D3: it holds")).toEqual(["D2", "D3"]);
  expect(of("H2 H3: %j")).toEqual(["H2", "H3"]);
  expect(of("V10: Verify: gap, cut: it holds")).toEqual(["V10", "Verify", "gap", "cut"]);
  expect(of("Verify: gap")).toEqual(["Verify", "gap"]);
  expect(of("Verify: a broken dispatch is found")).toEqual(["Verify"]);
  expect(of("gap: it holds")).toEqual([]);
  expect(of("it holds: D2")).toEqual([]);
  expect(of("D2 holds")).toEqual([]);
});

test("nothing to examine is not called examined", () => {
  using tree = plantTree({ [CHECKLIST]: "| E1 | a | |\n" });
  expect(checkEnvelopeChecklist(tree.root).examined).toBe(0);
});
