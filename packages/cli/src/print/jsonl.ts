/** `--json`: one JSON object a line on stdout, in the dialect of `codex exec`. Notices go to stderr. */
import { codexExecDialect, visibleText } from "@heddle/protocol";
import type { Output } from "./output.ts";
import type { Printer } from "./printer.ts";

export function createJsonlPrinter(out: Output, err: Output): Printer {
  const translate = codexExecDialect();
  return {
    async event(event) {
      const lines = translate(event).map(toLine);
      if (lines.length > 0) await out.write(lines.join(""));
    },
    // Codex has no deltas on this channel: what is said arrives whole.
    delta: () => undefined,
    notice: (text) => err.write(`heddle: ${visibleText(text)}\n`),
  };
}

/**
 * Characters that some line readers take for the end of a line (U+2028, U+2029), and those that could steer a terminal,
 * are written as JSON escapes; the value stays the same.
 */
const RISKY = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function toLine(value: unknown): string {
  const escaped = JSON.stringify(value).replace(
    RISKY,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${escaped}\n`;
}
