/**
 * Secrets of known formats. One pass finds where one could begin; there a format checks the run of characters that
 * follows. Runs are cached and requested from left to right, so that the time is linear in the text.
 */

import { keyEnd, keyStart, MAX_BODY_CHARS, MIN_BODY_CHARS } from "./secret-key-block.ts";
import { STEP_CHARS, type Steps } from "../record/steps.ts";

export interface Secret {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  /** Where the search must begin to find it: what precedes a secret may identify it. */
  readonly start: number;
  /** The text up to here makes it a secret. */
  readonly sure: number;
  /** It reaches the end of unfinished text: what follows belongs to it as long as this matches. */
  readonly tail?: Tail;
  readonly isRest?: true;
}

/** A run of these characters, or the lines of a key that began here, with their bound. */
export type Tail = { readonly class: number } | { readonly keyFrom: number; readonly most: number };

export interface FormatSearch {
  readonly secrets: readonly Secret[];
  /** From here on more text could make a secret; the length of the text where nothing could. */
  readonly open: number;
}

export interface Unfinished {
  readonly isWhole: boolean;
  /** Whether something was left out before this character. */
  readonly followsGap: (index: number) => boolean;
  /** Text before this is only context. */
  readonly from: number;
  /** Of secrets that reached the end of the text before. */
  readonly tails: readonly Tail[];
}

/** Beginnings that are part of the secret. */
const TOKEN = /sk-|gh[pousr]_|github_pat_|A[KS]IA|AIza|xox[a-z]-|whsec_|eyJ/;
/** What precedes a secret and is not part of it. */
const LEAD = /-----BEGIN |:\/\/|[Bb][Ee][Aa][Rr][Ee][Rr]|[Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn]/;
/** Every secret of a known format begins with one of these. */
const BEGINNING = new RegExp(`${TOKEN.source}|${LEAD.source}`, "g");

/** `abc` as `a(?:b(?:c)?)?$`: a token of which only the first characters have come. */
const CUT_TOKEN = new RegExp(
  `(?:${TOKEN.source
    .split("|")
    .map((token) =>
      (token.match(/\[[^\]]+\]|./g) ?? []).reduceRight((rest, atom) => `${atom}${rest && `(?:${rest})?`}`, ""),
    )
    .join("|")})$`,
  "y",
);
const MAX_TOKEN_CHARS = "github_pat_".length;

/** How many characters at the end could begin a token. */
export function cutBeginning(text: string, followsGap: Unfinished["followsGap"]): number {
  for (let at = Math.max(0, text.length - MAX_TOKEN_CHARS); at < text.length; at += 1) {
    CUT_TOKEN.lastIndex = at;
    if (CUT_TOKEN.test(text) && startsWord({ text, followsGap }, at)) return text.length - at;
  }
  return 0;
}

export function hasBeginning(text: string): boolean {
  BEGINNING.lastIndex = 0;
  return BEGINNING.test(text);
}

export function* findSecrets(text: string, unfinished: Unfinished): Steps<FormatSearch> {
  const scan: Scan = { text, ...unfinished, runs: new Map() };
  const search: Searching = { secrets: [], open: text.length, at: unfinished.from, widest: undefined, tails: 0 };
  for (const tail of unfinished.tails) add(search, restOf(scan, tail));
  for (; search.at < text.length; yield) findSome(scan, search);
  return search;
}

interface Searching {
  readonly secrets: Secret[];
  open: number;
  at: number;
  widest: Secret | undefined;
  /** The classes of those that reach the end of unfinished text. */
  tails: number;
}

/** Unless it lies within another and ends with it. */
function add(search: Searching, secret: Secret): void {
  const { widest, tails } = search;
  const { from, to, tail } = secret;
  if (tail !== undefined && "class" in tail) search.tails |= tail.class;
  const isWithin = widest !== undefined && from >= widest.from && to <= widest.to;
  if (isWithin && search.tails === tails && (tail === undefined || "class" in tail)) return;
  search.secrets.push(secret);
  if (widest === undefined || to > widest.to) search.widest = secret;
}

function restOf(scan: Scan, tail: Tail): Secret {
  const { text, from, isWhole } = scan;
  const rest = { kind: "rest", from, start: from, sure: from, isRest: true } as const;
  if ("class" in tail) {
    const to = runEnd(text, from, tail.class);
    return { ...rest, to, ...(isCut(scan, to) ? { tail } : {}) };
  }
  const { to, isOpen } = keyEnd(text, from, { isWhole, most: tail.most - (from - tail.keyFrom), isInBody });
  return { ...rest, to, ...(isOpen ? { tail } : {}) };
}

function findSome(scan: Scan, search: Searching): void {
  const { text } = scan;
  const stop = search.at + STEP_CHARS;
  let { at } = search;
  while (at < stop) {
    BEGINNING.lastIndex = at;
    const found = BEGINNING.exec(text);
    if (found === null) {
      at = text.length;
      break;
    }
    const outcome = formatOf(found[0])(scan, found.index, found.index + found[0].length);
    if (outcome === "open") search.open = Math.min(search.open, found.index);
    else if (outcome !== undefined) add(search, outcome);
    // Another may begin within it and continue where it ends.
    at = found.index + 1;
  }
  search.at = at;
}

interface Scan extends Unfinished {
  readonly text: string;
  /** The last run of each question. */
  readonly runs: Map<string, { from: number; to: number }>;
}

type Outcome = Secret | "open" | undefined;
type Format = (scan: Scan, at: number, after: number) => Outcome;

function formatOf(beginning: string): Format {
  switch (beginning) {
    case "sk-":
      return providerKey;
    case "eyJ":
      return jwt;
    case "-----BEGIN ":
      return privateKey;
    case "://":
      return urlPassword;
    case "AKIA":
    case "ASIA":
      return awsKey;
    case "AIza":
      return googleKey;
    case "whsec_":
      return atLeast("webhook-secret", 16, IN.base64);
    case "github_pat_":
      return atLeast("github-token", 20, IN.word);
    default:
      break;
  }
  if (beginning.startsWith("gh")) return atLeast("github-token", 20, IN.alphanumeric);
  if (beginning.startsWith("xox")) return atLeast("slack-token", 10, IN.word);
  return beginning.length === "bearer".length ? bearer : authorization;
}

/** Sets of characters as bits of one table; everything beyond ASCII shares its last entry. */
const IN = { word: 1, alphanumeric: 2, base64: 4, bearer: 8, header: 16, user: 32, password: 64, key: 128 } as const;
const NO_DIGIT = { word: 256, bearer: 512 } as const;
const LOWER = 1024;
const UPPER = 2048;

const CLASSES = classesOf([
  [IN.word, /[\w-]/g],
  [IN.alphanumeric, /[A-Za-z0-9]/g],
  [IN.base64, /[\w+/=-]/g],
  [IN.bearer, /[\w.~+/=-]/g],
  [IN.header, /[^\s"'\\,;$<{[\u0080]/g],
  [IN.user, /[^\s:/@"'[]/g],
  [IN.password, /[^\s@/"']/g],
  [IN.key, /[\w\s+/=:,.\\()|>-]/g],
  [NO_DIGIT.word, /[A-Za-z_-]/g],
  [NO_DIGIT.bearer, /[A-Za-z_.~+/=-]/g],
  [LOWER, /[a-z]/g],
  [UPPER, /[A-Z0-9]/g],
]);

/** One match per pattern: testing every character takes milliseconds, in every run. */
function classesOf(members: readonly (readonly [bit: number, pattern: RegExp])[]): Uint16Array {
  const classes = new Uint16Array(129);
  const characters = String.fromCharCode(...classes.keys());
  for (const [bit, pattern] of members) {
    for (const character of characters.match(pattern) ?? []) {
      const code = character.charCodeAt(0);
      classes[code] = (classes[code] ?? 0) | bit;
    }
  }
  return classes;
}

/** The end of a run of these characters that begins at `from`. */
function runEnd(text: string, from: number, bit: number): number {
  let at = from;
  while (at < text.length && is(text, at, bit)) at += 1;
  return at;
}

function is(text: string, at: number, bit: number): boolean {
  return ((CLASSES[Math.min(text.charCodeAt(at), 128)] ?? 0) & bit) !== 0;
}

/** The same, cached per question. */
function run(scan: Scan, question: string, from: number, bit: number): number {
  const known = scan.runs.get(question);
  if (known !== undefined && from >= known.from && from <= known.to) return known.to;
  const to = runEnd(scan.text, from, bit);
  scan.runs.set(question, { from, to });
  return to;
}

const isCut = ({ text, isWhole }: Scan, at: number): boolean => !isWhole && at >= text.length;

type Range = Omit<Secret, "kind" | "tail">;

function secret(scan: Scan, kind: string, range: Range, bit: number): Secret {
  return { kind, ...range, ...(isCut(scan, range.to) ? { tail: { class: bit } } : {}) };
}

function atLeast(kind: string, chars: number, bit: number): Format {
  return (scan, at, after) => {
    if (!startsWord(scan, at)) return undefined;
    const to = run(scan, kind, after, bit);
    if (to - after >= chars) return secret(scan, kind, { start: at, from: at, to, sure: after + chars }, bit);
    return isCut(scan, to) ? "open" : undefined;
  };
}

const anthropicKey = atLeast("anthropic-key", 16, IN.word);
/** Digits further on say nothing about the beginning. */
const DIGIT_WITHIN_CHARS = 64;
const MIN_KEY_CHARS = 16;
const MIN_RUN_CHARS = 20;

/** Words joined by hyphens are not a key: there must be a digit, or one long run. */
function providerKey(scan: Scan, at: number, after: number): Outcome {
  const { text } = scan;
  if (!startsWord(scan, at)) return undefined;
  if (text.startsWith("ant-", after)) {
    const found = anthropicKey(scan, at, after + 4);
    if (found !== undefined) return found;
  }
  const to = run(scan, "openai", after, IN.word);
  const digit = run(scan, "openai.digit", after, NO_DIGIT.word);
  const word = run(scan, "openai.word", after, LOWER);
  const begins = word > after && text[word] === "-" ? word + 1 : after;
  const isKey =
    to - after >= MIN_KEY_CHARS &&
    ((digit < to && digit - after <= DIGIT_WITHIN_CHARS) ||
      run(scan, "openai.first", after, IN.alphanumeric) - after >= MIN_RUN_CHARS ||
      run(scan, "openai.second", begins, IN.alphanumeric) - begins >= MIN_RUN_CHARS);
  // After this much of a run without a sign of a key none can come.
  const sure = after + DIGIT_WITHIN_CHARS + MIN_RUN_CHARS;
  if (isKey) return secret(scan, "openai-key", { start: at, from: at, to, sure }, IN.word);
  return isCut(scan, to) && to <= sure ? "open" : undefined;
}

function awsKey(scan: Scan, at: number, after: number): Outcome {
  if (!startsWord(scan, at)) return undefined;
  const to = run(scan, "aws", after, IN.alphanumeric);
  const isKey = to - after === 16 && run(scan, "aws.upper", after, UPPER) === to;
  return exactly(scan, "aws-key", { at, after, to }, isKey, 16);
}

function googleKey(scan: Scan, at: number, after: number): Outcome {
  if (!startsWord(scan, at)) return undefined;
  const to = run(scan, "google", after, IN.word);
  return exactly(scan, "google-key", { at, after, to }, to - after === 35, 35);
}

type Span = Readonly<Record<"at" | "after" | "to", number>>;

function exactly(scan: Scan, kind: string, { at, after, to }: Span, isKey: boolean, chars: number): Outcome {
  if (isCut(scan, to)) return to - after <= chars ? "open" : undefined;
  return isKey ? { kind, start: at, from: at, to, sure: to } : undefined;
}

/** A longer part is not part of a token. */
const MAX_JWT_PART_CHARS = 8192;

function jwt(scan: Scan, at: number, after: number): Outcome {
  if (!startsWord(scan, at)) return undefined;
  const { text } = scan;
  const first = run(scan, "jwt.first", after, IN.word);
  if (first - after > MAX_JWT_PART_CHARS) return undefined;
  if (isCut(scan, first)) return "open";
  if (first - after < 8 || text[first] !== ".") return undefined;
  if (isCut(scan, first + 4) && ".eyJ".startsWith(text.slice(first))) return "open";
  if (!text.startsWith(".eyJ", first)) return undefined;
  const second = run(scan, "jwt.second", first + 4, IN.word);
  if (second - first - 4 > MAX_JWT_PART_CHARS) return undefined;
  if (isCut(scan, second)) return "open";
  if (second - first - 4 < 8 || text[second] !== ".") return undefined;
  const to = run(scan, "jwt.third", second + 1, IN.word);
  if (to - second - 1 >= 4) return secret(scan, "jwt", { start: at, from: at, to, sure: second + 5 }, IN.word);
  return isCut(scan, to) ? "open" : undefined;
}

/** Not a placeholder such as ${PASSWORD} or <password>. */
const PLACEHOLDER = /[$<{*["']/;
const MAX_URL_PART_CHARS = 256;

function urlPassword(scan: Scan, at: number, after: number): Outcome {
  const { text } = scan;
  if (!is(text, at - 1, IN.alphanumeric)) return undefined;
  const user = run(scan, "url.user", after, IN.user);
  if (user - after > MAX_URL_PART_CHARS) return undefined;
  if (isCut(scan, user)) return "open";
  if (text[user] !== ":") return undefined;
  const from = user + 1;
  const to = run(scan, "url.password", from, IN.password);
  if (to - from > MAX_URL_PART_CHARS + 1 || PLACEHOLDER.test(text.charAt(from))) return undefined;
  if (isCut(scan, to)) return "open";
  return to > from && text[to] === "@" ? { kind: "url-password", start: at, from, to, sure: to + 1 } : undefined;
}

/** "Authorization: Basic …" in a header, in JSON, in JSON inside a string. */
const SCHEME = /authorization["'\\\s]{0,6}[:=]["'\\\s]{0,6}(?:basic|bearer|token)\s{1,4}/iy;
const SCHEME_CUT = /authorization["'\\\s]{0,6}(?:[:=]["'\\\s]{0,6}(?:[a-z]{0,6}\s{0,4})?)?$/iy;
const BEARER = /bearer\s{1,4}/iy;
const BEARER_CUT = /bearer\s{0,4}$/iy;
const MARK = "[redacted:";

function authorization(scan: Scan, at: number): Outcome {
  const from = afterHeader(scan, at, SCHEME, SCHEME_CUT);
  if (typeof from !== "number") return from;
  const to = run(scan, "authorization", from, IN.header);
  if (scan.text.startsWith(MARK, from)) return undefined;
  if (isCut(scan, to) && MARK.startsWith(scan.text.slice(from, to))) return "open";
  if (to - from >= 4) return secret(scan, "authorization", { start: at, from, to, sure: from + 4 }, IN.header);
  return isCut(scan, to) ? "open" : undefined;
}

function bearer(scan: Scan, at: number): Outcome {
  const from = afterHeader(scan, at, BEARER, BEARER_CUT);
  if (typeof from !== "number") return from;
  const to = run(scan, "bearer", from, IN.bearer);
  const digit = run(scan, "bearer.digit", from, NO_DIGIT.bearer);
  if (to - from >= MIN_KEY_CHARS && digit < to && digit - from <= DIGIT_WITHIN_CHARS) {
    return secret(scan, "bearer-token", { start: at, from, to, sure: from + DIGIT_WITHIN_CHARS + 1 }, IN.bearer);
  }
  return isCut(scan, to) && to - from <= DIGIT_WITHIN_CHARS ? "open" : undefined;
}

/** Where the value of a header begins; the patterns see a bounded piece of text. */
function afterHeader(scan: Scan, at: number, header: RegExp, cut: RegExp): number | "open" | undefined {
  if (!startsWord(scan, at)) return undefined;
  header.lastIndex = at;
  if (header.test(scan.text)) {
    // More white space may belong to the header.
    return isCut(scan, header.lastIndex) ? "open" : header.lastIndex;
  }
  cut.lastIndex = at;
  return !scan.isWhole && cut.test(scan.text) ? "open" : undefined;
}

/** A cut block has no end; what looks like key lines is removed anyway. */
function privateKey(scan: Scan, at: number): Outcome {
  const { text, isWhole } = scan;
  const from = keyStart(text, at, isWhole);
  if (typeof from !== "number") return from;
  const end = keyEnd(text, from, { isWhole, most: MAX_BODY_CHARS, isInBody });
  const sure = from + MIN_BODY_CHARS;
  if (end.body < sure) return end.isOpen ? "open" : undefined;
  const key = { kind: "private-key", start: at, from: at, to: end.to, sure };
  return end.isOpen ? { ...key, tail: { keyFrom: from, most: MAX_BODY_CHARS } } : key;
}
const isInBody = (text: string, at: number): boolean => is(text, at, IN.key);

/**
 * Not inside a longer word: base64 and hashes contain every short beginning. An escape is not a word: `\n`, `\u001b`,
 * `=3D`, and the rest of a control sequence.
 */
function startsWord({ text, followsGap }: Pick<Scan, "text" | "followsGap">, at: number): boolean {
  if (at === 0 || !is(text, at - 1, IN.alphanumeric) || followsGap(at)) return true;
  // ESC and one letter.
  if (at > 1 && followsGap(at - 1)) return true;
  if ("\\()".includes(text.charAt(at - 2))) return true;
  return ESCAPE.test(text.slice(Math.max(0, at - MAX_ESCAPE_CHARS), at));
}

const MAX_ESCAPE_CHARS = 40;
const ESCAPE = /(?:\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{1,3})|=[0-9A-F]{2}|(?:\[|^)[0-9;:<=>?]{0,40}[A-Za-z])$/;
