import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CappedOutput } from "./output.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "heddle-output-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const spill = (): string => join(folder, randomUUID());
const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

async function feed(output: CappedOutput, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += size) await output.push(bytes.subarray(at, at + size));
}

test("what fits is given back whole and makes no file", async () => {
  const spillFolder = spill();
  const output = new CappedOutput({ headBytes: 4, tailBytes: 4, spillFolder });
  await feed(output, Buffer.from("12345678"), 3);
  await output.close();
  expect(output.snapshot()).toEqual({ text: "12345678", totalBytes: 8, truncatedBytes: 0 });
  expect(existsSync(spillFolder)).toBe(false);
});

test.for([1, 2, 3, 5, 7, 64, 1000])(
  "the head, the tail and the number between them are right in pieces of %i",
  async (size) => {
    const spillFolder = spill();
    const output = new CappedOutput({ headBytes: 10, tailBytes: 6, spillFolder });
    const bytes = Buffer.from(Array.from({ length: 200 }, (_, index) => 97 + (index % 26)));
    await feed(output, bytes, size);
    await output.close();
    expect(output.snapshot()).toEqual({
      text: `${bytes.subarray(0, 10).toString()}\n[... 184 bytes left out ...]\n${bytes.subarray(194).toString()}`,
      totalBytes: 200,
      truncatedBytes: 184,
      blob: sha256(bytes),
    });
    expect(await readFile(join(spillFolder, sha256(bytes)))).toEqual(bytes);
    expect(await readdir(spillFolder)).toEqual([sha256(bytes)]);
  },
);

test.for([1, 2, 3, 4, 5])("a character is never cut, whatever the pieces (%i)", async (size) => {
  for (let head = 0; head < 9; head += 1) {
    for (let tail = 0; tail < 9; tail += 1) {
      const output = new CappedOutput({ headBytes: head, tailBytes: tail });
      const text = "aé東😀".repeat(10);
      await feed(output, Buffer.from(text), size);
      const snapshot = output.snapshot();
      expect(snapshot.text).not.toContain("\uFFFD");
      const [before = "", after = ""] = snapshot.text.split(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
      expect(text.startsWith(before)).toBe(true);
      expect(text.endsWith(after)).toBe(true);
      expect(Buffer.byteLength(before + after) + snapshot.truncatedBytes).toBe(snapshot.totalBytes);
    }
  }
});

test("bytes that are not text become replacement characters, not errors", async () => {
  const output = new CappedOutput();
  await output.push(Buffer.from([0x61, 0xff, 0xfe, 0x62]));
  expect(output.snapshot().text).toBe("a\uFFFD\uFFFDb");
});

describe("taking what is new", () => {
  test("gives each byte once and keeps half a character for the next time", async () => {
    const output = new CappedOutput();
    const bytes = Buffer.from("one 東 two");
    await output.push(bytes.subarray(0, 5));
    expect(output.take()).toEqual({ text: "one ", truncatedBytes: 0 });
    await output.push(bytes.subarray(5));
    expect(output.take()).toEqual({ text: "東 two", truncatedBytes: 0 });
    expect(output.take()).toEqual({ text: "", truncatedBytes: 0 });
  });

  test("is capped the same way and does not touch the whole", async () => {
    const output = new CappedOutput({ headBytes: 2, tailBytes: 2 });
    await output.push(Buffer.from("abcdef"));
    expect(output.take()).toEqual({ text: "ab\n[... 2 bytes left out ...]\nef", truncatedBytes: 2 });
    await output.push(Buffer.from("gh"));
    expect(output.take()).toEqual({ text: "gh", truncatedBytes: 0 });
    expect(output.snapshot()).toMatchObject({ text: "ab\n[... 4 bytes left out ...]\ngh", totalBytes: 8 });
  });

  test("gives up waiting for the rest of a character when the output is closed", async () => {
    const output = new CappedOutput();
    await output.push(Buffer.from([0xe6, 0x9d]));
    expect(output.take().text).toBe("");
    await output.close();
    expect(output.take().text).toBe("\uFFFD");
  });
});

describe("the whole output", () => {
  test("stops at its quota with a mark, and is never larger", async () => {
    for (const quota of [10, 60, 100, 1000]) {
      const spillFolder = spill();
      const output = new CappedOutput({ headBytes: 5, tailBytes: 5, spillFolder, spillQuotaBytes: quota });
      for (let count = 0; count < 100; count += 1) await output.push(Buffer.alloc(50, 120));
      await output.close();
      const whole = await readFile(join(spillFolder, output.snapshot().blob ?? ""));
      const size = whole.length;
      expect(size).toBeLessThanOrEqual(quota);
      if (quota >= 60) expect(whole.toString()).toMatch(/\n\[output beyond \d+ bytes was not stored\]\n$/);
    }
  });

  test("is private, has its name only once it is complete, and is there once however often it is printed", async () => {
    const spillFolder = spill();
    const name = sha256("abcdef");
    for (const _time of [1, 2]) {
      const output = new CappedOutput({ headBytes: 1, tailBytes: 1, spillFolder });
      await output.push(Buffer.from("abcdef"));
      expect(output.snapshot()).not.toHaveProperty("blob");
      await output.close();
      expect(output.snapshot().blob).toBe(name);
      expect(await readdir(spillFolder)).toEqual([name]);
    }
    expect((await stat(join(spillFolder, name))).mode & 0o777).toBe(0o600);
  });

  test("that the disk refuses ends neither the command nor its result", async () => {
    await writeFile(join(folder, "file"), "");
    const output = new CappedOutput({ headBytes: 2, tailBytes: 2, spillFolder: join(folder, "file/below") });
    await output.push(Buffer.from("abcdef"));
    await output.push(Buffer.from("ghijkl"));
    await output.close();
    expect(output.snapshot()).toMatchObject({
      text: "ab\n[... 8 bytes left out ...]\nkl",
      blobError: expect.stringContaining("a part of it is not a folder"),
    });
  });

  test("makes the folder it is in, for its owner alone", async () => {
    const output = new CappedOutput({ headBytes: 2, tailBytes: 2, spillFolder: join(folder, "new/folder") });
    await output.push(Buffer.from("abcdefghijkl"));
    await output.close();
    expect(await readFile(join(folder, "new/folder", sha256("abcdefghijkl")), "utf8")).toBe("abcdefghijkl");
    expect((await stat(join(folder, "new/folder"))).mode & 0o777).toBe(0o700);
  });

  test("makes the writer wait when it is behind, and only then", async () => {
    const output = new CappedOutput({ headBytes: 1, tailBytes: 1, spillFolder: spill() });
    expect(output.push(Buffer.alloc(1000))).toBeUndefined();
    const behind = output.push(Buffer.alloc(4 * 1024 * 1024));
    expect(behind).toBeInstanceOf(Promise);
    await behind;
    expect(output.push(Buffer.alloc(1000))).toBeUndefined();
    await output.close();
  });

  test("holds everything once closing has returned, and closing may be done twice", async () => {
    const spillFolder = spill();
    const output = new CappedOutput({ headBytes: 1, tailBytes: 1, spillFolder });
    await feed(output, Buffer.alloc(3_000_000, 97), 65_536);
    await Promise.all([output.close(), output.close()]);
    await output.close();
    expect((await stat(join(spillFolder, output.snapshot().blob ?? ""))).size).toBe(3_000_000);
    await output.push(Buffer.from("late"));
    expect(output.snapshot().totalBytes).toBe(3_000_000);
  });
});

describe("live text", () => {
  test("is decoded across pieces", async () => {
    const seen: string[] = [];
    const output = new CappedOutput({ onText: (delta) => seen.push(delta) });
    await feed(output, Buffer.from("é東😀"), 1);
    await output.close();
    expect(seen.join("")).toBe("é東😀");
  });

  test("of a flood is thinned out, with the number of bytes that were not shown", async () => {
    let shown = 0;
    const marks: number[] = [];
    const output = new CappedOutput({
      onText: (delta) => {
        shown += delta.length;
        for (const match of delta.matchAll(/\[\.\.\. (\d+) bytes not shown live \.\.\.\]/g))
          marks.push(Number(match[1]));
      },
    });
    for (let count = 0; count < 200; count += 1) await output.push(Buffer.alloc(65_536, 97));
    await output.close();
    expect(shown).toBeLessThan(200 * 65_536);
    const withoutMarks =
      shown - marks.reduce((sum, bytes) => sum + `\n[... ${bytes} bytes not shown live ...]\n`.length, 0);
    expect(withoutMarks + marks.reduce((sum, bytes) => sum + bytes, 0)).toBe(200 * 65_536);
  });
});
