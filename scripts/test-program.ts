/**
 * The programs that tests start, built once for a run. `heddle`: in a checkout the launcher looks at every source file at each
 * start, which costs more than a short command does; here it finds one. The children of tests: from source each start resolves
 * and links several hundred files. Compiled code is kept for all tests of the run.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { rolldown } from "rolldown";
import type { TestProject } from "vitest/node";

const ROOT = path.join(import.meta.dirname, "..");
const CLI = path.join("packages", "cli");
const LAUNCHER = path.join(CLI, "bin", "heddle.cjs");
const CHILDREN = [
  "packages/*/test/*-in-child.ts",
  "packages/journal/src/suite/journal.appender-main.ts",
  "packages/journal/src/sqlite/{sqlite.backend,disk.scenarios}.ts",
  "e2e/*-worker.ts",
];
/** Read from beside the module that knows them. */
const DATA_FILES = "packages/*/src/**/*.jsonl";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder with a bundle of each child: `tree-in-child.mjs`. */
    readonly children: string;
  }
}

/** Vitest calls it for each project that starts processes, before the first test, and what it returns after the last one. */
export async function setup(project: TestProject): Promise<() => void> {
  const built = process.env["HEDDLE_E2E_LAUNCHER"];
  const root =
    built === undefined ? mkdtempSync(path.join(tmpdir(), "heddle-program-")) : built.slice(0, -LAUNCHER.length);
  const children = path.join(root, "children");
  project.provide("children", children);
  if (built !== undefined) return () => undefined;
  // Tests start them as other users too.
  chmodSync(root, 0o755);
  process.env["HEDDLE_E2E_LAUNCHER"] = buildHeddle(root).launcher;
  await buildChildren(children, CHILDREN);
  return () => rmSync(root, { recursive: true, force: true });
}

export interface BuiltHeddle {
  readonly launcher: string;
  /** The folder of the dashboard's files. */
  readonly page: string;
}

export function buildHeddle(root: string): BuiltHeddle {
  const cli = path.join(root, CLI);
  for (const folder of ["bin", "src", "dist"]) mkdirSync(path.join(cli, folder), { recursive: true });
  mkdirSync(path.join(root, "node_modules"));
  for (const file of ["bin/heddle.cjs", "package.json"]) {
    copyFileSync(path.join(ROOT, CLI, file), path.join(cli, file));
  }
  writeFileSync(path.join(cli, "src", "main.ts"), "");
  const build = path.join(ROOT, "scripts", "build.ts");
  execFileSync(process.execPath, [build, "--quiet", "--out", path.join(cli, "dist")], { stdio: "inherit" });
  const stamp = path.join(cli, "dist", "build-stamp.json");
  const { sourceFingerprint } = createRequire(import.meta.url)(path.join(root, LAUNCHER)) as {
    sourceFingerprint: (root: string) => string;
  };
  const known = JSON.parse(readFileSync(stamp, "utf8")) as object;
  writeFileSync(stamp, JSON.stringify({ ...known, fingerprint: sourceFingerprint(root) }));
  // A page that stands for the dashboard: these tests need it to be there, and not built.
  const page = path.join(cli, "dist", "dashboard");
  mkdirSync(page);
  writeFileSync(path.join(page, "index.html"), "<!doctype html><title>Heddle</title>\n");
  return { launcher: path.join(root, LAUNCHER), page };
}

export async function buildChildren(folder: string, patterns: readonly string[]): Promise<void> {
  const sources = patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  await using build = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(sources.map((file) => [path.basename(file, ".ts"), path.join(ROOT, file)])),
    platform: "node",
    external: [/^node:/],
    resolve: { conditionNames: ["heddle-source", "node", "default"] },
    logLevel: "warn",
  });
  await build.write({ dir: folder, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  for (const file of globSync(DATA_FILES, { cwd: ROOT })) {
    copyFileSync(path.join(ROOT, file), path.join(folder, path.basename(file)));
  }
}
