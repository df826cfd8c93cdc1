import type { ApprovalQuestion } from "@heddle/protocol";
import { expect, test } from "vitest";
import { answerOf, hintOf, type OpenQuestion } from "./answers.ts";

const asked = { callId: "c", itemId: "i" };
const open = (question: ApprovalQuestion): OpenQuestion => ({ approvalId: "apr_1", question, answers: {} });

test("a letter answers what may be allowed, and anything else says what can be typed", () => {
  const question = open({ kind: "command", ...asked, command: "ls", cwd: "/" });
  const given = ["y", "YES", "a", "n", "maybe", "/"].map((text) => answerOf(question, text));
  expect(given.map((one) => (one.kind === "answer" ? one.answer.decision : one.kind))).toEqual([
    "accept",
    "accept",
    "acceptForThread",
    "decline",
    "unclear",
    "unclear",
  ]);
});

test("questions of an agent are answered one after the other, by the number of an option or in words", () => {
  const options = [
    { label: "red", description: "" },
    { label: "blue\u001b[2J", description: "" },
  ];
  const question = open({
    kind: "userInput",
    ...asked,
    questions: [
      { id: "one", header: "Colour", question: "which?", options },
      { id: "__proto__", header: "Name", question: "what?", options: [] },
    ],
  });
  expect(hintOf(question)).toMatch(/^Colour: 1 red, 2 blue/);
  expect(hintOf(question)).not.toContain("\u001b");
  const first = answerOf(question, "1");
  if (first.kind !== "more") throw new Error(`it is ${first.kind}`);
  expect(hintOf(first.question)).toBe("Name");
  const last = answerOf(first.question, "7");
  expect(JSON.stringify(last)).toBe(
    '{"kind":"answer","answer":{"decision":"accept","answers":{"one":["red"],"__proto__":["7"]}}}',
  );
});

test("a question of an MCP server takes JSON, and n declines it", () => {
  const question = open({ kind: "elicitation", ...asked, server: "s", message: "m", schema: {} });
  expect(answerOf(question, '{"a":1}')).toEqual({ kind: "answer", answer: { decision: "accept", content: { a: 1 } } });
  expect(answerOf(question, "y")).toMatchObject({ kind: "unclear" });
  expect(answerOf(question, "n")).toEqual({ kind: "answer", answer: { decision: "decline" } });
});
