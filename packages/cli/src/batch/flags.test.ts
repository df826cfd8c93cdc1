import { expect, test } from "vitest";
import { parseCommandArgs } from "../args.ts";
import { BATCH_OPTIONS, isBatch, parseBatchFlags } from "./flags.ts";

const flags = (...words: readonly string[]): ReturnType<typeof parseBatchFlags> =>
  parseBatchFlags(parseCommandArgs(BATCH_OPTIONS, words), "/work");

test("the flags of a batch run are read with their units", () => {
  expect(
    flags(
      ..."--idle-timeout 1.5 --max-turns 3 --max-tokens 1000 --max-cost 0.25 --retry 2 --run-id a.b-C_1".split(" "),
      ..."--artifact-root out --manifest /m.json --allow-tool bash --allow-tool read".split(" "),
    ),
  ).toEqual({
    idleTimeoutMs: 1500,
    limits: { maxRequests: 3, maxTokens: 1000, maxCostUsd: 0.25 },
    retries: 2,
    runId: "a.b-C_1",
    artifactRoot: "/work/out",
    manifestFile: "/m.json",
    allowedTools: ["bash", "read"],
  });
});

test("without a run id each run gets one of its own, and nothing is limited", () => {
  const first = flags("--retry", "0");
  expect(first).toMatchObject({ limits: undefined, retries: 0, idleTimeoutMs: undefined, artifactRoot: undefined });
  expect(first.runId).toMatch(/^run_[0-9a-f-]{36}$/);
  expect(flags("--retry", "0").runId).not.toBe(first.runId);
});

for (const [words, message] of [
  [["--run-id", "a/b"], "--run-id"],
  [["--run-id", ".."], "--run-id"],
  [["--run-id", "x".repeat(129)], "--run-id"],
  [["--run-id", "a b"], "--run-id"],
  [["--max-turns", "0"], "--max-turns"],
  [["--max-turns", "1.5"], "--max-turns"],
  [["--max-tokens", "many"], "--max-tokens"],
  [["--max-cost", "0"], "--max-cost"],
  [["--max-cost", "$5"], "--max-cost"],
  [["--retry", "21"], "--retry"],
  [["--retry", "1e1"], "--retry"],
  [["--idle-timeout", "0"], "--idle-timeout"],
  [["--idle-timeout", "Infinity"], "--idle-timeout"],
] as const) {
  test(`${words.join(" ").slice(0, 40)} is refused with the option's name`, () => {
    expect(() => flags(...words)).toThrow(
      expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining(message) }),
    );
  });
}

test("asking what Heddle can do, or whether it could start, is no batch run", () => {
  const is = (...words: readonly string[]): boolean => isBatch(parseCommandArgs(BATCH_OPTIONS, words));
  expect(is("--describe-capabilities")).toBe(false);
  expect(is("--preflight")).toBe(false);
  expect(is("--run-id", "x")).toBe(true);
  expect(is("--max-turns", "1")).toBe(true);
});
