import { expect, test } from "vitest";
import { messagesOf } from "./messages.ts";
import { plantTree } from "./planted-tree.ts";
import { parseSource } from "./source-files.ts";

test("every text with two words is listed with its line; names, paths and code are not", () => {
  const text = [
    `import { x } from "./two words.ts";`,
    "throw new Error(`cannot reach ${host}; try again`);",
    `const kind = "file-exists";`,
    `const help = { about: "Shows what happened" };`,
  ].join("\n");
  using tree = plantTree({ "packages/cli/src/a.ts": text });
  expect(messagesOf(parseSource(tree.root, "packages/cli/src/a.ts"))).toEqual([
    { line: 1, text: "./two words.ts" },
    { line: 2, text: "cannot reach ${…}; try again" },
    { line: 4, text: "Shows what happened" },
  ]);
});
