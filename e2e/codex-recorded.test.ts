/**
 * Heddle beside what Codex did when it was recorded (conformance/recorded/): the quick cases of every kind, on every test
 * run, without Codex. Each must come out the same, or differ exactly as conformance/differences.json says.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { EXEC_CASES } from "../conformance/exec-cases.ts";
import type { CaseSeen } from "../conformance/observe.ts";
import { heddle } from "../conformance/program.ts";
import { readRecord } from "../conformance/recorded.ts";
import { createJudge, observeAll } from "../conformance/run-cases.ts";

const QUICK: readonly string[] = [
  // prompts
  "hello-json hello-human last-message-json last-message-human stdin-prompt stdin-dash",
  "stdin-appended stdin-empty schema-missing image images-list",
  // settings
  "override-provider-table override-effort profile-file config-strict provider-headers",
  "flag-unknown flag-approval-before folder-missing git-none git-skipped",
  // tools
  "command-fails commands-in-turn reasoning patch-add patch-update patch-move patch-several",
  "patch-bad-context tool-unknown plan",
  // faults
  "status-400 status-401 cut-once retries-none",
  // threads
  "resume-id resume-stdin resume-unknown-id resume-unknown-name fork ephemeral review-uncommitted",
].flatMap((line) => line.split(" "));
const CASES = EXEC_CASES.filter(({ id }) => QUICK.includes(id));

describe("what Codex did, Heddle does", () => {
  let seen: ReadonlyMap<string, CaseSeen> = new Map();

  beforeAll(async () => {
    seen = await observeAll(heddle, CASES, () => undefined);
  }, 120_000);

  test("every case named here exists", () => {
    expect(CASES.map(({ id }) => id).toSorted()).toEqual(QUICK.toSorted());
  });

  test.each(CASES)("$id: $about", (execCase) => {
    const ours = seen.get(execCase.id);
    if (ours === undefined) throw new Error("the case was not played");
    const { problems } = createJudge().judge(execCase, { codex: readRecord(execCase.id), heddle: ours });
    expect(problems).toEqual([]);
  });
});
