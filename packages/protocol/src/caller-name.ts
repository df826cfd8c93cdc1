/** What the program calls itself that runs Heddle: told to providers in a header, and shown to people beside the thread. */
import { visibleLine } from "./text/visible-text.ts";

/** Long enough for a product and its edition. */
const MAX_CHARS = 64;

/** Undefined: it has no name, or one that no header can hold. */
export function callerName(given: string | undefined): string | undefined {
  const name = (given ?? "").trim();
  if (name === "" || /[^\P{Cc}\t]/u.test(name)) return undefined;
  // Cut between halves of a character, it would hold one that no text can.
  return visibleLine(name).slice(0, MAX_CHARS).toWellFormed();
}
