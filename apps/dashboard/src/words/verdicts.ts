/** What a verification of the record says: clean is the other verdict that is green. */
import type { Tone } from "@heddle/protocol/task-words";

export function verdictWords(result: string | undefined): {
  readonly word: string;
  readonly tone: Tone;
  readonly glyph: string;
} {
  switch (result) {
    case "clean":
      return { word: "whole", tone: "proven", glyph: "verified" };
    case "violation":
      return { word: "a rule was violated", tone: "refused", glyph: "rejected" };
    case "tampered":
      return { word: "TAMPERED", tone: "refused", glyph: "failed" };
    case "cannotVerify":
      return { word: "cannot be verified", tone: "said", glyph: "ask" };
    default:
      return { word: "nothing was examined", tone: "quiet", glyph: "off" };
  }
}
