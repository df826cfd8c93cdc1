/**
 * Takes secrets out of text before it is hashed, stored or shown: known formats by pattern, and the exact values this
 * process was given. Each leaves a mark that names its kind. Applying it twice changes nothing more.
 *
 * What only a provider understands (`opaque` of model output, image bytes) keeps every byte, because one changed
 * character makes it worthless; there only exact values are removed. The words and calls that are repeated in there are
 * as open as beside it.
 */
import { createKnownSecrets, type Found, type KnownSecrets, type Search } from "./known-secrets.ts";
import { findSecrets, hasBeginning, type Tail } from "./secret-formats.ts";
import { viewInSteps } from "./secret-view.ts";
import { atOnce, type Steps } from "./steps.ts";

export interface Redactor {
  text(text: string): string;
  /** A copy without secrets, or the value itself when there is none. `json` is its JSON text, looked at first. */
  body<T>(value: T, json: string): T;
  /** The same for what may be long. */
  bodyInSteps<T>(value: T, json: string): Steps<T>;
  /** From now on these exact values are secrets too: a key that was just stored, a token that was just renewed. */
  readonly learn: (values: readonly string[]) => void;
  readonly known: KnownSecrets;
}

export function redactText(text: string): string {
  return patterns.text(text);
}

/** `exactValues`: secrets known to this process, such as provider keys. */
export function createRedactor(exactValues: readonly string[] = []): Redactor {
  const known = createKnownSecrets();
  known.learn(exactValues);

  const withoutExact = (text: string): Steps<string> => replaced(text, known, false);
  const withoutAny = (text: string): Steps<string> => replaced(text, known, true);

  function* bodyInSteps<T>(value: T, json: string): Steps<T> {
    const isSuspect = mayHold(json);
    yield;
    if (!isSuspect && (yield* known.searchInSteps(json, true)).found.length === 0) return value;
    // Same shape in, same shape out: only the characters inside strings change.
    return (yield* mapStrings(value, { open: withoutAny, sealed: withoutExact })) as T;
  }

  return {
    known,
    learn: (values) => known.learn(values),
    text: (text) => atOnce(withoutAny(text)),
    body: (value, json) => atOnce(bodyInSteps(value, json)),
    bodyInSteps,
  };
}

/** Cheap, and never wrong when it says no: what a secret begins with, or what could hide it. */
function mayHold(text: string): boolean {
  return hasBeginning(text) || HIDING.test(text);
}
// eslint-disable-next-line no-control-regex
const HIDING = /\u001B|\\u001b|%[0-9A-Fa-f]{2}/;

function* replaced(text: string, known: KnownSecrets, hasFormats: boolean): Steps<string> {
  const plain = yield* known.searchInSteps(text, true);
  if (plain.found.length === 0 && !mayHold(text)) return text;
  yield;
  const { marks } = yield* marksInSteps(text, known, { isWhole: true, hasFormats, plain });
  yield;
  return withMarks(text, marks, text.length);
}

/** What goes, by its place in the text. */
export interface Mark {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly tail?: Tail;
}

export interface Marks {
  readonly marks: readonly Mark[];
  /** From here on more text could change what goes. */
  readonly open: number;
}

interface MarkOptions {
  readonly isWhole: boolean;
  readonly hasFormats: boolean;
  readonly plain?: Search;
}

export function findMarks(raw: string, known: KnownSecrets, options: MarkOptions): Marks {
  return atOnce(marksInSteps(raw, known, options));
}

function* marksInSteps(raw: string, known: KnownSecrets, options: MarkOptions): Steps<Marks> {
  const { isWhole, hasFormats, plain = yield* known.searchInSteps(raw, isWhole) } = options;
  const view = yield* viewInSteps(blanked(raw, plain.found));
  yield;
  // Where nothing hides anything both are the same.
  const hidden = view.text.length === raw.length ? NOTHING : yield* known.searchInSteps(view.text, isWhole);
  const followsGap = (index: number): boolean => view.startOf(index) !== view.endOf(index - 1);
  const formats = hasFormats
    ? yield* findSecrets(blanked(view.text, hidden.found), { isWhole, followsGap })
    : { secrets: [], open: view.text.length };
  const inView = [...hidden.found.map(knownMark), ...formats.secrets];
  const rawMarks = inView.map((mark) => ({ ...mark, from: view.startOf(mark.from), to: view.endOf(mark.to - 1) }));
  yield;
  const open = Math.min(hidden.open, formats.open);
  return {
    marks: joined([...plain.found.map(knownMark), ...rawMarks]),
    open: Math.min(plain.open, open < view.text.length ? view.startOf(open) : raw.length),
  };
}

const NOTHING: Search = { found: [], open: Number.POSITIVE_INFINITY };
export const KNOWN_SECRET = "known-secret";
const knownMark = (range: Found): Mark => ({ kind: KNOWN_SECRET, ...range });

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
function joined(found: readonly Mark[]): readonly Mark[] {
  const marks: Mark[] = [];
  for (const next of found.toSorted((a, b) => a.from - b.from || b.to - a.to)) {
    const last = marks.at(-1);
    if (last === undefined || next.from >= last.to) marks.push(next);
    else {
      const kind = next.kind === KNOWN_SECRET ? next.kind : last.kind;
      const { to, tail } = next.to >= last.to && (last.tail === undefined || next.to > last.to) ? next : last;
      marks[marks.length - 1] = { kind, from: last.from, to, ...(tail === undefined ? {} : { tail }) };
    }
  }
  return marks;
}

/** The text up to `end` with its marks. */
export function withMarks(text: string, marks: readonly Mark[], end: number): string {
  const pieces: string[] = [];
  let from = 0;
  for (const mark of marks) {
    if (mark.from >= end) break;
    pieces.push(text.slice(from, mark.from), `[redacted:${mark.kind}]`);
    from = mark.to;
  }
  pieces.push(text.slice(from, end));
  return pieces.join("");
}

interface Rewrites {
  readonly open: (text: string) => Steps<string>;
  readonly sealed: (text: string) => Steps<string>;
}

/**
 * `plain`: what is opaque is told by its shape. `arguments`: a model wrote it and may imitate any shape, so nothing in there
 * is taken for opaque. `repeated`: opaque, with words and calls in it. `sealed`: opaque through and through.
 */
type Place = "plain" | "arguments" | "repeated" | "sealed";

/** Under these names providers keep what a model said or called. */
const REPEATED: ReadonlySet<string> = new Set(["text", "input", "args", "refusal"]);

function* mapStrings(value: unknown, rewrites: Rewrites, place: Place = "plain"): Steps<unknown> {
  const rewrite = place === "plain" || place === "arguments" ? rewrites.open : rewrites.sealed;
  if (typeof value === "string") return yield* rewrite(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const mapped: unknown[] = [];
    for (const entry of value) mapped.push(yield* mapStrings(entry, rewrites, place));
    return mapped;
  }
  const entries: [string, unknown][] = [];
  for (const [key, entry] of Object.entries(value)) {
    entries.push([yield* rewrite(key), yield* mapStrings(entry, rewrites, placeOf(value, key, place))]);
  }
  return Object.fromEntries(entries);
}

function placeOf(parent: object, key: string, place: Place): Place {
  if (place === "arguments" || key === "arguments") return "arguments";
  if (place === "repeated" && REPEATED.has(key)) return "arguments";
  if (place !== "plain") return place;
  if (key === "opaque" && "kind" in parent) return parent.kind === "reasoning" ? "sealed" : "repeated";
  const isImage = key === "base64" && "type" in parent && parent.type === "image" && "mediaType" in parent;
  return isImage ? "sealed" : "plain";
}

const patterns = createRedactor();
