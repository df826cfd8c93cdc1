import { expect, test } from "vitest";
import { canonical } from "@heddle/protocol";
import { createRedactor } from "./redact.ts";
import { inTurns } from "../record/steps.ts";

const KNOWN = "known-value-Q7xQ7xQ7xQ7xQ7xQ7x";
/** Secrets, beginnings of secrets and what may stand around them. */
const PIECES: readonly string[] = [
  "-eyJ",
  "eyJaaaaaaaa.eyJaaaaaaaa.",
  "abcd",
  "sk-",
  "sk-proj-a1b2c3d4e5f6a7b8c9d0",
  "sk-ant-",
  "-ghp_",
  "a1b2c3d4e5f6a7b8c9d0e1f2",
  " AKIAABCDEFGHIJKLMNOP ",
  "AKIA",
  "xoxb-1234567890-abc",
  "-----BEGIN PRIVATE KEY-----\n",
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n",
  "-----END PRIVATE KEY-----\n",
  "https://",
  "user:",
  "password@host ",
  "Authorization: Bearer ",
  "authorization",
  "bearer ",
  "\u001B[31m",
  "\u001B[",
  "%41",
  "%2525",
  "%67hp_",
  "%e9",
  KNOWN,
  KNOWN.slice(0, 12),
  Buffer.from(KNOWN).toString("base64"),
  " ",
  "\n",
  "\\n",
  "word ",
  "0;",
  "漢",
  "😀",
];

test("12.11: what is redacted in turns with others comes out as if it had been alone", async () => {
  const redactor = createRedactor([KNOWN]);
  const next = seeded(1211);
  const bodies = Array.from({ length: 4 }, () => ({
    text: mixed(next, 200_000),
    many: Array.from({ length: 20 }, () => mixed(next, 5_000)),
    image: { type: "image", mediaType: "image/png", base64: mixed(next, 100_000) },
    [mixed(next, 20)]: 1,
  }));
  const alone = bodies.map((body) => redactor.body(body, canonical(body)));
  // Every step of one is followed by a step of another, and by short work that is done at once.
  const running = bodies.map((body) => redactor.bodyInSteps(body, canonical(body)));
  const done = new Map<number, unknown>();
  while (done.size < running.length) {
    for (const [at, steps] of running.entries()) {
      const step = done.has(at) ? undefined : steps.next();
      if (step?.done === true) done.set(at, step.value);
      expect(redactor.text("ghp_a1b2c3d4e5f6a7b8c9d0e1f2 %41")).toBe("[redacted:github-token] %41");
    }
  }
  expect(bodies.map((_, at) => done.get(at))).toEqual(alone);
  expect(await Promise.all(bodies.map((body) => inTurns(redactor.bodyInSteps(body, canonical(body)))))).toEqual(alone);
});

test("12.11: of a long body without secrets nothing is copied", async () => {
  const body = { text: "Plain words of a text. ".repeat(20_000) };
  expect(await inTurns(createRedactor([KNOWN]).bodyInSteps(body, canonical(body)))).toBe(body);
});

function mixed(next: () => number, chars: number): string {
  const pieces: string[] = [];
  for (let length = 0; length < chars;) {
    const piece = PIECES[Math.floor(next() * PIECES.length)] ?? "";
    // Some of them many times over: what a format begins with, again and again, and runs beyond every bound.
    const repeated = piece.repeat(next() < 0.02 ? Math.ceil(next() * 600) : 1);
    pieces.push(repeated);
    length += repeated.length;
  }
  return pieces.join("");
}

/** The same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
