/**
 * Text for the search: without terminal control sequences, which may be inside a token, and with percent-encoded
 * characters decoded. Every character knows its origin, so that secrets are removed from the original text.
 */

import { atOnce, STEP_CHARS, type Steps } from "../record/steps.ts";

export interface SecretView {
  readonly text: string;
  startOf(index: number): number;
  endOf(index: number): number;
}

/** The beginning of one, at the end of what has come. */
// eslint-disable-next-line no-control-regex
const CUT_OFF = /(?:\u001B(?:\[[0-?]{0,64})?[ -/]{0,8}|%(?:25){0,8}[0-9A-Fa-f]?)$/;
const MAX_ENCODED_CHARS = 80;

/** One pass over the text, into arrays of its size: the time does not depend on the content. */
export function* viewInSteps(raw: string): Steps<SecretView> {
  const first = raw.search(HIDING);
  if (first < 0) return { text: raw, startOf: (index) => index, endOf: (index) => index + 1 };
  const seen: Seen = {
    codes: new Uint16Array(raw.length - first),
    starts: new Uint32Array(raw.length - first),
    size: 0,
    at: first,
  };
  for (; seen.at < raw.length; yield) seeSome(raw, seen);
  const { codes, starts, size } = seen;
  const startOf = (index: number): number => (index < first ? index : (starts[index - first] ?? raw.length));
  return {
    text: raw.slice(0, first) + textOf(codes.subarray(0, size)),
    startOf,
    endOf(index) {
      const start = startOf(index);
      return start + (raw.charCodeAt(start) === PERCENT ? encodedWidth(raw, start) || 1 : 1);
    },
  };
}

export function secretView(raw: string): SecretView {
  return atOnce(viewInSteps(raw));
}

interface Seen {
  readonly codes: Uint16Array;
  /** The origin of each character after the first hidden one. */
  readonly starts: Uint32Array;
  size: number;
  at: number;
}

function seeSome(raw: string, seen: Seen): void {
  const { codes, starts } = seen;
  const stop = Math.min(raw.length, seen.at + STEP_CHARS);
  let { size, at } = seen;
  while (at < stop) {
    const code = raw.charCodeAt(at);
    const width = code === ESC ? escapeWidth(raw, at) : code === PERCENT ? encodedWidth(raw, at) : 0;
    if (code !== ESC) {
      codes[size] = width === 0 ? code : decoded(raw, at + width);
      starts[size] = at;
      size += 1;
    }
    at += width === 0 ? 1 : width;
  }
  seen.size = size;
  seen.at = at;
}

// eslint-disable-next-line no-control-regex
const HIDING = /\u001B|%[0-9A-Fa-f]{2}/;
const ESC = 0x1b;
const PERCENT = 0x25;

function textOf(codes: Uint16Array): string {
  return Buffer.from(codes.buffer, codes.byteOffset, codes.byteLength).toString("utf16le");
}

/** Of a control sequence (ESC, bracket, parameters), of another short escape, or of ESC alone. */
function escapeWidth(raw: string, at: number): number {
  const isSequence = raw[at + 1] === "[";
  const parameters = isSequence ? spanEnd(raw, at + 2, { low: 0x30, high: 0x3f, most: 64 }) : at + 1;
  const end = spanEnd(raw, parameters, { low: 0x20, high: 0x2f, most: 8 });
  const last = raw.charCodeAt(end);
  const hasEnd = isSequence ? last >= 0x40 && last <= 0x7e : end > at + 1 && last >= 0x30 && last <= 0x7e;
  return hasEnd ? end + 1 - at : 1;
}

function spanEnd(raw: string, from: number, set: { low: number; high: number; most: number }): number {
  let at = from;
  while (at - from < set.most && raw.charCodeAt(at) >= set.low && raw.charCodeAt(at) <= set.high) at += 1;
  return at;
}

/** Of one encoded ASCII character, `%253D` too; 0: there is none. Bytes of other characters stay encoded. */
function encodedWidth(raw: string, at: number): number {
  let end = at + 1;
  while (end < at + 1 + 2 * MAX_ENCODINGS && raw[end] === "2" && raw[end + 1] === "5") end += 2;
  if (digit(raw, end) >= 0 && digit(raw, end + 1) >= 0) return digit(raw, end) < 8 ? end + 2 - at : 0;
  return end > at + 1 ? end - at : 0;
}
const MAX_ENCODINGS = 8;

function decoded(raw: string, end: number): number {
  return digit(raw, end - 2) * 16 + digit(raw, end - 1);
}

function digit(raw: string, at: number): number {
  const code = raw.charCodeAt(at);
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = (code | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/** How much of the end could begin a control sequence or an encoded character. */
export function cutOffLength(raw: string): number {
  return CUT_OFF.exec(raw.slice(-MAX_ENCODED_CHARS))?.[0].length ?? 0;
}
