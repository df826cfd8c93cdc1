/**
 * What in a text is secret, by its place: exact values in the text as it is, then exact values and formats in the view of
 * it. Text that goes on where another ended is told what stood before it, as far as that says where a secret can begin.
 */
import type { Found, KnownSecrets, Search } from "./known-secrets.ts";
import { findSecrets, type Secret, type Tail } from "./secret-formats.ts";
import { viewInSteps, type SecretView } from "./secret-view.ts";
import type { Steps } from "../record/steps.ts";

/** What goes, by its place in the text. */
export interface Mark {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  /** The rest of one whose mark has been written. */
  readonly isRest?: true;
}

/** One secret as it was found; several may overlap. */
export type Part = Secret;
const KNOWN_SECRET = "known-secret";

/** The end of what stood before a text, as formats see it. */
export interface Lookback {
  readonly text: string;
  /** By character: something that is left out stood before it. The last entry: it stands before what comes next. */
  readonly gaps: readonly boolean[];
}
export const NOTHING_BEFORE: Lookback = { text: "", gaps: [false] };
/** No format looks further back. */
const LOOKBACK_CHARS = 48;

export interface Look {
  readonly parts: readonly Part[];
  /** From here on more text could change what goes. */
  readonly open: number;
  readonly view: SecretView;
  /** What formats saw, with what stood before. */
  readonly text: string;
  readonly followsGap: (index: number) => boolean;
}

interface LookOptions {
  readonly isWhole: boolean;
  readonly hasFormats: boolean;
  readonly plain?: Search;
  readonly before?: Lookback;
  readonly tails?: readonly Tail[];
}

export function* lookInSteps(raw: string, known: KnownSecrets, options: LookOptions): Steps<Look> {
  const { isWhole, hasFormats, before = NOTHING_BEFORE, tails = [] } = options;
  const plain = options.plain ?? (yield* known.searchInSteps(raw, isWhole));
  const view = yield* viewInSteps(blanked(raw, plain.found));
  yield;
  // Where nothing hides anything both are the same.
  const hidden = view.text.length === raw.length ? NOTHING : yield* known.searchInSteps(view.text, isWhole);
  const from = before.text.length;
  const text = before.text + blanked(view.text, hidden.found);
  const followsGap = (index: number): boolean => {
    if (index < from) return before.gaps[index] === true;
    if (index === from && before.gaps[index] === true) return true;
    return gapBefore(view, index - from);
  };
  const formats = hasFormats
    ? yield* findSecrets(text, { isWhole, followsGap, from, tails })
    : { secrets: [], open: text.length };
  const rawStart = (at: number): number => (at < text.length ? view.startOf(at - from) : raw.length);
  const rawEnd = (at: number): number => (at > from ? view.endOf(at - 1 - from) : 0);
  const inRaw = (secret: Secret): Part => ({
    ...secret,
    from: secret.isRest === true ? 0 : rawStart(secret.from),
    to: rawEnd(secret.to),
    start: secret.isRest === true ? 0 : rawStart(secret.start),
    sure: secret.sure > text.length ? Number.POSITIVE_INFINITY : rawEnd(secret.sure),
  });
  const parts = [...plain.found.map(knownPart), ...hidden.found.map((found) => inRaw(knownPart(shifted(found, from))))];
  for (const secret of formats.secrets) parts.push(inRaw(secret));
  yield;
  const hiddenOpen = hidden.open < view.text.length ? view.startOf(hidden.open) : raw.length;
  return { parts, open: Math.min(plain.open, hiddenOpen, rawStart(formats.open)), view, text, followsGap };
}

const NOTHING: Search = { found: [], open: Number.POSITIVE_INFINITY };
const gapBefore = (view: SecretView, index: number): boolean =>
  index === 0 ? view.startOf(0) > 0 : view.startOf(index) !== view.endOf(index - 1);
const shifted = ({ from, to }: Found, by: number): Found => ({ from: from + by, to: to + by });
const knownPart = ({ from, to }: Found): Part => ({ kind: KNOWN_SECRET, from, to, start: from, sure: to });

/** What stands before the character at `at` of the text that was looked at. */
export function lookback({ view, text, followsGap }: Look, at: number): Lookback {
  const before = text.length - view.text.length;
  const count = charsBefore(view, at);
  const end = before + count;
  const from = Math.max(0, end - LOOKBACK_CHARS);
  const gaps = Array.from({ length: end - from }, (_, index) => followsGap(from + index));
  const isGap = count === 0 ? at > 0 || followsGap(end) : view.endOf(count - 1) < at;
  return { text: text.slice(from, end), gaps: [...gaps, isGap] };
}

/** So many characters of the view begin before this place. */
export function charsBefore(view: SecretView, at: number): number {
  let [low, high] = [0, view.text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.startOf(middle) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** With the first character of a mark in place of what will be one, so that formats see what they will see when it is. */
function blanked(text: string, found: readonly Found[]): string {
  if (found.length === 0) return text;
  const pieces: string[] = [];
  let at = 0;
  for (const { from, to } of found) {
    if (to <= at) continue;
    const start = Math.max(from, at);
    pieces.push(text.slice(at, start), "[".repeat(to - start));
    at = to;
  }
  return pieces.join("") + text.slice(at);
}

/** What overlaps is one; what is known by its value gives it its name. */
export function joined(parts: readonly Part[]): readonly Mark[] {
  const marks: Mark[] = [];
  for (const next of parts.toSorted((a, b) => a.from - b.from || b.to - a.to)) {
    const last = marks.at(-1);
    if (next.to <= next.from) continue;
    if (last === undefined || next.from >= last.to) marks.push(next);
    else {
      const kind = next.kind === KNOWN_SECRET ? next.kind : last.kind;
      const isRest = last.isRest === true || next.isRest === true;
      marks[marks.length - 1] = { kind, from: last.from, to: Math.max(last.to, next.to), ...(isRest && { isRest }) };
    }
  }
  return marks;
}

/** The text between two places with its marks; of one that began before only that it goes on is said. */
export function withMarks(text: string, marks: readonly Mark[], range: { from: number; to: number }): string {
  const pieces: string[] = [];
  let at = range.from;
  for (const mark of marks) {
    if (mark.from >= range.to) break;
    if (mark.to <= at) continue;
    pieces.push(text.slice(at, Math.max(at, mark.from)), mark.isRest === true ? "" : `[redacted:${mark.kind}]`);
    at = mark.to;
  }
  pieces.push(text.slice(at, range.to));
  return pieces.join("");
}
