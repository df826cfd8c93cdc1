import { expect, test } from "vitest";
import { readHookAnswer } from "./hook-answer.ts";

test.each([
  ["silence", "PreToolUse", 0, "", { kind: "ok", notes: [] }],
  ["plain words before a call", "PreToolUse", 0, "fine by me", { kind: "ok", notes: [] }],
  [
    "plain words at a prompt are for the model",
    "UserPromptSubmit",
    0,
    "branch: main\n",
    { kind: "ok", notes: ["branch: main"] },
  ],
  ["exit 2", "PreToolUse", 2, "not here\n", { kind: "blocked", reason: "not here", notes: [] }],
  ["exit 2 in silence", "Stop", 2, "", { kind: "blocked", reason: "no reason was given", notes: [] }],
  [
    "decision block",
    "Stop",
    0,
    '{"decision":"block","reason":"run the tests"}',
    { kind: "blocked", reason: "run the tests", notes: [] },
  ],
  ["decision approve", "PreToolUse", 0, '{"decision":"approve"}', { kind: "ok", notes: [] }],
  [
    "permission deny",
    "PreToolUse",
    0,
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no rm"}}',
    { kind: "blocked", reason: "no rm", notes: [] },
  ],
  [
    "permission ask, because nobody is there to ask",
    "PreToolUse",
    0,
    '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"unsure"}}',
    { kind: "blocked", reason: "unsure", notes: [] },
  ],
  [
    "added context",
    "PostToolUse",
    0,
    '{"hookSpecificOutput":{"additionalContext":"lint it"}}',
    { kind: "ok", notes: ["lint it"] },
  ],
  [
    "continue false",
    "UserPromptSubmit",
    0,
    '{"continue":false,"stopReason":"closed"}',
    { kind: "blocked", reason: "closed", notes: [] },
  ],
  ["continue false at Stop ends", "Stop", 0, '{"continue":false,"decision":"block"}', { kind: "ok", notes: [] }],
  [
    "an answer on the last line",
    "Stop",
    0,
    'checking…\n{"decision":"block","reason":"x"}',
    { kind: "blocked", reason: "x", notes: [] },
  ],
] as const)("%s", (_name, event, exitCode, output, answer) => {
  expect(readHookAnswer(event, exitCode, output)).toEqual(answer);
});

test.each([
  ["another exit code", "PreToolUse", 1, "Traceback", "it ended with code 1: Traceback"],
  ["broken JSON", "PreToolUse", 0, '{"decision": "blo', "its output is not valid JSON"],
  ["an unknown decision", "PreToolUse", 0, '{"decision":"maybe"}', "its output is not understood"],
  [
    "a changed input",
    "PreToolUse",
    0,
    '{"hookSpecificOutput":{"updatedInput":{"command":"ls"}}}',
    "it wants to change the input",
  ],
  ["a no where none is possible", "SessionStart", 2, "stop", "it refused, which a SessionStart hook cannot: stop"],
] as const)("%s is a failure of the hook", (_name, event, exitCode, output, message) => {
  const answer = readHookAnswer(event, exitCode, output);
  expect(answer).toEqual({ kind: "failed", message: expect.stringContaining(message) });
});

test("reasons and notes are capped", () => {
  const answer = readHookAnswer("PreToolUse", 2, "x".repeat(100_000));
  expect(answer.kind === "blocked" && answer.reason.length).toBeLessThanOrEqual(2048);
});
