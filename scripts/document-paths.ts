/**
 * Documents tell the truth about the tree: every path that a document names in backticks or links to exists.
 * `<name>` and `*` in a path stand for anything; paths count from the root or from the document.
 * Usage: node scripts/document-paths.ts [root]
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";

const DOCUMENTS = ["*.md", "docs/**/*.md", "packages/*/README.md"];
/** Written by the release tool about the past. */
const PASSED_OVER = /(^|\/)CHANGELOG\.md$/;
const CODE_PATH = /^(packages|apps|src|scripts|docs|e2e|bench|examples|conformance|\.ci|\.changeset)\/[\w./*<>{},-]*$/;
const ROOT_FILE = /^[A-Z]+\.md$|^[\w.-]+\.(json|config\.ts)$/;

export function checkDocumentPaths(root: string): CheckResult {
  const documents = globSync(DOCUMENTS, { cwd: root })
    .filter((path) => !PASSED_OVER.test(path))
    .sort();
  let examined = 0;
  const findings: Finding[] = [];
  for (const document of documents) {
    for (const { path, line } of pathsIn(readFileSync(join(root, document), "utf8"))) {
      examined += 1;
      const isThere = alternatives(path).every(
        (one) => exists(root, one) || exists(join(root, dirname(document)), one),
      );
      if (!isThere) findings.push({ at: `${document}:${line}`, text: `names ${path}, which does not exist` });
    }
  }
  return { examined, findings };
}

interface NamedPath {
  readonly path: string;
  readonly line: number;
}

function pathsIn(text: string): NamedPath[] {
  const found: NamedPath[] = [];
  let isFenced = false;
  for (const [index, content] of text.split("\n").entries()) {
    if (content.trimStart().startsWith("```")) isFenced = !isFenced;
    if (isFenced) continue;
    const line = index + 1;
    for (const [, code = ""] of content.matchAll(/`([^`]+)`/g)) {
      if (CODE_PATH.test(code) || ROOT_FILE.test(code)) found.push({ path: code, line });
    }
    for (const [, link = ""] of content.matchAll(/\]\(([^)\s]+)\)/g)) {
      const [path = ""] = link.split("#");
      if (path !== "" && !/^[a-z]+:/.test(path)) found.push({ path, line });
    }
  }
  return found;
}

/** `a/{b,c}.ts` names two files. */
function alternatives(path: string): string[] {
  const match = /^(.*)\{([^{}]*)\}(.*)$/.exec(path);
  if (match === null) return [path];
  const [, before = "", inside = "", after = ""] = match;
  return inside.split(",").flatMap((one) => alternatives(before + one.trim() + after));
}

function exists(base: string, path: string): boolean {
  const pattern = path.replaceAll(/<[^>]*>/g, "*");
  return pattern.includes("*") ? globSync(pattern, { cwd: base }).length > 0 : existsSync(join(base, pattern));
}

if (import.meta.main) runCheck(checkDocumentPaths);
