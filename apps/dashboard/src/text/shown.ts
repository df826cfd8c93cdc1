/** What agents, servers and files say is hostile: nothing of it is drawn before it has been through here. */
import { visibleLine, visibleText } from "@heddle/protocol/visible-text";

/** As drawn in one place at most; the whole is behind a click. */
const MAX_CHARS = 20_000;

/** Several lines. */
export function shown(text: string): string {
  if (text.length <= MAX_CHARS) return visibleText(text);
  return `${visibleText(text.slice(0, MAX_CHARS))}\n… ${(text.length - MAX_CHARS).toLocaleString("en")} characters more`;
}

/** One line, for names, sentences and questions; nothing is cut. */
export function line(text: string): string {
  return visibleLine(text);
}

/** One line of a list, of which only the beginning is needed. */
export function brief(text: string, max = 300): string {
  const first = text.trim().replaceAll(/\s+/g, " ");
  return visibleLine(first.length > max ? `${first.slice(0, max)}…` : first);
}
