/**
 * The program that tests start, built once for a run. In a checkout the launcher looks at every source file at each start,
 * which costs more than a short command does; here it finds one. Compiled code is kept beside it, for all tests of the run.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "..");
const CLI = path.join("packages", "cli");

/** Vitest calls it for each project that starts processes, before the first test, and what it returns after the last one. */
export function setup(): () => void {
  if (process.env["HEDDLE_E2E_LAUNCHER"] !== undefined) return () => undefined;
  const root = mkdtempSync(path.join(tmpdir(), "heddle-program-"));
  // Tests start it as other users too.
  chmodSync(root, 0o755);
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
  const launcher = path.join(cli, "bin", "heddle.cjs");
  const { sourceFingerprint } = createRequire(import.meta.url)(launcher) as {
    sourceFingerprint: (root: string) => string;
  };
  const built = JSON.parse(readFileSync(stamp, "utf8")) as object;
  writeFileSync(stamp, JSON.stringify({ ...built, fingerprint: sourceFingerprint(root) }));
  process.env["HEDDLE_E2E_LAUNCHER"] = launcher;
  return () => rmSync(root, { recursive: true, force: true });
}
