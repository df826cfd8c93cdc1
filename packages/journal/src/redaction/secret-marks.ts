/**
 * Finds secrets by position: exact values in the text as it is, then exact values and formats in its view. Text that
 * continues another gets the end of that as context.
 */
import type { Found, KnownSecrets, Search } from "./known-secrets.ts";
import { findSecrets, type Secret, type Tail } from "./secret-formats.ts";
import { viewInSteps, type SecretView } from "./secret-view.ts";
import type { Steps } from "../record/steps.ts";

export interface Mark {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  /** The rest of a secret whose mark is written already. */
  readonly isRest?: true;
}

export type Part = Secret;
const KNOWN_SECRET = "known-secret";

/** The end of the text before, as formats see it. */
export interface Lookback {
  readonly text: string;
  /** By character: something was left out before it. The last entry is for what comes next. */
  readonly gaps: readonly boolean[];
}
export const NOTHING_BEFORE: Lookback = { text: "", gaps: [false] };
/** No format looks further back. */
const LOOKBACK_CHARS = 48;

export interface Look {
  readonly parts: readonly Part[];
  /** From here on more text could change the result. */
  readonly open: number;
  readonly view: SecretView;
  /** What formats saw, with the context before it. */
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
  // Without anything hidden both are the same.
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

/** The context before the character at `at`. */
export function lookback({ view, text, followsGap }: Look, at: number): Lookback {
  const before = text.length - view.text.length;
  const count = charsBefore(view, at);
  const end = before + count;
  const from = Math.max(0, end - LOOKBACK_CHARS);
  const gaps = Array.from({ length: end - from }, (_, index) => followsGap(from + index));
  const isGap = count === 0 ? at > 0 || followsGap(end) : view.endOf(count - 1) < at;
  return { text: text.slice(from, end), gaps: [...gaps, isGap] };
}

/** How many characters of the view begin before this position. */
export function charsBefore(view: SecretView, at: number): number {
  let [low, high] = [0, view.text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.startOf(middle) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** With brackets in place of secrets, so that formats see what they will see after redaction. */
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

/** Joins overlaps; an exact value gives its kind. */
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

/** A range of the text with its marks; a secret that began before it has none. */
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
