/**
 * Redacts text that arrives in pieces. A secret may be cut between two, so what could be the beginning of one is held back:
 * usually a few letters, at most what the longest format needs. Each look continues from the state of the last one, with
 * the last word for context, so that the output, put together, is what `redactText` makes of the whole.
 */
import type { KnownSecrets } from "./known-secrets.ts";
import { createRedactor, type Redactor } from "./redact.ts";
import { cutKeyBegin } from "./secret-key-block.ts";
import { cutBeginning, type Tail } from "./secret-formats.ts";
import {
  charsBefore,
  joined,
  lookback,
  lookInSteps,
  NOTHING_BEFORE,
  withMarks,
  type Look,
  type Lookback,
  type Part,
} from "./secret-marks.ts";
import { cutOffLength } from "./secret-view.ts";
import { atOnce } from "../record/steps.ts";

/** In characters of the view: the beginning of every format fits, and so does a key of fixed length. */
const MAX_WORD_CHARS = 96;
/** This much of an encoded value may have come before the search sees it. */
const MAX_UNSEEN_CHARS = 16;
/** A look costs as much as is held: while that is little, every piece gets one; then only so much more. */
const LITTLE_HELD_CHARS = 4 * MAX_WORD_CHARS;
const LOOK_EVERY_PART = 1 / 4;

export interface StreamRedactor {
  /** What is certain by now; empty when all of it is held back. */
  push(text: string): string;
  /** Shows what is held back only because a word may continue; a possible beginning of a secret stays. */
  flush(): string;
  /** A copy that continues from here. */
  fork(): StreamRedactor;
  end(): string;
}

export function createStreamRedactor(redactor: Redactor = createRedactor()): StreamRedactor {
  return streamFrom(redactor, { held: "", shown: 0, before: NOTHING_BEFORE, begun: [], tails: [], lookAt: 0 });
}

interface StreamState {
  held: string;
  /** How much of it is shown already. */
  shown: number;
  before: Lookback;
  /** Found secrets that end in it. */
  begun: readonly Part[];
  /** Secrets that continue as long as these match. */
  tails: readonly Tail[];
  lookAt: number;
}

/** `certain`: what nothing can change. `likely`: all but what looks like the beginning of a secret. */
type Settles = "certain" | "likely" | "whole";

function streamFrom(redactor: Redactor, from: StreamState): StreamRedactor {
  const state = { ...from };

  function look(text: string, settles: Settles): string {
    state.held += text;
    const { held, shown, before, begun, tails } = state;
    const isWhole = settles === "whole";
    const raw = isWhole ? held : held.slice(0, held.length - cutOffLength(held));
    const found = atOnce(lookInSteps(raw, redactor.known, { isWhole, hasFormats: true, before, tails }));
    const parts = begun.length === 0 ? found.parts : [...begun, ...found.parts];
    const end = isWhole ? raw.length : settledEnd(raw, found, redactor.known.heldChars);
    const early = isWhole
      ? 0
      : unsettledEnd(raw, { ...found, parts }, beginningLength(raw, found, redactor.known, settles));
    const out = Math.max(shown, end, early);
    const added = out === shown ? "" : withMarks(raw, joined(parts), { from: shown, to: out });
    if (end > 0) settle(found, end);
    state.shown = Math.max(0, out - end);
    const { length } = state.held;
    state.lookAt = length < LITTLE_HELD_CHARS ? 0 : length + length * LOOK_EVERY_PART;
    return added;
  }

  function settle(found: Look, end: number): void {
    const before = lookback(found, end);
    const begun = found.parts.filter(({ start }) => start < end);
    const ended = begun.filter(({ tail }) => tail === undefined);
    state.begun = [...state.begun, ...ended].flatMap((part) => (part.to > end ? [after(part, end)] : []));
    state.tails = begun.flatMap(({ tail }) => (tail === undefined ? [] : [moved(tail, found, before, end)]));
    state.before = before;
    state.held = state.held.slice(end);
  }

  return {
    push(text) {
      if (state.held.length + text.length < state.lookAt && !/\s/.test(text)) {
        state.held += text;
        return "";
      }
      return look(text, "certain");
    },
    flush: () => look("", "likely"),
    fork: () => streamFrom(redactor, state),
    end: () => look("", "whole"),
  };
}

function after({ kind, from, to, isRest }: Part, end: number): Part {
  const start = Math.max(0, from - end);
  return { kind, from: start, to: to - end, start, sure: 0, ...((isRest === true || from < end) && { isRest: true }) };
}

/** Up to here nothing that follows can change the redaction; inside a secret, where it can be continued. */
function settledEnd(raw: string, found: Look, least: number): number {
  const limit = Math.min(found.open, wordStart(raw, found, least));
  const parts = fromTheLast(found.parts);
  let end = limit;
  for (let before = -1; before !== end;) {
    before = end;
    for (const part of parts) if (part.start < end) end = endFor(part, found, { end, limit });
    end -= cutOffLength(raw.slice(0, end));
  }
  return end;
}

/** The end where the part is settled or can be cut; otherwise its start. */
function endFor(part: Part, found: Look, { end, limit }: { readonly end: number; readonly limit: number }): number {
  if (part.tail !== undefined) {
    const cut = withoutDashes(found, Math.min(end, part.to), part.tail);
    return part.sure <= cut ? cut : part.start;
  }
  if (Math.max(part.to, part.sure) <= end) return end;
  // Overlaps are searched again. Its kind may still change where an exact value begins inside.
  return Math.max(part.to, part.sure) <= limit && part.kind !== "url-password" ? end : part.start;
}

/** All but what could begin a secret: so many characters of the end, and what is found there. */
function unsettledEnd(raw: string, found: Look, beginning: number): number {
  let end = Math.min(found.open, raw.length - beginning);
  for (const part of fromTheLast(found.parts)) {
    if (part.start < end && (part.to > end || part.tail !== undefined)) end = part.start;
  }
  return end;
}

const fromTheLast = (parts: readonly Part[]): readonly Part[] => parts.toSorted((a, b) => b.start - a.start);

/** Five dashes end a key, so none of them is left behind. */
function withoutDashes({ view }: Look, end: number, tail: Tail): number {
  if ("class" in tail) return end;
  let chars = charsBefore(view, end);
  if (view.text[chars - 1] !== "-") return end;
  while (view.text[chars - 1] === "-") chars -= 1;
  return view.startOf(chars);
}

/** With its position in the next look. */
function moved(tail: Tail, { view, text }: Look, before: Lookback, end: number): Tail {
  if ("class" in tail) return tail;
  const at = text.length - view.text.length + charsBefore(view, end);
  return { ...tail, keyFrom: tail.keyFrom - at + before.text.length };
}

/** How much of the end could begin a secret; of encoded values, which look like any word, only to be certain. */
function beginningLength(raw: string, look: Look, known: KnownSecrets, settles: Settles): number {
  const { view, text, followsGap } = look;
  const isCertain = settles === "certain";
  const encoded = (of: string): number => (isCertain ? known.encodedLength(of) : 0);
  const chars = Math.max(
    known.cutLength(view.text),
    encoded(view.text),
    cutBeginning(text, followsGap),
    isCertain ? cutKeyBegin(text) : 0,
  );
  const inView = chars === 0 ? raw.length : view.startOf(Math.max(0, view.text.length - chars));
  return Math.max(raw.length - inView, known.cutLength(raw), encoded(raw));
}

function wordStart(raw: string, { view }: Look, least: number): number {
  const { length } = view.text;
  const lowest = Math.max(0, length - MAX_WORD_CHARS);
  let at = length;
  while (at > lowest && !WHITESPACE.test(raw.charAt(view.startOf(at - 1)))) at -= 1;
  at = Math.max(0, Math.min(at, length - least));
  // What is not in the view may be part of an exact value.
  let end = raw.length;
  while (raw.length - end < MAX_UNSEEN_CHARS && end > 0 && !WHITESPACE.test(raw.charAt(end - 1))) end -= 1;
  return at === length ? end : Math.min(end, view.startOf(at));
}
const WHITESPACE = /\s/;
