import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkFileLength } from "./file-length.ts";
import { plantTree } from "./planted-tree.ts";

test("a file at its limit passes and one line more is found", () => {
  using tree = plantTree({
    "packages/agent/src/at-limit.ts": "x;\n".repeat(400),
    "packages/agent/src/too-long.ts": `// oxlint-disable max-lines\n${"x;\n".repeat(400)}`,
    "packages/agent/README.md": "x\n".repeat(61),
    "AGENTS.md": "x\n".repeat(121),
    "docs/long.md": "x\n".repeat(5000),
  });
  const { examined, findings } = checkFileLength(tree.root);
  expect(examined).toBe(4);
  expect(findings.map(({ at, text }) => `${at}: ${text.split(";")[0]}`)).toEqual([
    "packages/agent/src/too-long.ts: 401 lines, the limit is 400",
    "AGENTS.md: 121 lines, the limit is 120",
    "packages/agent/README.md: 61 lines, the limit is 60",
  ]);
});

test("this repository keeps its limits", () => {
  const result = checkFileLength(fileURLToPath(new URL("..", import.meta.url)));
  expect(result.findings).toEqual([]);
  expect(result.examined).toBeGreaterThan(20);
});
