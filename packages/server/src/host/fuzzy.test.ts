import { expect, test } from "vitest";
import { fuzzyFit } from "./fuzzy.ts";

function best(query: string, paths: readonly string[]): string | undefined {
  const fits = paths.flatMap((path) => {
    const fit = fuzzyFit(query, path);
    return fit === undefined ? [] : [{ path, score: fit.score }];
  });
  return fits.toSorted((a, b) => b.score - a.score)[0]?.path;
}

test("a path fits when it has the letters in order, and says which", () => {
  expect(fuzzyFit("at", "a.txt")?.indices).toEqual([0, 2]);
  expect(fuzzyFit("ta", "a.txt")).toBeUndefined();
  expect(fuzzyFit("srcpeer", "src/peer.ts")?.indices).toEqual([0, 1, 2, 4, 5, 6, 7]);
});

test("letters together, at the beginning of a word and in the name of the file count more", () => {
  expect(best("peer", ["src/pet/error.ts", "src/peer.ts", "src/p-e-e-r.ts"])).toBe("src/peer.ts");
  expect(best("test", ["src/latest/one.ts", "src/one.test.ts"])).toBe("src/one.test.ts");
  expect(best("main", ["main/other.ts", "src/main.ts"])).toBe("src/main.ts");
});

test("case counts only where it was typed", () => {
  expect(fuzzyFit("readme", "README.md")).toBeDefined();
  expect(fuzzyFit("README", "readme.md")).toBeUndefined();
});
