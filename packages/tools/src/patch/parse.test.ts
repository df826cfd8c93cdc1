import { expect, test } from "vitest";
import { parsePatch } from "./parse.ts";

test("a patch with every kind of operation is read in order", () => {
  const operations = parsePatch(`*** Begin Patch
*** Add File: new.txt
+one
+
+two
*** Delete File: old.txt
*** Update File: a/b.txt
*** Move to: a/c.txt
@@ class A
@@ def f():
 context
-old
+new
@@
-gone
*** End of File
*** Update File: plain.txt
-x
+y
*** End Patch`);
  expect(operations).toEqual([
    { kind: "add", path: "new.txt", content: "one\n\ntwo\n" },
    { kind: "delete", path: "old.txt" },
    {
      kind: "update",
      path: "a/b.txt",
      moveTo: "a/c.txt",
      chunks: [
        {
          contexts: ["class A", "def f():"],
          oldLines: ["context", "old"],
          newLines: ["context", "new"],
          isAtEnd: false,
        },
        { contexts: [], oldLines: ["gone"], newLines: [], isAtEnd: true },
      ],
    },
    {
      kind: "update",
      path: "plain.txt",
      chunks: [{ contexts: [], oldLines: ["x"], newLines: ["y"], isAtEnd: false }],
    },
  ]);
});

test("a heredoc around the patch, blank lines and CRLF do not matter", () => {
  const bare = parsePatch("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch");
  expect(parsePatch("<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n")).toEqual(bare);
  expect(parsePatch("\n\n*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n\r\n")).toEqual(bare);
  expect(parsePatch("*** Begin Patch\n\n*** Add File: a\n+x\n\n*** End Patch")).toEqual(bare);
});

test("a hunk header of a unified diff is not taken for a context line", () => {
  const [operation] = parsePatch("*** Begin Patch\n*** Update File: a\n@@ -1,2 +1,2 @@ f()\n-x\n+y\n*** End Patch");
  expect(operation).toMatchObject({ chunks: [{ contexts: [], oldLines: ["x"], newLines: ["y"] }] });
});

test("a context line that lost its leading space is an empty line", () => {
  const [operation] = parsePatch("*** Begin Patch\n*** Update File: a\n a\n\n-b\n*** End Patch");
  expect(operation).toMatchObject({ chunks: [{ oldLines: ["a", "", "b"], newLines: ["a", ""] }] });
});

test.each([
  ["no begin", "*** Add File: a\n+x\n*** End Patch", "first line"],
  ["no end", "*** Begin Patch\n*** Add File: a\n+x", "last line"],
  ["nothing in it", "*** Begin Patch\n*** End Patch", "changes no file"],
  ["an unknown header", "*** Begin Patch\n*** Rename File: a\n*** End Patch", "line 2"],
  ["an empty path", "*** Begin Patch\n*** Delete File:  \n*** End Patch", "line 2"],
  ["a line without a sign", "*** Begin Patch\n*** Update File: a\n-x\nhello\n*** End Patch", "line 4"],
  ["an update without lines", "*** Begin Patch\n*** Update File: a\n*** End Patch", "has no lines"],
  ["a chunk without lines", "*** Begin Patch\n*** Update File: a\n@@ f\n*** End Patch", "without lines"],
  ["text after the end", "*** Begin Patch\n*** Delete File: a\n*** End Patch\nrm -rf /\nls", "text after"],
  ["no patch at all", "", "first line"],
])("a patch with %s is refused and the line is named", (_name, patch, message) => {
  expect(() => parsePatch(patch)).toThrow(message);
});

test("random damage to a patch is refused or read, never a crash of another kind", () => {
  const sound = "*** Begin Patch\n*** Update File: a\n@@ f\n x\n-y\n+z\n*** Add File: b\n+1\n*** End Patch\n";
  const random = generator(7);
  for (let round = 0; round < 2000; round += 1) {
    const at = Math.floor(random() * sound.length);
    const damaged =
      sound.slice(0, at) +
      String.fromCharCode(Math.floor(random() * 0x3000)) +
      sound.slice(at + Math.floor(random() * 9));
    try {
      expect(parsePatch(damaged).length).toBeGreaterThan(0);
    } catch (error) {
      expect(error).toMatchObject({ code: "tool.invalid-arguments" });
    }
  }
});

function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
