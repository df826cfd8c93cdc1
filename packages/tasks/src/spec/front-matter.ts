/** Markdown that begins with YAML between two lines of `---`. */

export interface FrontMatter {
  /** The text between the lines, and its offset; undefined: there is none. */
  readonly front: { readonly text: string; readonly base: number } | undefined;
  /** The text after it, and its offset. */
  readonly body: { readonly text: string; readonly base: number };
  /** The first line opens front matter and no line closes it; the whole text is the body. */
  readonly isUnclosed: boolean;
}

const OPEN = /^---[ \t]*\r?\n/;
const CLOSE = /^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/gm;

/** Offsets are those of the given text. A byte order mark is skipped. */
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
