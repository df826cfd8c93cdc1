import { expect, test } from "vitest";
import { TASK_STATES } from "./task-record.ts";
import { STATE_WORDS, standingOf, wordsOf } from "./task-words.ts";

const time = (ms: number): string => `at ${ms}`;

test("only verified has the tone that is drawn green, and every state has a glyph and a word", () => {
  const proven = TASK_STATES.filter((state) => STATE_WORDS[state].tone === "proven");
  expect(proven).toEqual(["verified"]);
  expect(TASK_STATES.every((state) => STATE_WORDS[state].glyph !== undefined && STATE_WORDS[state].word !== "")).toBe(
    true,
  );
  expect(wordsOf({ state: "archived", stateBefore: "verified" }).tone).toBe("quiet");
});

test("a wait says what it waits for, and one for a person is theirs", () => {
  const waits = (cause: string) => wordsOf({ state: "waiting", wait: { cause, message: "" } });
  expect(waits("approval")).toEqual({ glyph: "ask", tone: "yours", word: "waits for you" });
  expect(waits("dependency").glyph).toBe("after");
  expect(waits("backoff").tone).toBe("quiet");
});

test("a pause says what ran out, and a question or a review is the owner's to answer", () => {
  expect(wordsOf({ state: "paused", pause: { cause: "question" } }).tone).toBe("yours");
  expect(wordsOf({ state: "paused", pause: { cause: "nudges" } }).word).toBe("rejected too often");
  const lastCheck = { round: 2, results: [], violations: [], review: {} };
  expect(wordsOf({ state: "paused", round: 2, lastCheck }).word).toBe("asks you to decide");
  expect(wordsOf({ state: "paused", round: 3, lastCheck }).word).toBe("paused");
});

test("the sentence of a claim without checks says that nothing could verify it", () => {
  expect(standingOf({ state: "claimed", claim: { by: "report" } }, time)).toBe(
    "NOT verified: it has no checks that could",
  );
  expect(standingOf({ state: "claimed", claim: { by: "user" } }, time)).toBe(
    "NOT verified: the user marked it as done",
  );
  expect(standingOf({ state: "waiting", wait: { cause: "backoff", message: "429" }, nextAt: 5 }, time)).toBe(
    "429, next at at 5",
  );
});
