/**
 * The words of a text, for the index and for questions to it alike: lower case, without accents, split at everything that is
 * no letter, digit or symbol. Where a script has no spaces each character is a word. No word holds what a store takes for
 * syntax.
 */

/** Of one entry: more than the longest note has. */
const MAX_WORDS = 1_000;
/** Of one word: more is a hash or a blob, told apart by its beginning. */
const MAX_WORD_CHARS = 40;

const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORD = /[a-z0-9]+/g;
/** A function, because to read these classes of characters takes a run that needs none of them 0.4 ms. */
const word = (): RegExp =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[^\0-\x2f\x3a-\x60\x7b-\x7f\p{P}\p{Z}\p{C}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;

/** Each once, in the order of the text. */
export function wordsOf(text: string): readonly string[] {
  const isPlain = ASCII.test(text);
  const even = isPlain ? text.toLowerCase() : text.normalize("NFKD").toLowerCase().replaceAll(/\p{M}/gu, "");
  const words = new Set<string>();
  for (const [found] of even.matchAll(isPlain ? ASCII_WORD : word())) {
    // Never half of a surrogate pair.
    words.add(found.length <= MAX_WORD_CHARS ? found : found.slice(0, MAX_WORD_CHARS).replace(/[\uD800-\uDBFF]$/, ""));
    if (words.size >= MAX_WORDS) break;
  }
  return [...words];
}
