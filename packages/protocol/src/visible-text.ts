/**
 * Text as people may see it in a terminal: nothing in it can move the cursor, change a title, hide or reorder what is
 * shown. Newline and tab stay; every other control, format or invisible character is written as an escape.
 */

/**
 * Controls (C0, DEL, C1), format characters (bidi, zero-width, tags), lone surrogates, line and paragraph separators and
 * whatever is drawn as nothing. The emoji variation selector stays: it changes a picture, not the text.
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|(?!\u{FE0F})\p{Default_Ignorable_Code_Point}/gu;

export function visibleText(text: string): string {
  return text.replace(UNSAFE, escape);
}

/** For a prompt that must fit one line, such as an approval: newlines and tabs are escaped too. */
export function visibleLine(text: string): string {
  return visibleText(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}
