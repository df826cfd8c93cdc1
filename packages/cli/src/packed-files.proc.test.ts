import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const folder = join(import.meta.dirname, "..");

test("12.15: the package that users install carries its licence, and nothing but what it needs", async () => {
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: folder,
    shell: process.platform === "win32",
  });
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const paths = packed.files.map(({ path }) => path).filter((path) => !path.startsWith("dist/"));
  expect(paths.toSorted()).toEqual(["LICENSE", "NOTICE", "README.md", "bin/heddle.cjs", "package.json"]);
  const [own, root] = await Promise.all(
    [folder, join(folder, "..", "..")].map((place) => readFile(join(place, "LICENSE"), "utf8")),
  );
  expect(own).toBe(root);
});
