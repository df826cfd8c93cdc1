import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { messagesOf } from "./messages.ts";
import { isTestFile, parseSource, sourceFiles } from "./source-files.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Phrases that the second table of the glossary replaces, as far as they are never right in a message. */
const REPLACED =
  /\b(mend|mended|walls|walled|wish|wishes|desk|whoever|somebody|strangers?|(goes|go|going) on(?! record)|(is|are|was|were|be|been) told|is none of|stands by|waits no longer|was not heard|nobody answers|takes no words|made anew|unless said)\b/i;

test("the glossary has each word once, in the order of the alphabet", () => {
  const [words = ""] = readFileSync(`${ROOT}docs/glossary.md`, "utf8").split("These words are not used");
  const rows = words.split("\n").flatMap((line) => /^\| ([a-z][^|]*?) +\|/.exec(line)?.[1] ?? []);
  expect(rows.length).toBeGreaterThan(80);
  expect(rows).toEqual([...new Set(rows)].toSorted((a, b) => a.localeCompare(b, "en")));
});

test("no message of the program has a phrase that the glossary replaces", () => {
  const files = sourceFiles(ROOT).filter((path) => path.startsWith("packages/") && !isTestFile(path));
  const messages = files.flatMap((path) =>
    messagesOf(parseSource(ROOT, path)).map(({ line, text }) => `${path}:${line}: ${text}`),
  );
  expect(messages.length).toBeGreaterThan(3000);
  expect(messages.filter((message) => REPLACED.test(message))).toEqual([]);
});

test("14: no page for users has one either", () => {
  const names = readdirSync(`${ROOT}docs/use`).filter((name) => name.endsWith(".md"));
  const pages = names.map((name) => `docs/use/${name}`);
  expect(pages.length).toBeGreaterThan(20);
  const lines = ["README.md", ...pages].flatMap((page) =>
    readFileSync(`${ROOT}${page}`, "utf8")
      .split("\n")
      .map((line, index) => `${page}:${index + 1}: ${line}`),
  );
  expect(lines.filter((line) => REPLACED.test(line))).toEqual([]);
});
