import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const CHILD = join(import.meta.dirname, "../../test/patch-in-child.ts");

async function patchUnder(
  failpoint: string,
): Promise<{ stdout: string; signal: string | null; files: Record<string, string> }> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-patch-"));
  try {
    await writeFile(join(folder, "a.txt"), "1\n");
    await writeFile(join(folder, "b.txt"), "1\n");
    const { stdout, stderr, signal } = spawnSync(process.execPath, ["--conditions=heddle-source", CHILD, folder], {
      encoding: "utf8",
      env: {
        PATH: process.env["PATH"],
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        HEDDLE_FAILPOINT: failpoint,
      },
      timeout: 90_000,
    });
    expect(stderr).toBe("");
    const files: Record<string, string> = {};
    for (const name of await readdir(folder)) files[name] = await readFile(join(folder, name), "utf8");
    return { stdout, signal, files };
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("a disk that is full before the first write leaves every file as it was", async () => {
  const { stdout, files } = await patchUnder("patch.before-write=enospc");
  expect(JSON.parse(stdout)).toMatchObject({ kind: "failed", item: { status: "failed", changes: [] } });
  expect(stdout).toContain("No file was changed");
  expect(files).toEqual({ "a.txt": "1\n", "b.txt": "1\n" });
});

test("a disk that is full between two files is told with what was already changed", async () => {
  const { stdout, files } = await patchUnder("patch.between-files=enospc");
  expect(JSON.parse(stdout)).toMatchObject({
    kind: "failed",
    item: { status: "failed", changes: [{ kind: "update" }] },
  });
  expect(stdout).toContain("Already changed before that");
  expect(files).toEqual({ "a.txt": "2\n", "b.txt": "1\n" });
});

test.each([
  ["before the first file", "patch.before-write=kill", { "a.txt": "1\n", "b.txt": "1\n" }],
  ["between two files", "patch.between-files=kill", { "a.txt": "2\n", "b.txt": "1\n" }],
])("a kill %s leaves whole files only", async (_name, failpoint, expected) => {
  const { signal, files } = await patchUnder(failpoint);
  expect(signal).toBe("SIGKILL");
  expect(files).toEqual(expected);
});
