import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { linesOf } from "./bundle-file.ts";

async function read(pieces: Iterable<string | Buffer>): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(Readable.from(pieces))) lines.push(line);
  return lines;
}

test("lines are the same however they are cut into pieces, inside a letter too", async () => {
  const text = "one\n\nzwei ä 😀\nthree";
  const bytes = Buffer.from(text);
  for (const size of [1, 2, 3, 5, 1000]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    expect(await read(pieces)).toEqual(text.split("\n"));
  }
  expect(await read(["one\n"])).toEqual(["one"]);
  expect(await read([])).toEqual([]);
});

test("a line that a stranger made long is read once, not once for each of its pieces", async () => {
  const [piece, count] = ["x".repeat(64 * 1024), 512];
  const before = process.cpuUsage();
  const [line = "", ...more] = await read(Array.from({ length: count }, () => piece));
  const { user, system } = process.cpuUsage(before);
  expect([line.length, more]).toEqual([piece.length * count, []]);
  // Read again with each piece it takes some twenty seconds.
  expect((user + system) / 1e6).toBeLessThan(5);
});
