/**
 * A program of this folder as one bundle, made once for the test file that starts it often: from source each start resolves
 * and links several hundred files, which costs more than what the program does.
 */
import { globSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { rolldown } from "rolldown";
import { afterAll } from "vitest";

const ROOT = path.join(import.meta.dirname, "..");
/** Read from beside the module that knows them. */
const DATA_FILES = "packages/*/src/**/*.jsonl";

/** The path of the bundle; it is removed after the last test of the file. */
export async function bundled(program: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-program-"));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  await using build = await rolldown({
    input: { program: path.join(import.meta.dirname, program) },
    platform: "node",
    external: [/^node:/],
    resolve: { conditionNames: ["heddle-source", "node", "import", "default"] },
    logLevel: "warn",
  });
  await build.write({
    dir: folder,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  for (const file of globSync(DATA_FILES, { cwd: ROOT })) {
    await copyFile(path.join(ROOT, file), path.join(folder, path.basename(file)));
  }
  return path.join(folder, "program.mjs");
}
