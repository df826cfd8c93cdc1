import { expect, test } from "vitest";
import { changedWords, countLines, diffRows } from "./diff-lines.ts";
import { printed } from "./sgr.ts";
import { shown } from "./shown.ts";
import { strangers } from "../words/questions.ts";

const lines = (text: string): string[] =>
  printed(text).lines.map((pieces) => pieces.map((piece) => piece.text).join(""));

test("colours are kept, what moves a cursor or changes a terminal is left out and counted", () => {
  const { lines: found, dropped } = printed("\u001b[1;31mred\u001b[0m plain\u001b[2J\u001b]0;title\u0007\n");
  expect(found).toEqual([
    [
      { text: "red", style: "b f1" },
      { text: " plain", style: "" },
    ],
  ]);
  expect(dropped).toBe(2);
});

test("a line that is written over is shown as it ends", () => {
  expect(lines("10%\r20%\r100%\ndone")).toEqual(["100%", "done"]);
  expect(lines("secret\r\u001b[Kclean")).toEqual(["clean"]);
  expect(lines("ab\b\bxy")).toEqual(["xy"]);
});

test("controls, bidi and invisible letters are shown as escapes", () => {
  expect(lines("a\u202Eb\u200Bc\u0001")).toEqual(["a\\u{202e}b\\u{200b}c\\x01"]);
  expect(shown("x\u202Ey")).toBe("x\\u{202e}y");
});

test("letters that only look like those of a command are named", () => {
  expect(strangers("rm -rf /tmp")).toEqual([]);
  expect(strangers("c\u0430t")).toEqual(["\u0430 U+0430"]);
});

test("a diff has the numbers of both sides", () => {
  const diff = "--- a/x\n+++ b/x\n@@ -2,3 +2,3 @@\n one\n-two\n+TWO\n three\n\\ No newline at end of file\n";
  expect(diffRows(diff).map(({ sign, before, after, text }) => [sign, before, after, text])).toEqual([
    ["@", undefined, undefined, ""],
    [" ", 2, 2, "one"],
    ["-", 3, undefined, "two"],
    ["+", undefined, 3, "TWO"],
    [" ", 4, 4, "three"],
  ]);
  expect(countLines(diff)).toEqual({ added: 1, removed: 1 });
});

test("a line that took the place of another marks the words that changed, where both have some in common", () => {
  const marked = (...changed: readonly string[]): readonly string[] => {
    const rows = diffRows(`@@ -1 +1 @@\n${changed.join("\n")}\n`);
    return [...changedWords(rows)].map(([at, [from, to]]) => rows[at]?.text.slice(from, to) ?? "");
  };
  expect(marked("-the red sock", "+the blue sock")).toEqual(["red", "blue"]);
  expect(marked("-const größe = 1;", "+const grössen = 1;")).toEqual(["größe", "grössen"]);
  // Something was added, so nothing of the line before differs.
  expect(marked("-call(a)", "+call(a, b)")).toEqual(["", ", b"]);
  expect(marked("-one", "+two")).toEqual([]);
  // Nobody knows which line took whose place.
  expect(marked("-a b", "-c d", "+a e")).toEqual([]);
  expect(marked(`-${"x ".repeat(1_500)}`, `+${"y ".repeat(1_500)}`)).toEqual([]);
});
