import { expect, test } from "vitest";
import { joinShellWords } from "./shell-words.ts";

test.each([
  [["/bin/bash", "-c", "echo hello; exit 3"], `/bin/bash -c 'echo hello; exit 3'`],
  [["ls", "-la", "src/a.ts"], "ls -la src/a.ts"],
  [["a", ""], "a ''"],
  [["bash", "-lc", "echo 'it'"], `bash -lc "echo 'it'"`],
  [["x", "a\\b"], String.raw`x "a\\b"`],
  [["x", `say "hi"`], `x 'say "hi"'`],
  [["x", "$HOME's"], `x '$HOME'"'s"`],
  [["x", "^a"], "x '^a'"],
  [["x", "é"], "x 'é'"],
])("%j is written %s", (words, text) => {
  expect(joinShellWords(words)).toBe(text);
});
