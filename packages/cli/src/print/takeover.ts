/** The command that takes a thread over, as a person writes it in a shell. */
import { joinShellWords } from "@heddle/dialects/shell-words";
import { visibleLine, type Takeover } from "@heddle/protocol";

export function byHand({ program, folder }: Takeover): string {
  return visibleLine(`cd ${joinShellWords([folder])} && ${joinShellWords(program)}`);
}
