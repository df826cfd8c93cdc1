/**
 * Chance against the promise that text in pieces comes out as if it were whole. The judge does not ask the redactor what a
 * secret is: the generator remembers what it planted, and nothing of that may be readable, encoded or not.
 */
import { expect, test } from "vitest";
import { createRedactor, type Redactor } from "./redact.ts";
import { createStreamRedactor, type StreamRedactor } from "./redact-stream.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const TEXTS = isFull ? 40_000 : 400;
const SEED = Number(process.env["HEDDLE_E2E_SEED"] ?? 1212);
/** So many characters of a secret in a row are a leak; of an encoded form as many as say so much of it. */
const LEAK_CHARS = 8;
const LEAK_ENCODED_CHARS = 16;

const KNOWN: readonly string[] = [
  "Zq-known/value+0123456789",
  "kn0wn-8c",
  "two words, one s3cret",
  "line one 1x\nline two 2y",
  "pass%20w0rd%41-literal",
  "p\u00E0ssw\u00F6rd-g\u00E8heim",
  "000000000000",
  "abcabcabcabcabcabc",
  "@h0st-known:5432",
  "41abcdefghij",
  `${"L0ng".repeat(20)}${Array.from({ length: 90 }, (_, at) => (at * 7919).toString(36)).join("x")}`,
];

interface Planted {
  readonly text: string;
  /** What nobody may read in the output, when colours are gone and percent-encoding is undone. */
  readonly hidden: readonly string[];
  readonly encoded: readonly string[];
}
type Chance = () => number;

test(
  `12.12: ${TEXTS} texts (40,000 with HEDDLE_E2E_FULL=1) in pieces come out as if they were whole, without what was planted`,
  () => {
    const redactor = createRedactor(KNOWN);
    const wrong: unknown[] = [];
    for (let seed = SEED; seed < SEED + TEXTS && wrong.length < 3; seed += 1) {
      const next = seeded(seed);
      const planted = mixed(next);
      const { text } = planted;
      const whole = redactor.text(text);
      const { kept, shown } = inPieces(redactor, text, next);
      const leaks = [...leaked(whole, planted), ...leaked(kept, planted), ...leaked(shown, planted)];
      if (leaks.length > 0 || kept !== whole) wrong.push({ seed, text, whole, kept, leaks });
    }
    expect(wrong).toEqual([]);
  },
  isFull ? 3_600_000 : 120_000,
);

/** `kept`: as nobody looked in between. `shown`: somebody did. */
function inPieces(redactor: Redactor, text: string, next: Chance): { kept: string; shown: string } {
  const largest = pick(next, [1, 2, 5, 20, 100, 1000, text.length]);
  let stream: StreamRedactor = createStreamRedactor(redactor);
  const looked = createStreamRedactor(redactor);
  let [kept, shown] = ["", ""];
  for (let at = 0; at < text.length;) {
    const size = 1 + Math.floor(next() * largest);
    const piece = text.slice(at, at + size);
    kept += stream.push(piece);
    shown += looked.push(piece);
    if (next() < 0.1) shown += looked.flush();
    if (next() < 0.05) stream = stream.fork();
    at += size;
  }
  return { kept: kept + stream.end(), shown: shown + looked.end() };
}

function leaked(out: string, { hidden, encoded }: Planted): readonly string[] {
  const readable = [out, bare(out)].map((text) => text.replaceAll(/\[redacted:[a-z-]+\]/g, "\0"));
  return [
    ...hidden.flatMap((secret) => windows(secret, LEAK_CHARS)),
    ...encoded.flatMap((secret) => windows(secret, LEAK_ENCODED_CHARS)),
  ].filter((part) => readable.some((text) => text.includes(part)));
}

function windows(secret: string, chars: number): readonly string[] {
  return Array.from({ length: Math.max(1, secret.length - chars + 1) }, (_, at) => secret.slice(at, at + chars));
}

function bare(text: string): string {
  // eslint-disable-next-line no-control-regex
  let now = text.replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "");
  for (let times = 0; times < 3; times += 1) {
    now = now.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
  }
  return now;
}

function mixed(next: Chance): Planted {
  const parts = Array.from({ length: 1 + Math.floor(next() * 12) }, () => {
    const kind = next();
    if (kind < 0.25) return formatSecret(next);
    if (kind < 0.5) return knownSecret(next);
    return { text: noise(next), hidden: [], encoded: [] };
  });
  const planted: Planted = { text: "", hidden: [], encoded: [] };
  return parts.reduce((before, part) => {
    const text = before.text + part.text;
    // The end of a control sequence that is open may be the first character of what follows it.
    if (OPEN_SEQUENCE.test(before.text)) return { ...before, text };
    return { text, hidden: [...before.hidden, ...part.hidden], encoded: [...before.encoded, ...part.encoded] };
  }, planted);
}
// eslint-disable-next-line no-control-regex
const OPEN_SEQUENCE = /\u001B[^A-Za-z]*$/;

const WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const chars = (next: Chance, count: number, of = WORD): string =>
  Array.from({ length: count }, () => of.charAt(Math.floor(next() * of.length))).join("");

/** A secret of a format, with what says where it begins and ends. */
function formatSecret(next: Chance): Planted {
  const hidden: string[] = [];
  const exactly = (count: number, of?: string): string => {
    hidden.push(chars(next, count, of));
    return hidden.at(-1) ?? "";
  };
  const body = (least: number): string => exactly(least + Math.floor(next() * 40)).replace(/./, "7");
  const long = next() < 0.1 ? 700 : 20;
  const [lead, secret, trail] = pick<() => readonly [string, string, string]>(next, [
    () => ["", `ghp_${body(long)}`, ""],
    () => ["", `github_pat_${body(22)}_${body(30)}`, ""],
    () => ["", `sk-proj-${body(long)}`, ""],
    () => ["", `sk-ant-api03-${body(long)}`, ""],
    () => ["", `AKIA${exactly(16, UPPER)}`, ""],
    () => ["", `AIza${exactly(35)}`, ""],
    () => ["", `xoxb-${body(12)}-${body(20)}`, ""],
    () => ["", `whsec_${body(20)}`, ""],
    () => ["", `eyJ${body(long)}.eyJ${body(20)}.${body(20)}`, ""],
    () => ["postgres://app:", body(long === 20 ? 8 : 100), "@db.local"],
    () => ["Bearer ", body(long), ""],
    () => ["Authorization: Basic ", body(long), ""],
    () => [
      "-----BEGIN RSA PRIVATE KEY-----\n",
      `${body(60)}\n${body(60)}\n${body(long)}`,
      "\n-----END RSA PRIVATE KEY-----",
    ],
  ])();
  const written = encodedSomehow(next, lead + secret + trail);
  const before = pick(next, [
    " ",
    "\n",
    '"',
    "\u001B[1;31m",
    "\\n",
    "%3D",
    "\u001B[0m=",
    " (",
    "\u001B[31m".repeat(80),
  ]);
  return { text: before + written + pick(next, [" ", "\n", '" ', "\u001B[0m ", ' "', ", "]), hidden, encoded: [] };
}

function knownSecret(next: Chance): Planted {
  const secret = pick(next, KNOWN);
  const bytes = Buffer.from(secret);
  const lead = pick(next, ["", "a", "bc", "some text before "]);
  const form = pick(next, ["plain", "json", "hex", "HEX", "base64", "base64url", "latin1", "encoded"] as const);
  // A part of an encoded form is as long as the whole of a short value.
  const around =
    form === "base64" || form === "base64url" ? "" : pick(next, ["", " ", "x", "\n", "=", "ghp_", "://u:"]);
  const text = {
    plain: () => secret,
    json: () => JSON.stringify(secret).slice(1, -1),
    hex: () => bytes.toString("hex"),
    HEX: () => bytes.toString("hex").toUpperCase(),
    base64: () => Buffer.from(lead + secret + lead).toString("base64"),
    base64url: () => Buffer.from(lead + secret + lead).toString("base64url"),
    latin1: () => bytes.toString("latin1"),
    encoded: () => (/[%\u0080-\uFFFF]/.test(secret) ? encodeURIComponent(secret) : encodedSomehow(next, secret)),
  }[form]();
  const isEncoded = !["plain", "json", "latin1", "encoded"].includes(form);
  // Zeros and the like stand in other words too.
  const isTelling = new Set(secret).size > 5;
  const inner = text.slice(2, -4 - Math.ceil((lead.length * 4) / 3)).slice(Math.ceil((lead.length * 4) / 3));
  return {
    text: around + text.repeat(next() < 0.05 ? 30 : 1) + pick(next, ["", " ", "\n", "x", "="]),
    hidden: isEncoded || !isTelling ? [] : [secret.slice(secret.length / 2)],
    encoded: isEncoded && isTelling && inner.length >= LEAK_ENCODED_CHARS ? [inner] : [],
  };
}

function encodedSomehow(next: Chance, text: string): string {
  const how = next();
  if (how < 0.5) return text;
  if (how < 0.6) return encodeURIComponent(text);
  const rate = pick(next, [0.02, 0.2, 1]);
  return Array.from(text, (character) => {
    if (next() >= rate) return character;
    const hex = character.charCodeAt(0).toString(16).padStart(2, "0");
    if (how < 0.7) return `%${hex}`;
    if (how < 0.8) return `%${"25".repeat(Math.floor(next() * 3))}${hex.toUpperCase()}`;
    return pick(next, ["\u001B[31m", "\u001B[0;1;38;5;200m", "\u001B[m\u001B[K"]) + character;
  }).join("");
}

const NOISE: readonly string[] = [
  "plain words of a text ",
  "word",
  "-",
  "/",
  "=",
  '"',
  ";",
  "[",
  "@",
  ":",
  ",",
  "  ",
  "\n",
  "\\n",
  "\\u001b[31m",
  "%",
  "%2",
  "%25",
  "%41",
  "%e9",
  "%C3%A0",
  "\u001B",
  "\u001B[",
  "\u001B[3",
  "\u001B(B",
  "\u00E9",
  "\u{1F600}",
  "sk-",
  "sk-spinner-wandering-cubes",
  "ghp_",
  "gh",
  "github_pat_abc",
  "AKIA",
  "AKIAQ7XZ",
  "AIza",
  "xoxb-",
  "whsec_",
  "eyJ",
  "eyJaaaaaaaa.",
  "eyJaaaaaaaa.eyJbbbbbbbb.",
  "://",
  "https://user:",
  "a://u:p@",
  "Bearer ",
  "bearer",
  "Authorization: ",
  "authorization: basic ",
  "-----BEGIN ",
  "-----BEGIN PRIVATE KEY-----",
  "-----END PRIVATE KEY-----",
  "-----",
  "[redacted:",
  "Zq-known/val",
  "two words, on",
  "abcabc",
  "AKIAQ7XZQ7XZQ7XZQ7XZ",
  `AIza${"Q7xQ7".repeat(7)}`,
  `ghp_${"a1".repeat(12)}`,
  "0000",
];

function noise(next: Chance): string {
  const kind = next();
  if (kind < 0.75) return pick(next, NOISE).repeat(next() < 0.03 ? 1 + Math.floor(next() * 200) : 1);
  if (kind < 0.9) return chars(next, Math.floor(next() * 30));
  if (kind < 0.95) return chars(next, 200 + Math.floor(next() * 600));
  const known = pick(next, KNOWN);
  return known.slice(0, Math.floor((next() * known.length) / 2));
}

function pick<T>(next: Chance, from: readonly T[]): T {
  const picked = from[Math.floor(next() * from.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

/** The same numbers in every run. */
function seeded(seed: number): Chance {
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixedUp = Math.imul(state ^ (state >>> 15), state | 1);
    mixedUp ^= mixedUp + Math.imul(mixedUp ^ (mixedUp >>> 7), mixedUp | 61);
    return ((mixedUp ^ (mixedUp >>> 14)) >>> 0) / 2 ** 32;
  };
}
