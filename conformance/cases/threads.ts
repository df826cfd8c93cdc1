/** Threads that go on: resume, fork, review, and runs that leave nothing behind. */
import { command, json, patch, say, type ExecCase, type Invocation } from "../exec-case.ts";

const TWO = [say("First."), say("Second."), say("Third.")];
const UNKNOWN_ID = "01890000-0000-7000-8000-000000000000";
const first = json();
const CHANGED_FILE = [
  "git config user.email a@example.invalid",
  "git config user.name A",
  "echo one > a.txt",
  "git add -A",
  "git commit -qm one",
  "echo two > a.txt",
].join(" && ");
const FINDINGS = JSON.stringify({
  findings: [
    {
      title: "[P1] Two is not one",
      body: "The value changed without a reason.",
      confidence_score: 0.9,
      priority: 1,
      code_location: { absolute_file_path: "{ws}/a.txt", line_range: { start: 1, end: 1 } },
    },
  ],
  overall_correctness: "patch is incorrect",
  overall_explanation: "One finding.",
  overall_confidence_score: 0.8,
});

function resume(...more: readonly string[]): Invocation {
  return { args: ["exec", "--json", "resume", ...more] };
}

export const THREAD_CASES: readonly ExecCase[] = [
  { id: "resume-id", about: "a second turn by id", script: TWO, runs: [first, resume("{thread}", "go on")] },
  {
    id: "resume-id-human",
    about: "a second turn by id, for people",
    script: TWO,
    runs: [first, { args: ["exec", "resume", "{thread}", "go on"] }],
  },
  {
    id: "resume-twice",
    about: "a third turn",
    script: TWO,
    runs: [first, resume("{thread}", "go on"), resume("{thread}", "and on")],
  },
  {
    id: "resume-last",
    about: "the newest thread of this folder",
    script: TWO,
    runs: [first, resume("--last", "go on")],
  },
  {
    id: "resume-last-elsewhere",
    about: "--last finds nothing in another folder, --all does",
    script: TWO,
    setUp: "git init -q {root}/other",
    runs: [first, { args: ["exec", "--json", "-C", "{root}/other", "resume", "--last", "go on"] }],
  },
  {
    id: "resume-last-all",
    about: "--last --all finds a thread of another folder",
    script: TWO,
    setUp: "git init -q {root}/other",
    runs: [first, { args: ["exec", "--json", "-C", "{root}/other", "resume", "--last", "--all", "go on"] }],
  },
  {
    id: "resume-id-elsewhere",
    about: "a second turn by id with -C, in another folder",
    script: [say("First."), command("pwd > here.txt"), say("Second.")],
    setUp: "git init -q {root}/other",
    runs: [
      first,
      { args: ["exec", "--json", "-s", "workspace-write", "-C", "{root}/other", "resume", "{thread}", "go on"] },
    ],
    looksAt: ["ws/here.txt", "other/here.txt"],
  },
  {
    id: "resume-id-started-elsewhere",
    about: "a second turn by id, started in another folder",
    script: [say("First."), command("pwd > here.txt"), say("Second.")],
    setUp: "git init -q {root}/other",
    runs: [
      first,
      { args: ["exec", "--json", "-s", "workspace-write", "resume", "{thread}", "go on"], cwd: "{root}/other" },
    ],
    looksAt: ["ws/here.txt", "other/here.txt"],
  },
  {
    id: "resume-moved-last",
    about: "a thread that went on in another folder is the last one there",
    script: TWO,
    setUp: "git init -q {root}/other",
    runs: [
      first,
      { ...resume("{thread}", "go on"), cwd: "{root}/other" },
      { ...resume("--last", "and on"), cwd: "{root}/other" },
    ],
  },
  { id: "resume-last-none", about: "--last where no thread is", script: TWO, runs: [resume("--last", "go on")] },
  { id: "resume-unknown-id", about: "an id nobody knows", script: TWO, runs: [resume(UNKNOWN_ID, "go on")] },
  { id: "resume-unknown-name", about: "a name nobody knows", script: TWO, runs: [resume("no-such-name", "go on")] },
  { id: "resume-nothing", about: "resume without an id", script: TWO, runs: [resume()] },
  {
    id: "resume-stdin",
    about: "the prompt on standard input, as the SDK sends it",
    script: TWO,
    runs: [first, { ...resume("{thread}"), stdin: "go on" }],
  },
  {
    id: "resume-dash",
    about: "the prompt on standard input after -",
    script: TWO,
    runs: [first, { ...resume("{thread}", "-"), stdin: "go on" }],
  },
  {
    id: "resume-flags-after",
    about: "flags after resume",
    script: TWO,
    runs: [
      first,
      { args: ["exec", "resume", "--json", "-o", "{root}/last.txt", "-m", "gpt-5.5", "{thread}", "go on"] },
    ],
    looksAt: ["last.txt"],
  },
  {
    id: "resume-other-model",
    about: "a second turn with another model",
    script: TWO,
    runs: [first, { args: ["exec", "--json", "-m", "gpt-5.6-sol", "resume", "{thread}", "go on"] }],
  },
  {
    id: "resume-with-tools",
    about: "history with a command and a patch",
    script: [
      command("echo hello; sleep 0.3"),
      patch("*** Add File: made.txt", "+hi"),
      say("First."),
      command("cat made.txt; sleep 0.3"),
      say("Second."),
    ],
    runs: [
      json("-s", "workspace-write"),
      { args: ["exec", "--json", "-s", "workspace-write", "resume", "{thread}", "go on"] },
    ],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "resume-sandbox-default",
    about: "a resumed thread does not keep the sandbox of its first turn",
    script: [say("First."), command("echo x > made.txt; sleep 0.4"), say("Second.")],
    runs: [json("-s", "workspace-write"), resume("{thread}", "go on")],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "trust-is-not-remembered",
    about: "a new thread does not keep the sandbox of an earlier one in the same folder",
    script: [command("echo x >> made.txt; sleep 0.4"), say("Done.")],
    runs: [json("-s", "workspace-write"), json()],
    looksAt: ["ws/made.txt", "codex/config.toml"],
  },
  {
    id: "resume-after-failure",
    about: "a turn after one that failed",
    script: TWO,
    faults: [{ kind: "status", status: 400 }],
    runs: [first, resume("{thread}", "go on")],
  },
  {
    id: "resume-missing-image",
    about: "an image with a resumed turn, which is not there",
    script: TWO,
    runs: [first, resume("{thread}", "go on", "--image", "none.png")],
  },
  {
    id: "fork",
    about: "a thread goes on under a new id",
    script: TWO,
    runs: [first, { args: ["exec", "--json", "fork", "{thread}", "go on"] }],
  },
  {
    id: "fork-elsewhere",
    about: "a fork, started in another folder",
    script: [say("First."), command("pwd > here.txt"), say("Second.")],
    setUp: "git init -q {root}/other",
    runs: [
      first,
      { args: ["exec", "--json", "-s", "workspace-write", "fork", "{thread}", "go on"], cwd: "{root}/other" },
    ],
    looksAt: ["ws/here.txt", "other/here.txt"],
  },
  {
    id: "fork-unknown",
    about: "a fork of an id nobody knows",
    script: TWO,
    runs: [{ args: ["exec", "--json", "fork", UNKNOWN_ID, "go on"] }],
  },
  {
    id: "fork-without-prompt",
    about: "a fork without a prompt",
    script: TWO,
    runs: [first, { args: ["exec", "--json", "fork", "{thread}"] }],
  },
  { id: "ephemeral", about: "a run that keeps nothing", script: TWO, runs: [json("--ephemeral")] },
  {
    id: "ephemeral-resumed",
    about: "a run that keeps nothing cannot be resumed",
    script: TWO,
    runs: [json("--ephemeral"), resume("{thread}", "go on")],
  },
  {
    id: "review-findings",
    about: "a review that answers with findings as JSON",
    setUp: CHANGED_FILE,
    script: [say(FINDINGS)],
    runs: [{ args: ["exec", "--json", "review", "--uncommitted"] }],
  },
  {
    id: "review-human",
    about: "a review, for people",
    setUp: CHANGED_FILE,
    script: [say("Looks fine.")],
    runs: [{ args: ["exec", "review", "--uncommitted"] }],
  },
  {
    id: "review-uncommitted",
    about: "a review of what is not committed",
    setUp: CHANGED_FILE,
    script: [say("Looks fine.")],
    runs: [{ args: ["exec", "--json", "review", "--uncommitted"] }],
  },
  {
    id: "review-commit",
    about: "a review of a commit",
    setUp: CHANGED_FILE,
    script: [say("Looks fine.")],
    runs: [{ args: ["exec", "--json", "review", "--commit", "HEAD", "--title", "one"] }],
  },
  {
    id: "review-base",
    about: "a review against a branch",
    setUp: `${CHANGED_FILE} && git branch base`,
    script: [say("Looks fine.")],
    runs: [{ args: ["exec", "--json", "review", "--base", "base"] }],
  },
  {
    id: "review-instructions",
    about: "a review by instructions",
    setUp: CHANGED_FILE,
    script: [say("Looks fine.")],
    runs: [{ args: ["exec", "--json", "review", "look at a.txt"] }],
  },
  {
    id: "review-nothing",
    about: "a review of nothing",
    setUp: CHANGED_FILE,
    script: [say(FINDINGS)],
    runs: [{ args: ["exec", "--json", "review"] }],
  },
];
