/**
 * Exact values that are secrets, found in text as they are, as JSON, in hexadecimal, and in base64 of both alphabets at
 * any alignment; encoded forms also in part, because encoders break lines. All are searched at once, so that many cost
 * hardly more than one.
 */

import { secretView } from "./secret-view.ts";
import { atOnce, STEP_CHARS, type Steps } from "../record/steps.ts";

/** Shorter values would be found in ordinary words. */
const MIN_KNOWN_CHARS = 8;
/** Logins are renewed as long as a server runs; nobody repeats a token that old. */
const MAX_KNOWN = 1000;
/** The beginning of a longer one is enough. */
const MAX_NEEDLE_CHARS = 8192;
/** This much of an encoded form counts as the whole. */
const MIN_PART_CHARS = 16;
const SEED_CHARS = MIN_KNOWN_CHARS;
/** A part may begin between two seeds, and the character before it may belong to it. */
const MAX_UNSEEN_PART_CHARS = 2 * SEED_CHARS;
const MIN_ENCODED_CHARS = 4;

interface Needle {
  readonly text: string;
  readonly mayBePart: boolean;
  /** Whether the characters next to it hold bits of it. */
  readonly before: 0 | 1;
  readonly after: 0 | 1;
}

interface Seed {
  readonly needle: Needle;
  readonly offset: number;
}

export interface Found {
  readonly from: number;
  readonly to: number;
}

export interface Search {
  readonly found: readonly Found[];
  /** From here on more text could make a match; the length of the text where nothing could. */
  readonly open: number;
}

export interface KnownSecrets {
  readonly count: number;
  learn(values: readonly string[]): void;
  search(text: string, isWhole: boolean): Search;
  searchInSteps(text: string, isWhole: boolean): Steps<Search>;
  /** How many characters at the end could begin one, too few for `search` to see. */
  cutLength(text: string): number;
  /** How many characters at the end could be of an encoded form, too few for `search` to see. */
  encodedLength(text: string): number;
  /** How many characters at the end of unfinished text are always held back. */
  readonly heldChars: number;
}

export function createKnownSecrets(): KnownSecrets {
  let values: readonly string[] = [];
  let table: SeedTable | undefined;
  let heldChars = 0;
  function* searchInSteps(text: string, isWhole: boolean): Steps<Search> {
    return table === undefined ? { found: [], open: text.length } : yield* search(text, table, isWhole);
  }

  return {
    get count() {
      return values.length;
    },
    get heldChars() {
      return heldChars;
    },
    learn(given) {
      const fresh = given
        .map((value) => value.trim())
        .filter((value) => value.length >= MIN_KNOWN_CHARS && !values.includes(value));
      if (fresh.length === 0) return;
      values = [...new Set([...values, ...fresh])].slice(-MAX_KNOWN);
      const needles = values.flatMap(needlesOf);
      table = seedTable(needles);
      heldChars = needles.some(({ text }) => /\s/.test(text)) ? SEED_CHARS - 1 : 0;
    },
    cutLength(text) {
      for (let chars = Math.min(SEED_CHARS - 1, text.length); chars > 0; chars -= 1) {
        if (table?.beginnings.has(text.slice(-chars)) === true) return chars;
      }
      return 0;
    },
    encodedLength(text) {
      if (table === undefined) return 0;
      let chars = 0;
      while (chars < MAX_UNSEEN_PART_CHARS && isBase64(text, text.length - 1 - chars)) chars += 1;
      return chars;
    },
    searchInSteps,
    search: (text, isWhole) => atOnce(searchInSteps(text, isWhole)),
  };
}

function* search(text: string, table: SeedTable, isWhole: boolean): Steps<Search> {
  const state: SearchState = { found: [], open: text.length, end: 0 };
  for (let at = 0; at < text.length; yield) at = searchSome(text, table, { state, isWhole, at });
  return state;
}

interface SearchState {
  readonly found: Found[];
  open: number;
  end: number;
}

/** One step from `at` on; returns where the next one begins. */
function searchSome(
  text: string,
  table: SeedTable,
  { state, isWhole, at: from }: { readonly state: SearchState; readonly isWhole: boolean; readonly at: number },
): number {
  const stop = from + STEP_CHARS;
  for (let at = from; at < stop;) {
    at = nextSeed(text, at, table, stop);
    if (at < 0) return stop;
    let next = at + 1;
    for (const { needle, offset } of table.seeds.get(text.slice(at, at + SEED_CHARS)) ?? []) {
      const match = matchAt(text, at, needle, offset);
      if (match === undefined) continue;
      if (match.to === text.length && match.isCut && !isWhole) state.open = Math.min(state.open, match.from);
      else if (match.isFound && match.to > state.end) {
        state.found.push(match);
        next = Math.max(next, match.to - SEED_CHARS + 1);
        state.end = Math.max(state.end, match.to);
      }
    }
    at = next;
    if (at >= stop) return at;
  }
  return stop;
}

interface Match extends Found {
  readonly isFound: boolean;
  readonly isCut: boolean;
}

function matchAt(text: string, at: number, needle: Needle, offset: number): Match | undefined {
  const { text: whole, mayBePart, before, after } = needle;
  let from = 0;
  while (from < offset && text.charCodeAt(at - from - 1) === whole.charCodeAt(offset - from - 1)) from += 1;
  let to = SEED_CHARS;
  while (offset + to < whole.length && text.charCodeAt(at + to) === whole.charCodeAt(offset + to)) to += 1;
  const isToEnd = offset + to === whole.length;
  const isCut = !isToEnd && at + to >= text.length;
  const isAll = from === offset && isToEnd;
  if (!isAll && !mayBePart && !isCut) return undefined;
  const hasBefore = from === offset && before > 0 && isBase64(text, at - from - 1);
  const hasAfter = isToEnd && after > 0 && isBase64(text, at + to);
  return {
    from: at - from - (hasBefore ? 1 : 0),
    to: at + to + (hasAfter ? 1 : 0),
    isFound: isAll || (mayBePart && from + to >= MIN_PART_CHARS),
    isCut: isCut || (isToEnd && at + to + after > text.length),
  };
}

const isBase64 = (text: string, at: number): boolean => BASE64.test(text.charAt(at));
const BASE64 = /[\w+/-]/;

function needlesOf(value: string): readonly Needle[] {
  const bytes = Buffer.from(value, "utf8");
  const hex = bytes.toString("hex");
  // Command output is searched as bytes, whatever its encoding.
  const spelled = [value, JSON.stringify(value).slice(1, -1), bytes.toString("latin1"), ...percentForms(bytes)];
  // Where encoded characters are decoded, those in the value itself are too.
  const plain = [...spelled, ...spelled.map((text) => secretView(text).text)]
    .filter((text) => text.length >= MIN_KNOWN_CHARS)
    .map((text) => needle(text, false));
  const encoded = [hex, hex.toUpperCase()].map((text) => needle(text, true));
  return [...plain, ...encoded, ...[0, 1, 2].flatMap((lead) => base64Needles(bytes, lead))];
}

/** Encoded ASCII is decoded before the search; these are the others. */
function percentForms(bytes: Buffer): readonly string[] {
  const encoded = Array.from(bytes, (byte) =>
    byte < 128 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, "0")}`,
  );
  return [encoded.join(""), encoded.map((text) => (text.length > 1 ? text.toUpperCase() : text)).join("")];
}

/** What base64 makes of the bytes after `lead` others, without the characters that depend on their neighbours. */
function base64Needles(bytes: Buffer, lead: number): readonly Needle[] {
  const bits = bytes.length * 8;
  const skipped = (6 - ((lead * 8) % 6)) % 6;
  const first = Math.ceil((lead * 8) / 6);
  const count = Math.floor((bits - skipped) / 6);
  const before = skipped === 0 ? 0 : 1;
  const after = (bits - skipped) % 6 === 0 ? 0 : 1;
  const padded = Buffer.concat([Buffer.alloc(lead), bytes]);
  return (["base64", "base64url"] as const).map((alphabet) =>
    needle(padded.toString(alphabet).slice(first, first + count), true, { before, after }),
  );
}

function needle(
  text: string,
  mayBePart: boolean,
  edges: Pick<Needle, "before" | "after"> = { before: 0, after: 0 },
): Needle {
  return { text: text.slice(0, MAX_NEEDLE_CHARS), mayBePart, ...edges };
}

interface SeedTable {
  readonly seeds: ReadonlyMap<string, readonly Seed[]>;
  /** By two neighbouring characters: the distance to the next position where a seed could end. */
  readonly shifts: Uint8Array;
  readonly beginnings: ReadonlySet<string>;
}

const PAIRS = 1 << 14;
const pairOf = (first: number, second: number): number => ((first << 7) ^ second) & (PAIRS - 1);

function seedTable(needles: readonly Needle[]): SeedTable {
  const seeds = new Map<string, Seed[]>();
  const shifts = new Uint8Array(PAIRS).fill(SEED_CHARS - 1);
  const known = new Set<string>();
  const beginnings = new Set<string>();
  for (const one of needles) {
    if (known.has(one.text)) continue;
    known.add(one.text);
    // Fewer characters of an encoded form reveal next to nothing and are in every other word.
    for (let chars = one.mayBePart ? MIN_ENCODED_CHARS : 1; chars < SEED_CHARS; chars += 1) {
      beginnings.add(one.text.slice(0, chars));
    }
    const last = one.mayBePart ? one.text.length - SEED_CHARS : 0;
    for (let offset = 0; offset <= last; offset += MIN_PART_CHARS / 2) {
      const seed = one.text.slice(offset, offset + SEED_CHARS);
      const same = seeds.get(seed);
      if (same === undefined) seeds.set(seed, [{ needle: one, offset }]);
      else same.push({ needle: one, offset });
      for (let index = 1; index < SEED_CHARS; index += 1) {
        const pair = pairOf(seed.charCodeAt(index - 1), seed.charCodeAt(index));
        shifts[pair] = Math.min(shifts[pair] ?? 0, SEED_CHARS - 1 - index);
      }
    }
  }
  return { seeds, shifts, beginnings };
}

/** The first seed from `at` on and before `stop`, or -1. */
function nextSeed(text: string, at: number, { seeds, shifts }: SeedTable, stop: number): number {
  let end = at + SEED_CHARS - 1;
  const last = Math.min(text.length, stop + SEED_CHARS - 1);
  while (end < last) {
    const shift = shifts[pairOf(text.charCodeAt(end - 1), text.charCodeAt(end))] ?? 0;
    if (shift > 0) end += shift;
    else {
      const index = end - SEED_CHARS + 1;
      if (seeds.has(text.slice(index, end + 1))) return index;
      end += 1;
    }
  }
  return -1;
}
