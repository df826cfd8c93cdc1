/**
 * A command line for people and programs to read: words joined so that a shell would take them apart again the same way.
 * Quotes fall where Codex puts them: none when none are needed, single ones, and double ones around what holds a single
 * quote or a backslash.
 */
export function joinShellWords(words: readonly string[]): string {
  return words.map(quoteShellWord).join(" ");
}

type Quoting = "none" | "single" | "double";

/** In the order of preference. */
const QUOTINGS: readonly Quoting[] = ["none", "single", "double"];

function quoteShellWord(word: string): string {
  if (word === "") return "''";
  let quoted = "";
  for (let at = 0; at < word.length;) {
    const { end, quoting } = longestRun(word, at);
    quoted += wrap(word.slice(at, end), quoting);
    at = end;
  }
  return quoted;
}

/** How far one way of quoting carries from here. */
function longestRun(word: string, start: number): { readonly end: number; readonly quoting: Quoting } {
  let allowed = QUOTINGS;
  let end = start;
  // A caret is safe only as the first character within single quotes.
  if (word.charAt(start) === "^") {
    allowed = ["single"];
    end += 1;
  }
  for (; end < word.length; end += 1) {
    const character = word.charAt(end);
    const left = allowed.filter((quoting) => holds(quoting, character));
    if (left.length === 0) break;
    allowed = left;
  }
  return { end, quoting: allowed[0] ?? "single" };
}

function holds(quoting: Quoting, character: string): boolean {
  if (quoting === "none") return /[\w+\-./:@\]]/.test(character);
  return quoting === "single" ? !/['^\\]/.test(character) : !/[`$!^]/.test(character);
}

function wrap(text: string, quoting: Quoting): string {
  if (quoting === "none") return text;
  return quoting === "single" ? `'${text}'` : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
