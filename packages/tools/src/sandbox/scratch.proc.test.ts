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
