/**
 * `npm run test:postgres`: installs a Postgres in this folder if it is missing, and runs the tests of what stores in Postgres
 * against it: one server, which is ended with the run.
 * Usage: npm run test:postgres -- [path or pattern …]
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { installPostgres } from "./install.ts";

const HERE = import.meta.dirname;
const ROOT = path.join(HERE, "..");

function main(args: readonly string[]): number {
  installPostgres();
  const vitest = path.join(ROOT, "node_modules", "vitest", "vitest.mjs");
  const config = path.join(HERE, "vitest.config.ts");
  const run = spawnSync(process.execPath, [vitest, "run", "--config", config, ...args], {
    cwd: ROOT,
    stdio: "inherit",
  });
  return run.status ?? 1;
}

process.exitCode = main(process.argv.slice(2));
