/**
 * Models see marks in place of secrets. A mark must not be written over the secret, and a text with a mark is not found
 * in the file; both messages explain that, because the model cannot see the difference.
 */
import { HeddleError } from "@heddle/protocol";

const MARK = /\[redacted:[a-z-]{1,40}\]/g;

function marksIn(text: string): readonly string[] {
  return [...new Set(text.match(MARK) ?? [])];
}

/** Throws when `after` has a mark that none of the texts in `before` has. */
export function refuseNewMarks(path: string, before: readonly string[], after: string): void {
  const mark = marksIn(after).find((one) => !before.some((text) => text.includes(one)));
  if (mark === undefined) return;
  throw new HeddleError(
    "tool.failed",
    `${path} was not changed: the new text contains ${mark}, which stands for a secret that is not shown. Writing it would ` +
      "put the mark in place of the secret. Change only the lines around it, with edit or apply_patch, or use a command " +
      "such as sed.",
  );
}

/** For a text that was not found. */
export function markHint(wanted: string): string | undefined {
  const [mark] = marksIn(wanted);
  if (mark === undefined) return undefined;
  return (
    `the text contains ${mark}, which stands for a secret that is not shown: the file has the secret there. ` +
    "Leave out what has the mark, and use the lines around it"
  );
}
