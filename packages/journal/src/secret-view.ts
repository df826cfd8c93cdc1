/**
 * Text as secrets are looked for in it: without terminal control sequences, which may stand before or inside a token, and
 * with percent-encoded characters decoded, which may stand around one. Every character knows where it came from, so that
 * what is found is taken out of the text as it was.
 */

export interface SecretView {
  readonly text: string;
  /** Where the character begins in the text as it was. */
  startOf(index: number): number;
  /** Where the character ends there. */
  endOf(index: number): number;
}

/**
 * A control sequence (ESC, bracket, parameters), another short escape, or one encoded character,
 * `%253D` too. The pieces of each alternative have no character in common, and each begins with one that occurs nowhere
 * else in it: every character is looked at a bounded number of times.
 */
const ENCODED =
  // eslint-disable-next-line no-control-regex
  /\u001B\[[0-?]{0,64}[ -/]{0,8}[@-~]|\u001B(?:[ -/]{1,8}[0-~])?|%(?:25){0,8}([0-9A-Fa-f]{2})/g;

/** The beginning of one, at the end of what has come. */
// eslint-disable-next-line no-control-regex
const CUT_OFF = /(?:\u001B(?:\[[0-?]{0,64})?[ -/]{0,8}|%(?:25){0,8}[0-9A-Fa-f]?)$/;
const MAX_ENCODED_CHARS = 80;

export function secretView(raw: string): SecretView {
  const pieces: string[] = [];
  const starts: number[] = [];
  let from = 0;
  let size = 0;
  const keep = (text: string, start: number, width: number): void => {
    pieces.push(text);
    starts.push(size, start, width);
    size += text.length;
  };
  for (const found of raw.matchAll(ENCODED)) {
    const decoded = found[1] === undefined ? "" : String.fromCharCode(Number.parseInt(found[1], 16));
    // Half of a character beyond ASCII stays as it is written.
    if (decoded > "\u007F") continue;
    if (found.index > from) keep(raw.slice(from, found.index), from, 1);
    from = found.index + found[0].length;
    if (decoded !== "") keep(decoded, found.index, found[0].length);
  }
  if (pieces.length === 0 && from === 0) {
    return { text: raw, startOf: (index) => index, endOf: (index) => index + 1 };
  }
  if (from < raw.length) keep(raw.slice(from), from, 1);
  return { text: pieces.join(""), ...origins(starts) };
}

/** How much of the end could be the beginning of a control sequence or an encoded character. */
export function cutOffLength(raw: string): number {
  return CUT_OFF.exec(raw.slice(-MAX_ENCODED_CHARS))?.[0].length ?? 0;
}

/** `runs`: for each piece its place in the view, its place before, and how many characters there made one. */
function origins(runs: readonly number[]): Pick<SecretView, "startOf" | "endOf"> {
  const pieceOf = (index: number): number => {
    let [low, high] = [0, runs.length / 3 - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((runs[middle * 3] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return low * 3;
  };
  const startOf = (index: number): number => {
    const piece = pieceOf(index);
    return (runs[piece + 1] ?? 0) + index - (runs[piece] ?? 0);
  };
  return { startOf, endOf: (index) => startOf(index) + (runs[pieceOf(index) + 2] ?? 1) };
}
