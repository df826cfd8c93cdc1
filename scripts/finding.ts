/**
 * What every check of this folder returns and how it is shown. A check that examined nothing fails:
 * a tool that silently reads no files looks exactly like a clean tree.
 */
import { fileURLToPath } from "node:url";

export interface Finding {
  /** Path from the root of the tree, with the line where there is one. */
  readonly at: string;
  readonly text: string;
}

export interface CheckResult {
  readonly examined: number;
  readonly findings: readonly Finding[];
}

/** The body of a check's command line: `node scripts/<check>.ts [root]`. */
export function runCheck(check: (root: string) => CheckResult): void {
  const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url));
  const { examined, findings } = check(root);
  for (const { at, text } of findings) console.error(`${at}: ${text}`);
  if (examined === 0) console.error(`nothing to examine under ${root}`);
  console.log(`${examined} examined, ${findings.length} wrong`);
  process.exitCode = examined === 0 || findings.length > 0 ? 1 : 0;
}
