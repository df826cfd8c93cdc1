import { expect, test } from "vitest";
import { reviewText } from "./review-output.ts";

function finding(title: string, body: string): unknown {
  const code_location = { absolute_file_path: "/w/a.ts", line_range: { start: 3, end: 5 } };
  return { title, body, confidence_score: 0.9, priority: 1, code_location };
}

function review(explanation: string, ...findings: readonly unknown[]): string {
  return JSON.stringify({
    findings,
    overall_correctness: "patch is correct",
    overall_explanation: explanation,
    overall_confidence_score: 0.8,
  });
}

const ONE = finding("[P1] Wrong sum", "It is off by one.\n\nAlways.\n");
const ONE_TEXT = "- [P1] Wrong sum — /w/a.ts:3-5\n  It is off by one.\n  \n  Always.";

test.each([
  ["a finding", review("One thing.", ONE), `One thing.\n\nReview comment:\n\n${ONE_TEXT}`],
  [
    "several findings",
    review(" Two. \n", ONE, finding("No test", "Nothing holds it.")),
    `Two.\n\nFull review comments:\n\n${ONE_TEXT}\n\n- No test — /w/a.ts:3-5\n  Nothing holds it.`,
  ],
  ["no finding", review("Nothing to report."), "Nothing to report."],
  ["no explanation", review("", ONE), `Review comment:\n\n${ONE_TEXT}`],
  ["nothing but a verdict", review(""), "patch is correct"],
  ["words around it", `Here:\n${review("One thing.", ONE)}\nDone.`, `One thing.\n\nReview comment:\n\n${ONE_TEXT}`],
])("a review with %s is laid out as text", (_name, answer, text) => {
  expect(reviewText(answer)).toBe(text);
});

test.each([
  ["words", "Looks fine."],
  ["nothing", ""],
  ["braces", "use {} and } {"],
  ["other JSON", '{"overall_explanation":"All is well."}'],
  ["a finding without a location", '{"findings":[{"title":"x","body":"y"}]}'],
])("an answer of %s stays as it is", (_name, answer) => {
  expect(reviewText(answer)).toBe(answer);
});
