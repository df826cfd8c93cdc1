/**
 * Nothing grows without being noticed: source files stay at 400 lines, and the documents people read first stay short.
 * A lint comment cannot switch this off; an exception is a row in the table with its reason.
 * Usage: node scripts/file-length.ts [root]
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCheck, type CheckResult } from "./finding.ts";
import { sourceFiles } from "./source-files.ts";

const SOURCE_LINES = 400;
const PACKAGE_README_LINES = 60;
const DOCUMENT_LINES: Readonly<Record<string, number>> = {
  "ARCHITECTURE.md": 200,
  "AGENTS.md": 120,
  "CONTRIBUTING.md": 80,
};

export function checkFileLength(root: string): CheckResult {
  const limits: [path: string, limit: number][] = [
    ...sourceFiles(root).map((path): [string, number] => [path, SOURCE_LINES]),
    ...Object.entries(DOCUMENT_LINES),
    ...packageReadmes(root).map((path): [string, number] => [path, PACKAGE_README_LINES]),
  ];
  const present = limits.filter(([path]) => existsSync(join(root, path)));
  const findings = present.flatMap(([path, limit]) => {
    const lines = readFileSync(join(root, path), "utf8").trimEnd().split("\n").length;
    return lines <= limit ? [] : [{ at: path, text: `${lines} lines, the limit is ${limit}; split it by idea` }];
  });
  return { examined: present.length, findings };
}

function packageReadmes(root: string): string[] {
  const packages = join(root, "packages");
  return existsSync(packages) ? readdirSync(packages).map((name) => `packages/${name}/README.md`) : [];
}

if (import.meta.main) runCheck(checkFileLength);
