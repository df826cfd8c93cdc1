import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const SCRATCH = new URL("scratch.ts", import.meta.url).href;
const PROCESSES = 6;
const ROUNDS = 150;

test("processes that open and clean up beside each other never take a living one's folder away", async () => {
  const parent = await mkdtemp(join(tmpdir(), "heddle-scratch-"));
  try {
    const source = `
      const { openScratch } = await import(${JSON.stringify(SCRATCH)});
      for (let round = 0; round < ${ROUNDS}; round += 1) {
        await using scratch = await openScratch(${JSON.stringify(parent)});
      }`;
    const ends = Array.from({ length: PROCESSES }, async () => {
      const child = spawn(process.execPath, ["--conditions=heddle-source", "--input-type=module", "-e", source]);
      const [[code], stderr] = await Promise.all([once(child, "close"), text(child.stderr)]);
      return { code, stderr };
    });
    expect(await Promise.all(ends)).toEqual(ends.map(() => ({ code: 0, stderr: "" })));
    expect(await readdir(parent)).toEqual([]);
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
});

/** Opened in a process of its own, behind mounts of its own; what it says of the scratch, and what is left of it. */
async function scratchWith(mounts: string): Promise<{ folders: string[]; tmp: string; left: string[] }> {
  const source = `
    const { existsSync, readdirSync } = await import("node:fs");
    const { openScratch } = await import(${JSON.stringify(SCRATCH)});
    const { folders, tmp, ...scratch } = openScratch();
    await scratch[Symbol.asyncDispose]();
    const inMemory = readdirSync("/dev/shm").filter((name) => name.startsWith("heddle"));
    console.log(JSON.stringify({ folders, tmp, left: [...folders.filter((path) => existsSync(path)), ...inMemory] }));`;
  const node = [process.execPath, "--conditions=heddle-source", "--input-type=module", "-e", source];
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", `${mounts} && exec "$@"`, "sh", ...node];
  const child = spawn("unshare", args);
  const [[code], out, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(out);
}

test("a handful of names is kept in memory, temporary files on disk, and both go", async () => {
  const { folders, tmp, left } = await scratchWith("mount -t tmpfs none /dev/shm");
  expect(folders).toEqual([expect.stringMatching(/^\/dev\/shm\/heddle-sandbox-/), join(tmp, "..")]);
  expect(tmp.startsWith(join(tmpdir(), "heddle-sandbox-"))).toBe(true);
  expect(left).toEqual([]);
});

test.each([
  ["is full", "mount -t tmpfs -o nr_inodes=6 none /dev/shm"],
  ["is not in memory", "mount --bind /usr /dev/shm"],
])("all of it is on disk where /dev/shm %s", async (_what, mounts) => {
  const { folders, tmp, left } = await scratchWith(mounts);
  expect(folders).toEqual([join(tmp, "..")]);
  expect(left).toEqual([]);
});
