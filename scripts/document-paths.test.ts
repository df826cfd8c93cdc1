import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkDocumentPaths } from "./document-paths.ts";
import { plantTree } from "./planted-tree.ts";

function findingsIn(text: string, document = "ARCHITECTURE.md"): string[] {
  using tree = plantTree({
    [document]: `\n${text}\n`,
    "packages/agent/src/turn.ts": "",
    "packages/agent/src/loop.ts": "",
    "packages/agent/README.md": "",
    "docs/glossary.md": "",
  });
  return checkDocumentPaths(tree.root).findings.map(({ at, text: finding }) => `${at}: ${finding}`);
}

test.each([
  ["`packages/agent/src/gone.ts`", "packages/agent/src/gone.ts"],
  ["`packages/gone/`", "packages/gone/"],
  ["`packages/agent/src/{turn,gone}.ts`", "packages/agent/src/{turn,gone}.ts"],
  ["`packages/agent/src/gone/<tool>.ts`", "packages/agent/src/gone/<tool>.ts"],
  ["`GONE.md`", "GONE.md"],
  ["[words](docs/gone.md)", "docs/gone.md"],
  ["[words](docs/gone.md#thread)", "docs/gone.md"],
])("%s is found", (text, path) => {
  expect(findingsIn(text)).toEqual([`ARCHITECTURE.md:2: names ${path}, which does not exist`]);
});

test.each([
  "`packages/agent/src/turn.ts` and `packages/agent/src/`",
  "`packages/agent/src/{turn,loop}.ts`",
  "`packages/<package>/README.md` and `packages/*/src/turn.ts`",
  "[words](docs/glossary.md#thread), [site](https://example.org/x), [here](#below)",
  "`npm run check`, `agent/turn`, `a/b`, `--flag=docs/x`",
  "```\npackages/gone.ts `packages/gone.ts`\n```",
])("%s is left alone", (text) => {
  expect(findingsIn(text)).toEqual([]);
});

test("a document may name its neighbours", () => {
  expect(findingsIn("[words](glossary.md) and [turn](../packages/agent/src/turn.ts)", "docs/inside.md")).toEqual([]);
});

test("the documents of this repository name what is there", () => {
  const result = checkDocumentPaths(fileURLToPath(new URL("..", import.meta.url)));
  expect(result.findings).toEqual([]);
  expect(result.examined).toBeGreaterThan(20);
});
