/** The TypeScript files of the tree, and their syntax as the checks need it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, type Expression, type Program } from "oxc-parser";

const FOLDERS = ["packages", "apps", "scripts", "e2e", "bench", "conformance", "examples"];
const PASSED_OVER = new Set(["node_modules", "dist", "fixtures"]);

/** Paths from the root, with forward slashes, sorted. */
export function sourceFiles(root: string): string[] {
  const files: string[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory() && !PASSED_OVER.has(entry.name)) walk(path);
      else if (entry.isFile() && /\.[cm]?tsx?$/.test(entry.name)) files.push(path);
    }
  };
  for (const folder of FOLDERS) if (existsSync(join(root, folder))) walk(folder);
  return files.sort();
}

export interface Source {
  readonly path: string;
  readonly program: Program;
  lineAt(offset: number): number;
}

/** Throws on a file that does not parse: a file that cannot be read cannot be called clean. */
export function parseSource(root: string, path: string): Source {
  const text = readFileSync(join(root, path), "utf8");
  const { program, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path} does not parse: ${error.message}`);
  return { path, program, lineAt: (offset) => text.slice(0, offset).split("\n").length };
}

/** Tests and what only tests use: `turn.test.ts`, `journal.suite.ts` (a dotted name), a package's `test/`, all of `e2e/`. */
export function isTestFile(path: string): boolean {
  const hasDottedName = /\/[^/.]+\.[^/]+\.[cm]?tsx?$/.test(path) && !path.endsWith(".d.ts");
  return hasDottedName || /^packages\/[^/]+\/test\//.test(path) || path.startsWith("e2e/");
}

/** The text of a string literal or of a template without holes. */
export function literalText(node: Expression): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral" && node.expressions.length === 0)
    return node.quasis[0]?.value.cooked ?? undefined;
  return undefined;
}
