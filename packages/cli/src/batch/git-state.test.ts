import { expect, test } from "vitest";
import { countNumstat, readStatus } from "./git-state.ts";

test("a diffstat counts files and lines; a binary file counts as a file", () => {
  expect(countNumstat("3\t1\ta.txt\0" + "-\t-\timage.png\0" + "10\t0\twith\ttab.txt\0")).toEqual({
    files: 3,
    insertions: 13,
    deletions: 1,
  });
  expect(countNumstat("")).toEqual({ files: 0, insertions: 0, deletions: 0 });
});

test("a status gives commit, branch and whether anything differs", () => {
  expect(readStatus("# branch.oid abc\0# branch.head main\0")).toEqual({
    head: "abc",
    branch: "main",
    is_dirty: false,
  });
  expect(readStatus("# branch.oid (initial)\0# branch.head main\0? new.txt\0")).toEqual({
    head: null,
    branch: "main",
    is_dirty: true,
  });
  expect(readStatus("# branch.oid abc\0# branch.head (detached)\0")).toMatchObject({ branch: null });
});
