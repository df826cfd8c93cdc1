/** What agents, servers and files say is hostile: nothing of it is drawn before it has been through here. */
import { visibleLine } from "@heddle/protocol/visible-text";

/** One line, for names, sentences and questions; nothing is cut. */
export function line(text: string): string {
  return visibleLine(text);
}
