/** Items that take more than one step: commands that are read again, and reviews that answer with findings. */
import { command, json, say, type ExecCase, type Invocation, type Step } from "../exec-case.ts";

const DONE = say("Done.");
const poll = (waitMs: number): Step => ({
  calls: [{ tool: "write_stdin", args: { session_id: "{session}", chars: "", yield_time_ms: waitMs } }],
});

const CHANGED_FILE = [
  "git config user.email a@example.invalid",
  "git config user.name A",
  "echo one > a.txt",
  "git add -A",
  "git commit -qm one",
  "echo two > a.txt",
].join(" && ");
const REVIEW: Invocation = { args: ["exec", "--json", "review", "--uncommitted"] };

function finding(title: string, body: string, lines: readonly [number, number]): unknown {
  const line_range = { start: lines[0], end: lines[1] };
  const code_location = { absolute_file_path: "{ws}/a.txt", line_range };
  return { title, body, confidence_score: 0.9, priority: 1, code_location };
}

function findings(explanation: string, ...found: readonly unknown[]): string {
  return JSON.stringify({
    findings: found,
    overall_correctness: found.length === 0 ? "patch is correct" : "patch is incorrect",
    overall_explanation: explanation,
    overall_confidence_score: 0.8,
  });
}

const ONE = finding("[P1] Two is not one", "The value changed.\n\nWithout a reason.\n", [1, 1]);
const OTHER = finding("[P2] No test", "Nothing holds it.", [1, 4]);

export const ITEM_CASES: readonly ExecCase[] = [
  {
    id: "command-polled-fails",
    about: "a command that outlives its wait and then fails",
    script: [command("echo first; sleep 1; echo second; exit 3", { yield_time_ms: 300 }), poll(5000), DONE],
    runs: [json()],
  },
  {
    id: "command-session-unknown",
    about: "a command is read that is not there",
    script: [{ calls: [{ tool: "write_stdin", args: { session_id: 4711, chars: "" } }] }, DONE],
    runs: [json()],
  },
  {
    id: "command-signal-unconfined",
    about: "a command that ends by a signal, without a sandbox",
    script: [command("sleep 0.3; kill -KILL $$"), DONE],
    runs: [json("-s", "danger-full-access")],
  },
  {
    id: "review-findings-two",
    about: "a review with two findings",
    setUp: CHANGED_FILE,
    script: [say(findings("  Two findings.\n", ONE, OTHER))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-none",
    about: "a review as JSON without a finding",
    setUp: CHANGED_FILE,
    script: [say(findings("Nothing to report."))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-unexplained",
    about: "a review with a finding and no words besides",
    setUp: CHANGED_FILE,
    script: [say(findings("", OTHER))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-empty",
    about: "a review as JSON that says nothing",
    setUp: CHANGED_FILE,
    script: [say(findings(""))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-among-words",
    about: "a review as JSON with words around it",
    setUp: CHANGED_FILE,
    script: [say(`Here it is:\n${findings("One finding.", ONE)}\nThat is all.`)],
    runs: [REVIEW],
  },
  {
    id: "review-findings-incomplete",
    about: "a review as JSON that lacks fields",
    setUp: CHANGED_FILE,
    script: [say(JSON.stringify({ findings: [{ title: "Two is not one", body: "So it is." }] }))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-explained",
    about: "a review as JSON with its explanation alone",
    setUp: CHANGED_FILE,
    script: [say(JSON.stringify({ overall_explanation: "All is well." }))],
    runs: [REVIEW],
  },
  {
    id: "review-findings-human",
    about: "a review with a finding, for people and in a file",
    setUp: CHANGED_FILE,
    script: [say(findings("One finding.", ONE))],
    runs: [{ args: ["exec", "review", "--uncommitted", "-o", "{root}/answer.txt"] }],
    looksAt: ["answer.txt"],
  },
];
