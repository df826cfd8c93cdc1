import { setImmediate as breathe } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRanking } from "./rank-files.ts";

/** Long, alike, and fitting a long query in many ways: what somebody would make who wants a search to take long. */
const HOSTILE = Array.from({ length: 20_000 }, (_, index) => `${"a".repeat(300)}b/${"ab".repeat(50)}-${index}.ts`);
const QUERY = `${"a".repeat(120)}b`;
const isWanted = (): boolean => true;

test("15.13: a search through paths made to take long lets others work in between", async () => {
  let isDone = false;
  const searching = createRanking(Infinity)({ query: QUERY, lists: [{ root: "/r", files: HOSTILE }], isWanted });
  const done = searching.finally(() => {
    isDone = true;
  });
  let turns = 0;
  for (; !isDone; turns += 1) await breathe();
  expect(turns).toBeGreaterThan(4);
  expect(await done).toHaveLength(50);
});

test("15.13: a search that takes too long ends with what it has found", async () => {
  let looked = 0;
  const counted = (): boolean => {
    looked += 1;
    return true;
  };
  const found = await createRanking(0)({
    query: QUERY,
    lists: [{ root: "/r", files: HOSTILE }],
    isWanted: counted,
  });
  expect(found).not.toEqual([]);
  expect(looked).toBeLessThan(HOSTILE.length);
});

test("15.13: searches run one after the other, and one that nobody wants any more does nothing", async () => {
  const rank = createRanking();
  const ends: string[] = [];
  let isFirstWanted = true;
  const first = rank({
    query: QUERY,
    lists: [{ root: "/r", files: HOSTILE }],
    isWanted: () => isFirstWanted,
  }).then(() => ends.push("first"));
  const second = rank({ query: "b", lists: [{ root: "/r", files: ["a", "b", "abc/b"] }], isWanted });
  const never = rank({ query: "b", lists: [{ root: "/r", files: ["b"] }], isWanted: () => false });
  isFirstWanted = false;
  expect((await second).map(({ file }) => file)).toEqual(["b", "abc/b"]);
  expect(ends).toEqual(["first"]);
  expect(await never).toEqual([]);
  await first;
});

test("of more files than are kept the best ones are found, wherever they stand", async () => {
  const files = Array.from({ length: 5_000 }, (_, index) => `some/folder/p-e-e-r-${index}`);
  files.splice(4_321, 0, "src/peer.ts");
  const found = await createRanking()({ query: "peer", lists: [{ root: "/r", files }], isWanted });
  expect(found).toHaveLength(50);
  expect(found[0]).toMatchObject({ root: "/r", file: "src/peer.ts" });
});
