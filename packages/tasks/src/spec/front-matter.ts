/** Markdown with YAML between two lines of `---` at its very beginning. */

export interface FrontMatter {
  /** What stands between the lines, and where it begins; undefined: the text has none. */
  readonly front: { readonly text: string; readonly base: number } | undefined;
  /** What follows, untouched, and where it begins. */
  readonly body: { readonly text: string; readonly base: number };
  /** The first line opens front matter and no line closes it; the whole text is the body. */
  readonly isUnclosed: boolean;
}

const OPEN = /^---[ \t]*\r?\n/;
const CLOSE = /^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/gm;

/** Offsets are those of the text that was given. A byte order mark is passed over. */
export function readFrontMatter(text: string): FrontMatter {
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const whole = { text: text.slice(start), base: start };
  const open = OPEN.exec(whole.text);
  if (open === null) return { front: undefined, body: whole, isUnclosed: false };
  const from = start + open[0].length;
  CLOSE.lastIndex = from;
  const close = CLOSE.exec(text);
  if (close === null) return { front: undefined, body: whole, isUnclosed: true };
  const to = close.index + close[0].length;
  return {
    front: { text: text.slice(from, close.index), base: from },
    body: { text: text.slice(to), base: to },
    isUnclosed: false,
  };
}
