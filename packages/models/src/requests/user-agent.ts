/** How Heddle calls itself where a program takes it for Codex: in the form of Codex, whose version such programs look for. */
import { machine, platform, release } from "node:os";
import { CODEX_VERSION } from "@heddle/protocol";

export function codexUserAgent(originator: string, program: string): string {
  return `${originator}/${CODEX_VERSION} (${platform()} ${release()}; ${machine()}) ${program}`;
}
