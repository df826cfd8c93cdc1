/**
 * `npm run check`: everything there is to run, in order, with the time of each step.
 * `--fast` leaves out the tests that start processes.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runSteps, seconds, type Step } from "./steps.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

function main([flag, ...more]: readonly string[]): number {
  const isFast = flag === "--fast";
  if ((flag !== undefined && !isFast) || more.length > 0) {
    console.error(`npm run check: takes --fast or nothing, not ${[flag, ...more].join(" ")}`);
    return 2;
  }
  const startedAt = performance.now();
  const failed = runSteps(steps(isFast), { cwd: ROOT });
  console.log(
    `\ncheck took ${seconds(startedAt)}; ${failed.length === 0 ? "all clean" : `failed: ${failed.join(", ")}`}`,
  );
  return failed.length === 0 ? 0 : 1;
}

function steps(isFast: boolean): Step[] {
  return [
    { name: "format", command: tool("oxfmt", "--check", ".") },
    { name: "lint", command: tool("oxlint", "--deny-warnings") },
    { name: "types", command: ["npm", "run", "--silent", "types"] },
    { name: "import direction", command: script("import-direction") },
    { name: "test habits", command: script("test-habits") },
    { name: "file length", command: script("file-length") },
    { name: "document paths", command: script("document-paths") },
    { name: "architecture map", command: script("architecture-map") },
    { name: "manifests", command: script("manifests") },
    { name: "failpoint calls", command: script("failpoint-calls") },
    { name: "foreign messages", command: script("foreign-messages") },
    { name: "envelope checklist", command: script("envelope-checklist") },
    { name: "unused code", command: tool("knip", "--no-config-hints") },
    ...(hasBaseBranch() ? [{ name: "changesets", command: tool("changeset", "status") }] : []),
    { name: "tests", command: script("test", isFast ? "--fast" : "--all"), isStreamed: true },
  ];
}

function tool(name: string, ...args: string[]): Step["command"] {
  return [join(ROOT, "node_modules", ".bin", name), ...args];
}

function script(name: string, ...args: string[]): Step["command"] {
  return [process.execPath, join(ROOT, "scripts", `${name}.ts`), ...args];
}

/** `changeset status` compares with the main branch; a shallow clone of another branch has none. */
function hasBaseBranch(): boolean {
  return spawnSync("git", ["rev-parse", "--verify", "--quiet", "main"], { cwd: ROOT }).status === 0;
}

process.exitCode = main(process.argv.slice(2));
