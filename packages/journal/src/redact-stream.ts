/**
 * Redaction of text that arrives in pieces. A secret may be cut between two of them, so the end of what has arrived is
 * held back until it can no longer become one: usually a word, at most what the longest format needs. Of a secret that
 * goes on only the mark is kept. What comes out, put together, is what `redactText` makes of the whole.
 */
import type { KnownSecrets } from "./known-secrets.ts";
import { createRedactor, findMarks, KNOWN_SECRET, withMarks, type Mark, type Marks, type Redactor } from "./redact.ts";
import { cutBeginning, keyEnd, runEnd, type Tail } from "./secret-formats.ts";
import { cutOffLength, secretView } from "./secret-view.ts";

/** The beginning of every format fits in here, and so does a control sequence. */
const MAX_WORD_CHARS = 96;
/** What stands before a word says whether a secret can begin there; the word itself may have been let out unjudged. */
const CONTEXT_CHARS = 3 * MAX_WORD_CHARS;
const MAX_LOOSE_CHARS = 2 * MAX_WORD_CHARS;
/** Looking costs as much as is held, so while nothing can be decided it is done each time that much has come again. */
const LOOK_EVERY_CHARS = 64;
const LOOK_EVERY_PART = 1 / 4;

export interface StreamRedactor {
  /** What can be shown now; empty when all of it is held back. */
  push(text: string): string;
  /** What is held back only because a word may go on, for whoever looks now; what looks like the beginning of a secret stays. */
  flush(): string;
  /** Another one that goes on from here. */
  fork(): StreamRedactor;
  /** The rest. */
  end(): string;
}

export function createStreamRedactor(redactor: Redactor = createRedactor()): StreamRedactor {
  return streamFrom(redactor, { held: "", context: "", loose: 0, tail: undefined, lookAt: 0 });
}

interface StreamState {
  readonly held: string;
  /** The end of what went before. */
  readonly context: string;
  /** So much of the end of the context a flush let out before it could be judged. */
  readonly loose: number;
  readonly tail: Tail | undefined;
  readonly lookAt: number;
}

function streamFrom(redactor: Redactor, state: StreamState): StreamRedactor {
  const { known } = redactor;
  let { held, context, loose, tail, lookAt } = state;

  function look(isWhole: boolean, holds: "word" | "beginning" | "nothing"): string {
    const swallowed = tail === undefined ? undefined : swallow(held, tail, isWhole);
    if (swallowed !== undefined) {
      tail = swallowed.tail;
      forget(swallowed.chars);
      if (tail !== undefined) return "";
    }
    const all = context + held;
    const raw = isWhole ? all : withoutCutOff(all);
    const found = findMarks(raw, known, { isWhole, hasFormats: true });
    const word = holds === "nothing" ? raw.length : wordStart(raw, known.heldChars);
    const from = holds === "beginning" ? raw.length - beginningLength(raw, known) : word;
    const end = Math.max(context.length, safeEnd(found, from));
    const marks = found.marks.flatMap((mark) => unsaid(mark, context.length, loose));
    const last = marks.findLast(({ from }) => from < end);
    if (last?.tail !== undefined && !isWhole) tail = last.tail;
    const shown = withMarks(raw, marks, end).slice(context.length);
    forget(end - context.length);
    loose = Math.max(loose, Math.min(end - word, MAX_LOOSE_CHARS));
    lookAt = held.length + Math.max(LOOK_EVERY_CHARS, held.length * LOOK_EVERY_PART);
    return shown;
  }

  function forget(chars: number): void {
    context = (context + held.slice(0, chars)).slice(-CONTEXT_CHARS);
    held = held.slice(chars);
    // What is further back is decided, and what stood before it is no longer known.
    loose = loose > 0 && loose + chars <= MAX_LOOSE_CHARS ? loose + chars : 0;
  }

  return {
    push(text) {
      held += text;
      return held.length < lookAt && !/\s/.test(text) ? "" : look(false, "word");
    },
    flush: () => look(false, "beginning"),
    fork: () => streamFrom(redactor, { held, context, loose, tail, lookAt }),
    end: () => look(true, "nothing"),
  };
}

/** What of a mark has not been let out: all of it, or the rest where its beginning was let out unjudged. */
function unsaid(mark: Mark, start: number, loose: number): readonly Mark[] {
  if (mark.from >= start) return [mark];
  const isLoose = mark.from >= start - loose || mark.kind === KNOWN_SECRET;
  return mark.to > start && isLoose ? [{ ...mark, from: start }] : [];
}

/** So much of the end could be the beginning of a secret, control sequences and encoded characters seen through. */
function beginningLength(raw: string, known: KnownSecrets): number {
  const last = raw.slice(-MAX_BEGINNING_CHARS);
  const view = secretView(last);
  const { length } = view.text;
  const followsGap = (index: number): boolean => view.startOf(index) !== view.endOf(index - 1);
  const chars = Math.max(known.cutLength(view.text), cutBeginning(view.text, followsGap));
  return chars === 0 ? 0 : last.length - view.startOf(length - chars);
}
/** With what may stand between its characters. */
const MAX_BEGINNING_CHARS = 1024;

/** Up to here nothing that follows can change what goes. */
function safeEnd({ marks, open }: Marks, word: number): number {
  let end = Math.min(open, word);
  for (const mark of marks) {
    if (mark.from >= end || (mark.to <= end && mark.tail === undefined)) continue;
    // A mark that is decided goes as one, and what may still belong to it waits; where something in it is open, it waits whole.
    end = open > mark.from && open < mark.to ? mark.from : mark.to;
  }
  return end;
}

function wordStart(raw: string, least: number): number {
  const lowest = Math.max(0, raw.length - MAX_WORD_CHARS);
  let at = raw.length;
  while (at > lowest && !WHITESPACE.test(raw.charAt(at - 1))) at -= 1;
  return Math.max(0, Math.min(at, raw.length - least));
}
const WHITESPACE = /\s/;

/** Half a control sequence or encoded character says nothing yet. */
function withoutCutOff(raw: string): string {
  return raw.slice(0, raw.length - cutOffLength(raw));
}

/** How much of the text still belongs to a secret that was marked, and what remains of it when all of it does. */
function swallow(
  raw: string,
  tail: Tail,
  isWhole: boolean,
): { readonly chars: number; readonly tail: Tail | undefined } {
  const view = secretView(isWhole ? raw : withoutCutOff(raw));
  const { text } = view;
  const charsOf = (end: number): number => (end === 0 ? 0 : view.endOf(end - 1));
  if ("class" in tail) {
    const end = runEnd(text, 0, tail.class);
    return { chars: charsOf(end), tail: end === text.length && !isWhole ? tail : undefined };
  }
  const { body, to, isOpen } = keyEnd(text, 0, { isWhole, most: tail.keyCharsLeft });
  if (!isOpen) return { chars: charsOf(to), tail: undefined };
  return { chars: charsOf(body), tail: { keyCharsLeft: tail.keyCharsLeft - body } };
}
