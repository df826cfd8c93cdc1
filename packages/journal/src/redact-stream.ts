/**
 * Redaction of text that arrives in pieces. A secret may be cut between two of them, so the end of what has arrived is
 * held back until it can no longer become one: usually a word, at most `MAX_HELD_CHARS`. What comes out, put together,
 * is what `redactText` makes of the whole.
 */
import { createRedactor, type Redactor } from "./redact.ts";

/** Longer than any secret but a private key block, which its own pattern bounds. */
const MAX_HELD_CHARS = 20 * 1024;
/** Kept of an endless word when it must be let go: no token after a boundary inside it is longer in practice. */
const MAX_TOKEN_CHARS = 4 * 1024;

const MAX_TRIES = 4;

/** Looking for a place to cut costs as much as is held, so in an endless word it is done each time that much has come again. */
const LOOK_EVERY_CHARS = 64;
const LOOK_EVERY_PART = 1 / 4;

export interface StreamRedactor {
  /** What can be shown now; empty when all of it is held back. */
  push(text: string): string;
  /** The rest. */
  end(): string;
}

export function createStreamRedactor(redactor: Redactor = createRedactor()): StreamRedactor {
  let held = "";
  let lookAt = 0;
  return {
    push(text) {
      held += text;
      if (held.length < lookAt && !/\s/.test(text)) return "";
      const cut = safeCut(held, redactor);
      const ready = held.slice(0, cut);
      held = held.slice(cut);
      lookAt = held.length + Math.max(LOOK_EVERY_CHARS, held.length * LOOK_EVERY_PART);
      return ready === "" ? "" : redactor.text(ready);
    },
    end() {
      const rest = redactor.text(held);
      held = "";
      return rest;
    },
  };
}

/** A key block whose last line is not complete, or the beginning of its first line. */
const OPEN_BLOCK =
  /-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?![\s\S]*-----END [^-]{0,60}-----\S*\s)|-----BEGIN[A-Z0-9 ]*-{0,5}$/;
/** Words that make a secret of the next one. */
const OPEN_HEADER =
  /\b(?:authorization["'\\\s]{0,6}(?:[:=]["'\\\s]{0,6}(?:(?:basic|bearer|token)\s{1,4})?)?|bearer\s{1,4})\S*$/i;

/** Up to here nothing that follows can change what is redacted; always the beginning of a word. */
function safeCut(held: string, redactor: Redactor): number {
  const start = Math.max(0, held.length - MAX_HELD_CHARS - 1);
  const recent = held.slice(start);
  let cut = recent.length;
  for (const open of [OPEN_BLOCK, OPEN_HEADER]) {
    const index = recent.search(open);
    if (index >= 0) cut = Math.min(cut, index);
  }
  cut = start + wordStart(recent, cut);
  return held.length - cut <= MAX_HELD_CHARS ? cut : forcedCut(held, redactor);
}

function wordStart(text: string, from: number): number {
  let index = from;
  while (index > 0 && !WHITESPACE.test(text.charAt(index - 1))) index -= 1;
  return index;
}
const WHITESPACE = /\s/;
const BOUNDARY = /[^A-Za-z0-9_-]/g;

/** An endless word: let go all but its end, at a place where redacting the parts equals redacting the whole. */
function forcedCut(held: string, redactor: Redactor): number {
  const whole = redactor.text(held);
  const from = held.length - MAX_TOKEN_CHARS;
  for (const boundary of [...held.slice(from).matchAll(BOUNDARY)].slice(0, MAX_TRIES)) {
    const at = from + boundary.index + 1;
    if (redactor.text(held.slice(0, at)) + redactor.text(held.slice(at)) === whole) return at;
  }
  return from;
}
