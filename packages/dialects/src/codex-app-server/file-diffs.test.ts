import { expect, test } from "vitest";
import type { FileChangeEntry } from "@heddle/protocol";
import { gitDiff, shownDiff } from "./file-diffs.ts";

const ADDED: FileChangeEntry = { path: "/ws/a/new.txt", kind: "add", diff: "@@ -0,0 +1,2 @@\n+one\n++two\n" };
const DELETED: FileChangeEntry = { path: "/ws/gone.txt", kind: "delete", diff: "@@ -1 +0,0 @@\n-bye\n" };
const CHANGE = "@@ -1,2 +1,2 @@\n-one\n+eins\n two\n";

test("an added or deleted file is told by its content", () => {
  expect(shownDiff(ADDED)).toBe("one\n+two\n");
  expect(shownDiff(DELETED)).toBe("bye\n");
  expect(shownDiff({ ...ADDED, diff: "+hello" })).toBe("hello\n");
  expect(shownDiff({ ...ADDED, diff: "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n" })).toBe("x");
  expect(shownDiff({ ...DELETED, diff: "" })).toBe("");
});

test("a change is told as it is, and a move names the new path", () => {
  expect(shownDiff({ path: "/ws/old.txt", kind: "update", diff: CHANGE })).toBe(CHANGE);
  const moved = { path: "/ws/old.txt", kind: "update", diff: CHANGE, movedTo: "/ws/new.txt" } as const;
  expect(shownDiff(moved)).toBe(`${CHANGE}\n\nMoved to: /ws/new.txt`);
  expect(gitDiff(moved, "/ws")).toBe(`diff --git a/old.txt b/new.txt\n--- a/old.txt\n+++ b/new.txt\n${CHANGE}`);
});

test("the diff of a turn has the heads that git writes", () => {
  expect(gitDiff(ADDED, "/ws")).toBe(
    "diff --git a/a/new.txt b/a/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a/new.txt\n@@ -0,0 +1,2 @@\n+one\n++two\n",
  );
  expect(gitDiff(DELETED, "/ws")).toBe(
    "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
  );
});
