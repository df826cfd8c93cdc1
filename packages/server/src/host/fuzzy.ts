/** How well a path matches a query: its letters in order, better together, better where a word begins. */
export interface Fit {
  readonly score: number;
  /** Which characters of the path were meant. */
  readonly indices: readonly number[];
}

const LETTER = 16;
const TOGETHER = 8;
const WORD_BEGIN = 8;
const IN_NAME = 4;
const MAX_GAP = 3;

/** undefined: it does not fit. Case matters only where the query has capitals. */
export function fuzzyFit(query: string, path: string): Fit | undefined {
  const isExact = query !== query.toLowerCase();
  const [wanted, text] = isExact ? [query, path] : [query.toLowerCase(), path.toLowerCase()];
  if (text.length !== path.length) return undefined;
  const nameAt = path.lastIndexOf("/") + 1;
  // The name of a file is what people remember of it; the folders count when the name alone does not fit.
  const fits = [nameAt, 0].map((from) => fitFrom(wanted, text, from)).filter((found) => found !== undefined);
  const scored = fits.map((indices) => ({ indices, score: scoreOf(indices, path, nameAt) }));
  return scored.toSorted((a, b) => b.score - a.score)[0];
}

/** Forwards to the first end, then backwards from there: the shortest piece that holds all letters. */
function fitFrom(wanted: string, text: string, from: number): readonly number[] | undefined {
  let at = from - 1;
  for (const letter of wanted) {
    at = text.indexOf(letter, at + 1);
    if (at < 0) return undefined;
  }
  const indices: number[] = [];
  for (const letter of Array.from(wanted).reverse()) {
    at = text.lastIndexOf(letter, at);
    indices.unshift(at);
    at -= 1;
  }
  return indices;
}

function scoreOf(indices: readonly number[], path: string, nameAt: number): number {
  let score = 0;
  for (const [position, index] of indices.entries()) {
    const before = indices[position - 1];
    score += LETTER + (index >= nameAt ? IN_NAME : 0);
    if (index === 0 || /[/_\-. ]/.test(path.charAt(index - 1))) score += WORD_BEGIN;
    if (before === undefined) continue;
    score += before === index - 1 ? TOGETHER : -Math.min(MAX_GAP, index - before - 1);
  }
  return score;
}
