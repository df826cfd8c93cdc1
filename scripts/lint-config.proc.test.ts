import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { plantTree, type Files } from "./planted-tree.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Runs a tool of this repository with its own configuration over planted files. */
function runTool(args: readonly [tool: string, ...string[]], files: Files) {
  using tree = plantTree({
    ".oxlintrc.json": read(".oxlintrc.json"),
    "knip.json": read("knip.json"),
    "tsconfig.json": read("tsconfig.json"),
    "package.json": JSON.stringify({ name: "planted", type: "module", workspaces: ["packages/*"] }),
    "packages/agent/package.json": JSON.stringify({
      name: "@heddle/agent",
      type: "module",
      exports: { ".": { "heddle-source": "./src/index.ts" } },
    }),
    "packages/agent/src/index.ts": `export { kept } from "./kept.ts";\n`,
    "packages/agent/src/kept.ts": `export const kept = 1;\n`,
    ...files,
  });
  symlinkSync(join(ROOT, "node_modules"), join(tree.root, "node_modules"));
  const [tool, ...rest] = args;
  const { status, stdout, stderr } = spawnSync(join(ROOT, "node_modules/.bin", tool), rest, {
    cwd: tree.root,
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

const WORK = "async function work(): Promise<void> {}\n";
const MISTAKES: Readonly<Record<string, string>> = {
  "no-floating-promises": `${WORK}export function go(): void {\n  work();\n}`,
  "no-floating-promises, thrown away": `${WORK}export function go(): void {\n  void work();\n}`,
  "no-misused-promises": `${WORK}export const x = () => {\n  if (work()) return 1;\n};`,
  "no-explicit-any": `export const x: any = 1;`,
  "no-non-null-assertion": `export const x = (y: string | undefined) => y!;`,
  "no-empty": `export const x = () => {\n  try {\n    x();\n  } catch {}\n};`,
  "no-console": `console.log(1);`,
  "no-default-export": `export default 1;`,
  "no-cycle": `import "./kept.ts";\nexport const x = 1;`,
  "consistent-type-imports": `import { Stats } from "node:fs";\nexport type X = Stats;`,
  "max-lines": "export {};\n".repeat(401),
  "max-lines-per-function": `export function x(): void {\n${"  x();\n".repeat(81)}}`,
};

test("the lint set-up finds each planted mistake and nothing else", () => {
  const fileOf = (mistake: string): string => `packages/agent/src/${mistake.replaceAll(/\W+/g, "-")}.ts`;
  const planted = Object.entries(MISTAKES).map(([mistake, source]) => [fileOf(mistake), `${source}\n`]);
  const { status, output } = runTool(["oxlint", "--deny-warnings", "--format=unix", "packages"], {
    ...Object.fromEntries(planted),
    "packages/agent/src/kept.ts": `import "./no-cycle.ts";\nexport const kept = 1;\n`,
  });
  expect(status).not.toBe(0);
  const found = output.split("\n").flatMap((line) => {
    const match = /^(?<file>[^:]+):\d+:\d+: .*\((?<rule>[\w-]+)\)\]$/.exec(line);
    return match === null ? [] : [`${match.groups?.["file"]} ${match.groups?.["rule"]}`];
  });
  const expected = Object.keys(MISTAKES).map((mistake) => `${fileOf(mistake)} ${mistake.split(",")[0]}`);
  expect(found.sort()).toEqual([...expected, "packages/agent/src/kept.ts no-cycle"].sort());
});

test("knip passes a tree without dead code and finds an unused file and an unused export", () => {
  expect(runTool(["knip", "--no-config-hints"], {})).toMatchObject({ status: 0 });
  const result = runTool(["knip", "--no-config-hints"], {
    "packages/agent/src/kept.ts": `export const kept = 1;\nexport const dead = 2;\n`,
    "packages/agent/src/lost.ts": `export const lost = 1;\n`,
  });
  expect(result.status).not.toBe(0);
  expect(result.output).toContain("packages/agent/src/lost.ts");
  expect(result.output).toContain("dead");
});
