import { expect, test } from "vitest";
import { createRedactor } from "./redact.ts";
import { createStreamRedactor } from "./redact-stream.ts";

const KNOWN = "known-value-Q7xQ7xQ7xQ7xQ7xQ7x";

/** What each format begins with, again and again, and what almost is a secret of it. */
const ATTACKS: readonly string[] = [
  "-eyJ",
  "-eyJaaaaaaaa.eyJ",
  "eyJaaaaaaaa.eyJaaaaaaaa.",
  "-sk-",
  "sk-aaaaaaaaaaaaaaaaaaa-",
  "-sk-ant-",
  "-ghp_",
  "-github_pat_",
  "-AKIA",
  "(AAKIA",
  "-AIza",
  "-xoxb-",
  "-whsec_",
  "-----BEGIN ",
  "-----BEGIN A A A A PRIVATE KEY-----aaaa",
  `-----BEGIN PRIVATE KEY-----${"a".repeat(31)}"`,
  "a://",
  `a://${"u".repeat(200)}:${"p".repeat(250)}`,
  "authorization",
  "authorization: bearer ",
  "authorization      :",
  " bearer ",
  "\u001B[",
  "\u001B[0;0;0;0;0;0;0;0;0",
  "\u001B[31meyJ",
  "\\neyJ",
  "[1;1;1;1eyJ",
  "%41",
  "%41eyJ",
  "%e9",
  "%67hp_a1b2c3d4e5f6a7b8c9d0e1f2 ",
  "\u001B[31m",
  "\u001B[31m%41",
  "%2525252525",
  KNOWN,
  KNOWN.slice(0, -1),
  Buffer.from(KNOWN).toString("base64").slice(0, 12),
];
const KIB = 1024;
const MIB = 1024 * KIB;
const SMALLEST = 64 * KIB;
const SIZES = [SMALLEST, 1024 * KIB];
/** What costs most for its length, and what everybody writes. */
const LARGEST = 8192 * KIB;
const LARGE: ReadonlySet<string> = new Set(["-eyJ", "%41"]);
const PLAIN = "Plain words of a text, and a line of code: return found.length + 1;\n";
/** Of processor time for a megabyte: several times what it takes, a fraction of what a slow way takes. */
const MAX_MS_PER_MIB = 250;
const MAX_PLAIN_MS_PER_MIB = 40;
/** Twice the text may take this many times as long. */
const MAX_GROWTH = 2.5;
/** Below this the clock of the processor and the collector say more than the text does. */
const FLOOR_MS = 20;

test("12.11: time grows with the length of the text, whatever is in it, and is short for plain text", () => {
  const redactor = createRedactor([KNOWN]);
  for (const unit of [...ATTACKS, PLAIN]) {
    const mostPerMiB = unit === PLAIN ? MAX_PLAIN_MS_PER_MIB : MAX_MS_PER_MIB;
    let [before, size] = [Number.POSITIVE_INFINITY, SMALLEST];
    for (const next of LARGE.has(unit) ? [...SIZES, LARGEST] : SIZES) {
      const text = filled(unit, next);
      // The smallest is measured when it has been compiled.
      if (next === SMALLEST) redactor.text(text);
      const time = cpuMs(() => redactor.text(text));
      const mostByLength = next < MIB ? Number.POSITIVE_INFINITY : (mostPerMiB * next) / MIB;
      const most = Math.min(before * MAX_GROWTH ** Math.log2(next / size), mostByLength);
      expect(time, `${JSON.stringify(unit)}, ${next} characters`).toBeLessThan(most);
      [before, size] = [Math.max(time, FLOOR_MS), next];
    }
  }
}, 120_000);

test("12.11: 8 MB of it in pieces leave the event loop free", () => {
  for (const unit of ["-eyJ", "authorization: bearer ", `ghp_${KNOWN}a1b2c3d4e5f6a7b8c9d0\u001B[m`]) {
    const stream = createStreamRedactor(createRedactor([KNOWN]));
    const times = [...pieces(filled(unit, 8 * MIB), 64 * KIB)].map((piece) => cpuMs(() => stream.push(piece)));
    stream.end();
    expect(Math.max(...times)).toBeLessThan(150);
  }
}, 60_000);

test("12.11: small pieces cost no more than their length, also of an endless word", () => {
  for (const unit of ["x", "-eyJ", "authorization: bearer ", "\u001B[31m", "0"]) {
    const [short = 0, long = 0] = [32, 128].map((kib) =>
      leastCpuMs(() => {
        const stream = createStreamRedactor(createRedactor([KNOWN, "000000000000"]));
        for (const piece of pieces(filled(unit, kib * KIB), 8)) stream.push(piece);
        stream.end();
      }),
    );
    expect(long, JSON.stringify(unit)).toBeLessThan(Math.max(short, FLOOR_MS) * MAX_GROWTH ** 2);
  }
}, 60_000);

/** Of this thread alone: what the collector and the compiler do beside it depends on the hour. */
function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** A core that others use too is slower for a while; that is never the least of several times. */
function leastCpuMs(work: () => void): number {
  return Math.min(...Array.from({ length: 3 }, () => cpuMs(work)));
}

function filled(unit: string, size: number): string {
  return unit.repeat(Math.ceil(size / unit.length)).slice(0, size);
}

function* pieces(text: string, size: number): Generator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}
