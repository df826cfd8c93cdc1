import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkImportDirection, MAY_IMPORT } from "./import-direction.ts";
import { plantTree, type Files } from "./planted-tree.ts";

function manifest(name: string, dependencies: readonly string[], exports: readonly string[] = ["."]): string {
  return JSON.stringify({
    name,
    dependencies: Object.fromEntries(dependencies.map((dependency) => [dependency, "1.0.0"])),
    exports: Object.fromEntries(exports.map((entry) => [entry, "./src/index.ts"])),
  });
}

const CLEAN: Files = {
  "package.json": JSON.stringify({ name: "root", devDependencies: { vitest: "1.0.0" } }),
  "packages/protocol/package.json": manifest("@heddle/protocol", ["zod"], [".", "./failpoints"]),
  "packages/protocol/src/index.ts": `import { z } from "zod"; export { x } from "./x.ts";`,
  "packages/protocol/src/index.test.ts": `import { test } from "vitest"; import fs from "node:fs"; import "./index.ts";`,
  "packages/dialects/package.json": manifest("@heddle/dialects", ["@heddle/protocol", "zod"]),
  "packages/journal/package.json": manifest("@heddle/journal", ["@heddle/protocol"]),
  "packages/journal/src/index.ts": `import { x } from "@heddle/protocol"; import "@heddle/protocol/failpoints"; import "node:fs";`,
  "packages/models/package.json": manifest("@heddle/models", ["@heddle/protocol"], [".", "./testing"]),
  "packages/tools/package.json": manifest("@heddle/tools", ["@heddle/protocol"]),
  "packages/agent/package.json": manifest("@heddle/agent", ["@heddle/protocol", "@heddle/journal", "@heddle/models"]),
  "packages/agent/src/turn.test.ts": `import { serve } from "@heddle/models/testing"; import "./turn.suite.ts";`,
  "packages/agent/src/turn.suite.ts": `import { test } from "vitest"; import "../test/scenario.ts";`,
  "packages/cli/package.json": manifest("heddle", ["@heddle/agent"], ["./package.json"]),
  "e2e/exec.test.ts": `import "@heddle/agent"; import "@heddle/models/testing"; import { test } from "vitest";`,
  "scripts/x.ts": `import "@heddle/protocol"; import "./y.ts"; await import(process.argv[2] ?? "");`,
};

function findingsIn(files: Files): string[] {
  using tree = plantTree({ ...CLEAN, ...files });
  return checkImportDirection(tree.root).findings.map(({ at, text }) => `${at}: ${text}`);
}

test("a clean tree has no findings and its files are counted", () => {
  using tree = plantTree(CLEAN);
  const count = Object.keys(CLEAN).filter((path) => path.endsWith(".ts")).length;
  expect(checkImportDirection(tree.root)).toEqual({ examined: count, findings: [] });
});

test("this repository is examined whole and is clean", () => {
  const result = checkImportDirection(fileURLToPath(new URL("..", import.meta.url)));
  expect(result.findings).toEqual([]);
  expect(result.examined).toBeGreaterThan(20);
});

test("the table of AGENTS.md is the one that is checked", () => {
  const text = readFileSync(new URL("../AGENTS.md", import.meta.url), "utf8");
  const [, table = ""] = /\| may import +\|\n\| -[^\n]*\n((?:\|[^\n]*\n)+)/.exec(text) ?? [];
  const written = table
    .trim()
    .split("\n")
    .flatMap((row) => {
      const [names = [], others = []] = row
        .split("|")
        .slice(1, 3)
        .map((cell) => cell.trim().split(", "));
      return names.map((name) => [name, others.filter((other) => other !== "nothing").toSorted()] as const);
    });
  const checked = Object.entries(MAY_IMPORT).map(([name, others]) => [name, others.toSorted()] as const);
  expect(Object.fromEntries(written)).toEqual(Object.fromEntries(checked));
  expect(written).toHaveLength(checked.length);
});

test.each([
  ["a static import", `import { x } from "@heddle/journal";`],
  ["a type import", `import type { X } from "@heddle/journal";`],
  ["a side-effect import", `import "@heddle/journal";`],
  ["a re-export", `export { x } from "@heddle/journal";`],
  ["a re-export of everything", `export * from "@heddle/journal";`],
  ["a dynamic import", `const x = await import("@heddle/journal");`],
  ["a dynamic import by template", "const x = await import(`@heddle/journal`);"],
  ["an import in a type", `type X = import("@heddle/journal").X;`],
  ["a require", `const x = require("@heddle/journal");`],
  ["a resolve", `const x = import.meta.resolve("@heddle/journal");`],
])("%s against the direction is found", (_, source) => {
  expect(findingsIn({ "packages/tools/src/bad.ts": `\n${source}\n` })).toEqual([
    "packages/tools/src/bad.ts:2: tools must not import journal; it may import: protocol",
  ]);
});

test("imports in comments and strings are not imports", () => {
  const source = [
    `// import { x } from "@heddle/journal";`,
    `/* import("@heddle/journal") */`,
    `const a = 'import { x } from "@heddle/journal"';`,
    'const b = `${a} export * from "@heddle/journal"`;',
    `const c = /import("@heddle\\/journal")/;`,
  ].join("\n");
  expect(findingsIn({ "packages/tools/src/fine.ts": source })).toEqual([]);
});

test.each([
  ["packages/protocol/src/up.ts", `import "@heddle/agent";`, "protocol must not import agent"],
  ["packages/protocol/src/io.ts", `import "node:fs";`, "protocol does no I/O"],
  ["packages/protocol/src/other.ts", `import "commander";`, "protocol imports only zod"],
  ["packages/models/src/row.ts", `import "@heddle/tools";`, "models must not import tools"],
  ["packages/journal/src/row.ts", `import "@heddle/models";`, "journal must not import models"],
  ["packages/agent/src/up.ts", `import "heddle/package.json";`, "agent must not import cli"],
  ["packages/agent/src/deep.ts", `import "@heddle/journal/src/sqlite.ts";`, "is not among the exports"],
  ["packages/agent/src/path.ts", `import "../../journal/src/index.ts";`, "enters a package by a path"],
  ["packages/agent/src/out.ts", `import "../../../scripts/x.ts";`, "does not import from outside itself"],
  ["packages/agent/src/self.ts", `import "@heddle/agent";`, "import by a relative path"],
  ["packages/agent/src/undeclared.ts", `import "@heddle/tools";`, "declared in no package.json"],
  ["packages/agent/src/stranger.ts", `import "left-pad/x";`, "left-pad is declared in no package.json"],
  ["packages/agent/src/root.ts", `import "vitest";`, "declared in the root's package.json"],
  ["packages/agent/src/testing.ts", `import "@heddle/models/testing";`, "made for tests"],
  ["packages/agent/src/suite.ts", `import "./turn.suite.ts";`, "made for tests"],
  ["packages/agent/src/helper.ts", `import "../test/scenario.ts";`, "made for tests"],
  ["packages/agent/src/bare.ts", `import "fs";`, "write node:fs"],
  ["packages/agent/src/computed.ts", `await import(process.argv[2]);`, "made at run time"],
  ["packages/agent/src/test-import.ts", `import "./turn.test.ts";`, "nothing imports from a test file"],
  ["packages/agent/src/b.test.ts", `import "./turn.test.ts";`, "nothing imports from a test file"],
  ["packages/dialects/src/up.ts", `import "@heddle/journal";`, "dialects must not import journal"],
  ["packages/dialects/src/io.ts", `import "node:fs";`, "dialects does no I/O"],
  ["scripts/deep.ts", `import "../packages/agent/src/turns/turn.ts";`, "enters a package by a path"],
  ["e2e/stranger.test.ts", `import "left-pad";`, "left-pad is declared in no package.json"],
])("%s with %s is found", (path, source, text) => {
  const findings = findingsIn({ [path]: source });
  expect(findings).toHaveLength(1);
  expect(findings[0]).toContain(`${path}:1: `);
  expect(findings[0]).toContain(text);
});

test("a package without a row in the table is found", () => {
  expect(findingsIn({ "packages/extra/package.json": manifest("@heddle/extra", []) })).toEqual([
    "packages/extra: has no row in MAY_IMPORT",
  ]);
});

test("a file that does not parse stops the check", () => {
  expect(() => findingsIn({ "packages/agent/src/broken.ts": "import { from" })).toThrow("broken.ts does not parse");
});
