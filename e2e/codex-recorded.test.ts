/**
 * Heddle beside what Codex did when it was recorded (conformance/recorded/): the quick cases of every kind, on every test
 * run, without Codex. Each must come out the same, or differ exactly as conformance/differences.json says.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { EXEC_CASES } from "../conformance/exec-cases.ts";
import type { CaseSeen, RunSeen } from "../conformance/observe.ts";
import { heddle } from "../conformance/program.ts";
import { readRecord } from "../conformance/recorded.ts";
import { createJudge, observeAll } from "../conformance/run-cases.ts";

const QUICK: readonly string[] = [
  // prompts
  "hello-json hello-human last-message-json last-message-human stdin-prompt stdin-dash",
  "stdin-appended stdin-empty schema-missing image images-list",
  // settings
  "override-provider-table override-effort profile-file config-strict provider-headers",
  "flag-unknown flag-approval-before words-two folder-missing git-none git-skipped",
  // ordinary calls, and the environment of commands
  "key-of-provider provider-openai-auth added-folder-missing git-folder-empty stdin-file",
  "environment-no-default-excludes environment-none",
  // tools
  "command-fails command-login commands-in-turn reasoning patch-add patch-update patch-move patch-several",
  "command-polled command-polled-fails command-signal command-workdir-missing",
  "patch-bad-context patch-read-only tool-unknown plan",
  // faults
  "status-400 status-401 status-500-once status-500-twice cut-once malformed retries-none",
  // wires
  "index-missing index-same calls-in-end",
  // threads
  "resume-id resume-stdin resume-unknown-id resume-unknown-name resume-last-all resume-id-started-elsewhere",
  "fork ephemeral review-uncommitted review-findings review-findings-two",
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

  test.each([
    { what: "another exit code", change: (run: RunSeen): RunSeen => ({ ...run, exit: 7 }), aspect: "exit" },
    { what: "a lost event", change: withoutLine(1), aspect: "events" },
    { what: "a line that is not JSON", change: append("Hello\n"), aspect: "events" },
    { what: "other words", change: replace("Hello.", "Bye."), aspect: "items" },
    { what: "a field of another type", change: replace('"input_tokens":100', '"input_tokens":"100"'), aspect: "items" },
    { what: "one request more", change: (run: RunSeen): RunSeen => ({ ...run, requests: 2 }), aspect: "requests" },
  ])("$what is found", ({ change, aspect }) => {
    const [execCase, codex] = [CASES.find(({ id }) => id === "hello-json"), readRecord("hello-json")];
    if (execCase === undefined) throw new Error("there is no such case");
    const same = createJudge().judge(execCase, { codex, heddle: codex });
    expect(same.problems).toEqual([]);
    const changed = createJudge().judge(execCase, { codex, heddle: { ...codex, runs: codex.runs.map(change) } });
    expect(changed.problems).toEqual([expect.stringContaining(`${aspect} differs, which is not listed`)]);
  });

  test("a listed difference that no longer happens is found", () => {
    const [execCase, codex] = [CASES.find(({ id }) => id === "tool-unknown"), readRecord("tool-unknown")];
    if (execCase === undefined) throw new Error("there is no such case");
    const { problems } = createJudge().judge(execCase, { codex, heddle: codex });
    expect(problems).toContain("events no longer differs; remove the entry");
  });

  test.each(CASES)("$id: $about", (execCase) => {
    const ours = seen.get(execCase.id);
    if (ours === undefined) throw new Error("the case was not played");
    const { problems } = createJudge().judge(execCase, { codex: readRecord(execCase.id), heddle: ours });
    expect(problems).toEqual([]);
  });
});

test("where Codex races, it may come as far as it likes, and Heddle may not", () => {
  const [execCase, codex] = [EXEC_CASES.find(({ id }) => id === "reader-gone"), readRecord("reader-gone")];
  const [run] = codex.runs;
  if (execCase === undefined || run === undefined) throw new Error("there is no such case");
  const asked = { model: "gpt-5.5", prompt: "do it", images: 0, path: "/v1/responses" };
  const whole = { ...run, requests: 2, asked: { ...asked, headers: { authorization: "Bearer test-key" } } };
  const made = { "ws/made.txt": "x\n" };
  const problems = (theirs: CaseSeen, ours: Partial<RunSeen> = {}): readonly string[] =>
    createJudge().judge(execCase, {
      codex: theirs,
      heddle: { ...codex, runs: [{ ...whole, exit: 0, ...ours }], files: made },
    }).problems;
  const none = { ...codex, runs: [{ ...run, requests: 0 }] };
  expect(problems(none)).toEqual([]);
  expect(problems({ ...none, runs: [{ ...whole, requests: 1 }] })).toEqual([]);
  expect(problems({ ...none, runs: [whole], files: made })).toEqual([]);
  expect(problems(none, { requests: 3 })).toEqual([expect.stringContaining("requests differs in another way")]);
  expect(problems(none, { exit: 7 })).toEqual([expect.stringContaining("exit differs in another way")]);
});

type Change = (run: RunSeen) => RunSeen;

function withoutLine(index: number): Change {
  return (run) => ({ ...run, stdout: run.stdout.split("\n").toSpliced(index, 1).join("\n") });
}

function append(text: string): Change {
  return (run) => ({ ...run, stdout: run.stdout + text });
}

function replace(from: string, to: string): Change {
  return (run) => ({ ...run, stdout: run.stdout.replace(from, to) });
}
