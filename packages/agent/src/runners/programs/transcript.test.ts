/** What is kept of the wire of an agent program. */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRedactor } from "@heddle/journal";
import { expect, test } from "vitest";
import { openTranscript } from "./transcript.ts";

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-transcript-"));
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const SECRET = "a secret of this test";

test("a flood is written whole and in order, holds its reader up, and leaves nothing behind for each line", () =>
  inFolder(async (folder) => {
    const warnings: string[] = [];
    const warned = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", warned);
    const file = join(folder, "deep/transcript.jsonl");
    const transcript = openTranscript(file, createRedactor([SECRET]));
    const filler = "x".repeat(1000);
    let held = 0;
    for (let nth = 0; nth < 10_000; nth += 1) {
      const wait = transcript.add(nth % 2 === 0 ? "out" : "in", `${nth} ${SECRET} ${filler}`);
      if (wait !== undefined) held += 1;
      await wait;
    }
    await transcript[Symbol.asyncDispose]();
    await transcript[Symbol.asyncDispose]();
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    const texts = lines.map((line) => JSON.parse(line)).map(({ out, in: into }) => String(out ?? into));
    expect(texts.map((text) => Number(text.split(" ")[0]))).toEqual(Array.from({ length: 10_000 }, (_, nth) => nth));
    expect(texts.some((text) => text.includes(SECRET))).toBe(false);
    expect(held).toBeGreaterThan(0);
    // Warnings are told a turn of the loop later.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", warned);
    expect(warnings).toEqual([]);
  }));

test("a file that cannot be written stops nobody", () =>
  inFolder(async (folder) => {
    await mkdir(join(folder, "transcript.jsonl"));
    const transcript = openTranscript(join(folder, "transcript.jsonl"), createRedactor());
    for (let nth = 0; nth < 3; nth += 1) await transcript.add("out", "x".repeat(2_000_000));
    await transcript[Symbol.asyncDispose]();
  }));
