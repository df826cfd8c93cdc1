import { expect, test } from "vitest";
import { applyChunks } from "./apply-chunks.ts";
import { parsePatch, type PatchChunk } from "./parse.ts";
import { unifiedDiff } from "./unified-diff.ts";

function apply(text: string, chunks: string): string {
  const [operation] = parsePatch(`*** Begin Patch\n*** Update File: f\n${chunks}\n*** End Patch`);
  if (operation?.kind !== "update") throw new Error("not an update");
  return applyChunks(text, operation.chunks, "f");
}

test("chunks are applied in order, each after the one before", () => {
  expect(apply("a\nx\nb\nx\nc\n", " a\n-x\n+1\n@@\n-x\n+2")).toBe("a\n1\nb\n2\nc\n");
});

test("a line named after @@ says where the search begins", () => {
  expect(apply("f:\n  x\ng:\n  x\n", "@@ g:\n-  x\n+  y")).toBe("f:\n  x\ng:\n  y\n");
  expect(apply("A\n f\n  x\nB\n f\n  x\n", "@@ B\n@@  f\n-  x\n+  y")).toBe("A\n f\n  x\nB\n f\n  y\n");
});

test("lines without a position of their own go after the named line, or to the end", () => {
  expect(apply("a\nb\n", "@@ a\n+new")).toBe("a\nnew\nb\n");
  expect(apply("a\nb\n", "+new")).toBe("a\nb\nnew\n");
});

test("a chunk at the end of the file takes the last position that fits", () => {
  expect(apply("x\ny\nx\n", "-x\n+z\n*** End of File")).toBe("x\ny\nz\n");
  expect(apply("x\ny\nx\n", "-x\n+z")).toBe("z\ny\nx\n");
});

test.each([
  ["trailing whitespace", "one  \ntwo\n", " one\n-two\n+2", "one  \n2\n"],
  ["indentation", "\t\tone\n    two\n", " one\n-two\n+    2", "\t\tone\n    2\n"],
  ["typographic punctuation", "it’s “so” – yes\ntwo\n", ' it\'s "so" - yes\n-two\n+2', "it’s “so” – yes\n2\n"],
  ["spaces of other kinds", "a\u00A0b\ntwo\n", " a b\n-two\n+2", "a\u00A0b\n2\n"],
])("%s may differ, and context lines stay as the file has them", (_name, text, chunks, expected) => {
  expect(apply(text, chunks)).toBe(expected);
});

test("an exact match is preferred to an earlier loose one", () => {
  expect(apply("  x\nx\n", "-x\n+y")).toBe("  x\ny\n");
});

test("a blank last line of a chunk may stand for the end of the file", () => {
  expect(apply("a\nb\n", " a\n-b\n+c\n ")).toBe("a\nc\n");
});

test("line ends, a byte order mark and a missing final newline are kept", () => {
  expect(apply("a\r\nb\r\n", "-a\n+x\n+y")).toBe("x\r\ny\r\nb\r\n");
  expect(apply("\uFEFFa\nb\n", "-a\n+x")).toBe("\uFEFFx\nb\n");
  expect(apply("a\nb", "-b\n+c")).toBe("a\nc");
  expect(apply("a\r\nb\nc\n", "-b\n+x")).toBe("a\r\nx\nc\n");
});

test("the whole content can be removed", () => {
  expect(apply("a\n", "-a")).toBe("");
});

test("lines that are not there are named, and nothing comes back", () => {
  expect(() => apply("a\nb\n", "-c\n+d")).toThrow(/f: these lines were not found in the file:\nc/);
  expect(() => apply("a\nb\n", "@@ nowhere\n-a")).toThrow(/nowhere/);
  expect(() => apply("a\n", "-a\n-b\n-c")).toThrow(/not found/);
});

test("random edits, written as a patch with context, come out as the edited text", () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    const random = generator(seed);
    const before = Array.from({ length: 1 + Math.floor(random() * 60) }, (_, index) => `line ${index} ${seed}`);
    const after = edited(before, random);
    const chunks = chunksOf(before, after);
    if (chunks.length === 0) continue;
    const end = random() < 0.8 ? "\n" : "";
    const text = before.join("\n") + end;
    const expected = after.length === 0 ? "" : after.join("\n") + end;
    expect(applyChunks(text, chunks, "f"), `seed ${seed}`).toBe(expected);
    // The same with whitespace the model did not copy faithfully.
    const noisy = `${before.map((line) => `${line}${random() < 0.3 ? "  " : ""}`).join("\n")}${end}`;
    const result = applyChunks(noisy, chunks, "f");
    expect(
      result.split("\n").map((line) => line.trimEnd()),
      `noisy seed ${seed}`,
    ).toEqual(expected.split("\n"));
  }
});

/** Insertions, removals and replacements at random places. */
function edited(lines: readonly string[], random: () => number): string[] {
  const result: string[] = [];
  for (const line of lines) {
    const chance = random();
    if (chance < 0.08) result.push(`new ${random()}`, line);
    else if (chance < 0.16) result.push(`changed ${random()}`);
    else if (chance >= 0.22) result.push(line);
  }
  return result;
}

/** Chunks as a model writes them, made from an independent description of the change. */
function chunksOf(before: readonly string[], after: readonly string[]): PatchChunk[] {
  const diff = unifiedDiff(before.map((line) => `${line}\n`).join(""), after.map((line) => `${line}\n`).join("")).diff;
  return diff
    .split(/^@@ .*\n/m)
    .slice(1)
    .map((hunk) => {
      const lines = hunk.split("\n").slice(0, -1);
      return {
        contexts: [],
        oldLines: lines.filter((line) => !line.startsWith("+")).map((line) => line.slice(1)),
        newLines: lines.filter((line) => !line.startsWith("-")).map((line) => line.slice(1)),
        isAtEnd: false,
      };
    });
}

function generator(seed: number): () => number {
  let state = seed * 7919;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
