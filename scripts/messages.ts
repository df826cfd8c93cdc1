/**
 * `npm run messages`: every text of the program that people may read (errors, help, notices, prompts), by file and line,
 * so that all of it can be read as a whole. Any text of product code with two words or more counts: which of them reach a
 * person is for the reader to see, and none is missed. `${…}` stands for a value.
 * Usage: node scripts/messages.ts [folder or file, counted from the root]
 */
import { fileURLToPath } from "node:url";
import { Visitor } from "oxc-parser";
import { isTestFile, parseSource, sourceFiles, type Source } from "./source-files.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Two words in a row, in letters, or a word with a colon before a value: `sandbox: ${…}`. */
const HAS_WORDS = /[A-Za-z]{2,}(?:[,;:]? +[A-Za-z]|: +\$\{)/;

export interface Message {
  readonly line: number;
  readonly text: string;
}

export function messagesOf(source: Source): readonly Message[] {
  const found: Message[] = [];
  const add = (start: number, text: string): void => {
    if (HAS_WORDS.test(text)) found.push({ line: source.lineAt(start), text });
  };
  new Visitor({
    Literal: ({ start, value }) => {
      if (typeof value === "string") add(start, value);
    },
    TemplateLiteral: ({ start, quasis }) => {
      add(start, quasis.map(({ value }) => value.cooked ?? value.raw).join("${…}"));
    },
  }).visit(source.program);
  return found;
}

function main(below = "packages"): void {
  const files = sourceFiles(ROOT).filter((path) => path.startsWith(below) && !isTestFile(path));
  if (files.length === 0) {
    console.error(`no product code below ${below}; name a folder or file counted from the root, such as packages/cli`);
    process.exitCode = 2;
    return;
  }
  for (const path of files) {
    for (const { line, text } of messagesOf(parseSource(ROOT, path))) {
      console.log(`${path}:${line}: ${text.replaceAll("\n", "\\n")}`);
    }
  }
}

if (import.meta.main) main(process.argv[2]);
