import { expect, test } from "vitest";
import { checkFailpointCalls } from "./failpoint-calls.ts";
import { plantTree } from "./planted-tree.ts";

const LIST = "packages/protocol/src/failpoints.ts";

test("a name that is listed and not placed is found, also when only a comment or a test names it", () => {
  using tree = plantTree({
    [LIST]: `export const FAILPOINTS = [\n  "a.placed",\n  "b.commented",\n  "c.tested",\n] as const;\nfailpoint("b.commented");`,
    "packages/journal/src/append.ts": `failpoint("a.placed");\n// failpoint("b.commented");`,
    "packages/journal/src/append.test.ts": `failpoint("c.tested");`,
  });
  expect(checkFailpointCalls(tree.root)).toEqual({
    examined: 3,
    findings: [
      { at: `${LIST}:3`, text: "b.commented is listed and placed nowhere" },
      { at: `${LIST}:4`, text: "c.tested is listed and placed nowhere" },
    ],
  });
});

test("a list that cannot be read is not called examined", () => {
  using tree = plantTree({ [LIST]: `export const POINTS = ["a"] as const;` });
  expect(checkFailpointCalls(tree.root).examined).toBe(0);
});
