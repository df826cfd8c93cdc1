/** One server for the whole run, and the children of the tests, built once. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { buildChildren } from "../scripts/test-program.ts";
import { startPostgres } from "./server.ts";

const CHILDREN = [
  "packages/journal/src/suite/journal.appender-main.ts",
  "packages/journal/src/postgres/postgres.backend.ts",
];

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(path.join(tmpdir(), "heddle-children-"));
  await buildChildren(folder, CHILDREN);
  project.provide("children", folder);
  // Kills of processes are tested, not losses of power: nothing has to reach the disk.
  const server = await startPostgres({ settings: { fsync: "off" } });
  process.env["HEDDLE_TEST_POSTGRES"] = server.url;
  return async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  };
}
