import { expect, test } from "vitest";
import { unifiedDiff } from "./unified-diff.ts";

test("a change is shown with three lines around it and true line numbers", () => {
  const before = Array.from({ length: 12 }, (_, index) => `${index + 1}\n`).join("");
  expect(unifiedDiff(before, before.replace("6\n", "six\nsix and a half\n")).diff).toBe(
    "@@ -3,7 +3,8 @@\n 3\n 4\n 5\n-6\n+six\n+six and a half\n 7\n 8\n 9\n",
  );
});

test("far changes have hunks of their own", () => {
  const before = Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join("");
  const { diff } = unifiedDiff(before, before.replace("2\n", "two\n").replace("28\n", "x\n"));
  expect(diff.match(/^@@.*$/gm)).toEqual(["@@ -1,5 +1,5 @@", "@@ -25,6 +25,6 @@"]);
});

test("new, removed and unchanged files, and a missing final newline", () => {
  expect(unifiedDiff("", "a\nb\n").diff).toBe("@@ -0,0 +1,2 @@\n+a\n+b\n");
  expect(unifiedDiff("a\n", "").diff).toBe("@@ -1 +0,0 @@\n-a\n");
  expect(unifiedDiff("a\n", "a\n").diff).toBe("");
  expect(unifiedDiff("a", "a\n").diff).toBe("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
});

test("a diff carries exactly the change it was made from", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = generator(seed);
    const before = randomText(random);
    const after =
      random() < 0.5 ? randomText(random) : before.replaceAll("b\n", () => (random() < 0.5 ? "c\nb\n" : ""));
    expect(patched(before, unifiedDiff(before, after).diff), `seed ${seed}`).toBe(after);
  }
});

test("a large diff is cut at a line and says how much is missing", () => {
  const after = "0123456789abcdef\n".repeat(20_000);
  const { diff, diffTruncatedBytes } = unifiedDiff("", after);
  expect(Buffer.byteLength(diff)).toBeLessThanOrEqual(64 * 1024);
  expect(diff.endsWith("\n")).toBe(true);
  expect(Buffer.byteLength(diff) + (diffTruncatedBytes ?? 0)).toBe(
    Buffer.byteLength("@@ -0,0 +1,20000 @@\n") + 18 * 20_000,
  );
});

test("texts without a common line take bounded time", () => {
  const before = Array.from({ length: 20_000 }, (_, index) => `old ${index}\n`).join("");
  const after = Array.from({ length: 20_000 }, (_, index) => `new ${index}\n`).join("");
  const startedAt = performance.now();
  unifiedDiff(before, after);
  expect(performance.now() - startedAt).toBeLessThan(2000);
});

function randomText(random: () => number): string {
  const lines = Array.from({ length: Math.floor(random() * 40) }, () => "abcd"[Math.floor(random() * 4)] ?? "a");
  return lines.length === 0 ? "" : lines.join("\n") + (random() < 0.8 ? "\n" : "");
}

/** A strict applier that trusts nothing but the hunk headers and lines. */
function patched(before: string, diff: string): string {
  const source = before.split(/(?<=\n)/).filter((line) => line !== "");
  const result: string[] = [];
  let at = 0;
  for (const hunk of diff.split(/^(?=@@ )/m).filter((part) => part !== "")) {
    const [header = "", ...lines] = hunk.split(/(?<=\n)/);
    const match = /^@@ -(\d+)(?:,(\d+))? /.exec(header);
    const start = Number(match?.[1]) - (match?.[2] === "0" ? 0 : 1);
    result.push(...source.slice(at, start));
    at = start;
    lines.forEach((line, index) => {
      if (line.startsWith("\\")) return;
      const text = lines[index + 1]?.startsWith("\\") === true ? line.slice(1, -1) : line.slice(1);
      if (line.startsWith("+")) result.push(text);
      else {
        expect(source[at]).toBe(text);
        if (line.startsWith(" ")) result.push(text);
        at += 1;
      }
    });
  }
  return [...result, ...source.slice(at)].join("");
}

function generator(seed: number): () => number {
  let state = seed * 7919;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
