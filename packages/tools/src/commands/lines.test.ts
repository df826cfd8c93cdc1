import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readLines, type ReadLine } from "./lines.ts";

async function collect(chunks: readonly (string | Buffer)[], maxLineBytes?: number): Promise<ReadLine[]> {
  const source = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  const lines: ReadLine[] = [];
  for await (const line of readLines(source, maxLineBytes === undefined ? {} : { maxLineBytes })) lines.push(line);
  return lines;
}

test("lines come out whole however they were cut", async () => {
  const text = '{"a":"é東😀"}\n\n{"b":2}\r\n';
  for (const size of [1, 2, 3, 7, 100]) {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    expect(await collect(chunks)).toEqual([
      { kind: "line", text: '{"a":"é東😀"}' },
      { kind: "line", text: "" },
      { kind: "line", text: '{"b":2}' },
    ]);
  }
});

test("a line that ends with the stream and not with a newline is known to be partial", async () => {
  expect(await collect(['a\n{"hal'])).toEqual([
    { kind: "line", text: "a" },
    { kind: "partial", text: '{"hal' },
  ]);
});

test("a line above the cap is reported once with its length, and the next one is read", async () => {
  const lines = await collect(["ok\n", "x".repeat(30), "x".repeat(30), "\nafter\n", "y".repeat(21)], 20);
  expect(lines).toMatchObject([
    { kind: "line", text: "ok" },
    { kind: "lineTooLong", bytes: 60, error: { code: "process.line-too-long" } },
    { kind: "line", text: "after" },
    { kind: "lineTooLong", bytes: 21 },
  ]);
});

test("a line of exactly the cap passes", async () => {
  expect(await collect(["x".repeat(20), "\n"], 20)).toEqual([{ kind: "line", text: "x".repeat(20) }]);
});

test("a line of 64 MB keeps memory bounded", async () => {
  const chunk = Buffer.alloc(1024 * 1024, 120);
  async function* source(): AsyncGenerator<Buffer> {
    for (let count = 0; count < 64; count += 1) yield chunk;
    yield Buffer.from("\nlast\n");
  }
  let peak = 0;
  const before = process.memoryUsage().arrayBuffers;
  const kinds: string[] = [];
  for await (const line of readLines(source())) {
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
    kinds.push(line.kind);
  }
  expect(kinds).toEqual(["lineTooLong", "line"]);
  // The chunk is the same each time, so what is counted here is what the reader keeps: at most the cap and one chunk.
  expect(peak).toBeLessThan(20 * 1024 * 1024);
});
