/**
 * Text that is safe to show in a terminal: nothing in it can move the cursor, change a title, hide or reorder what is
 * shown. Newline and tab stay; every other control, format or invisible character is written as an escape.
 *
 * Patterns with classes of characters are functions: to read one takes up to a fifth of a millisecond, every command loads this
 * file, and most runs show nothing.
 */

/**
 * Controls (C0, DEL, C1), format characters (bidi, zero-width, tags), lone surrogates, line and paragraph separators and
 * whatever is drawn as nothing: variation selectors too, which can stand anywhere and carry hidden text.
 */
const unsafe = (): RegExp => /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Selects the coloured emoji; the same sign is drawn without it, so it is left out rather than escaped. */
const EMOJI_SELECTOR = /(?<=\p{Extended_Pictographic})\u{FE0F}/gu;

/** Most text is: what follows would find nothing in it, and to compile its patterns takes a run a millisecond and a half. */
const PLAIN = /^[\n\t\x20-\x7e]*$/;

export function visibleText(text: string): string {
  if (PLAIN.test(text)) return withoutMark(text);
  return withoutMark(text.replace(EMOJI_SELECTOR, "").replace(unsafe(), escape));
}

/**
 * Begins the lines in which Heddle reports a verdict. No visible text contains it, so that no other text can look like such
 * a line, wherever a terminal breaks it. Three ASCII characters: visible without colour and in every locale.
 */
export const MARK = "=#=";

/** The same with characters that look like these ("＝＃＝"), and with accents on them. */
const marks = (): RegExp =>
  /[=\u{207C}\u{208C}\u{FE66}\u{FF1D}]\p{M}{0,4}[#\u{FE5F}\u{FF03}]\p{M}{0,4}[=\u{207C}\u{208C}\u{FE66}\u{FF1D}]/gu;

/** Only the last character is escaped: the text before it may have been printed already. */
export function withoutMark(text: string): string {
  if (PLAIN.test(text) && !text.includes(MARK)) return text;
  return text.replace(marks(), (found) => `${found.slice(0, -1)}${escape(found.slice(-1))}`);
}

/**
 * For a question such as an approval: one line, newlines and tabs escaped too, and long runs of blanks counted instead of
 * shown, so that nothing can be pushed out of sight.
 */
export function visibleLine(text: string): string {
  return visibleText(text)
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t")
    .replace(longBlank(), (blanks) => ` [${blanks.length} blanks] `);
}

/** In quotes unless it is plain, so that no name in a list or a sentence can end before it does, or look like several. */
export function visibleName(name: string): string {
  return plainName().test(name) ? name : visibleLine(JSON.stringify(name));
}

/** Of a path in a list or a sentence: as long as folders nest by hand. */
const MAX_PATH_CHARS = 160;

/** The same of a path that is only to be recognized: a long one without folders of its middle. */
export function visiblePath(path: string): string {
  if (path.length <= MAX_PATH_CHARS) return visibleName(path);
  const half = MAX_PATH_CHARS / 2;
  const [begin, end] = [path.slice(0, half), path.slice(-half)];
  const parts = [begin.slice(0, begin.lastIndexOf("/") + 1), end.slice(Math.max(0, end.indexOf("/")))];
  return plainName().test(parts.join("")) ? parts.join("…") : visibleName(parts.join("…"));
}

const plainName = (): RegExp => /^[\p{L}\p{N}_@%+=:./~#$-]+$/u;

/** Spaces of every width, and the braille cell without dots. */
const longBlank = (): RegExp => /[\p{Zs}\u{2800}]{9,}/gu;

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}
