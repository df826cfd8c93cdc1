/** What the model does: commands, patches, plans, and calls that make no sense. */
import { command, human, json, patch, say, type ExecCase } from "../exec-case.ts";

const DONE = say("Done.");
const WRITABLE = ["-s", "workspace-write"] as const;
const THREE_LINES = "one\ntwo\nthree\n";

export const TOOL_CASES: readonly ExecCase[] = [
  { id: "command", about: "a command that succeeds", script: [command("echo hello"), DONE], runs: [json()] },
  {
    id: "command-human",
    about: "a command that succeeds, for people",
    script: [command("echo hello"), DONE],
    runs: [human()],
  },
  {
    id: "command-login",
    about: "a command in a login shell",
    script: [command("echo hello", { login: true }), DONE],
    runs: [json()],
  },
  {
    id: "command-shell-unsaid",
    about: "a command without a word about its shell",
    script: [
      { calls: [{ tool: "exec_command", args: { cmd: "shopt -q login_shell && echo login || echo plain" } }] },
      DONE,
    ],
    runs: [json()],
  },
  {
    id: "command-fails",
    about: "a command that exits 3",
    script: [command("echo hello; exit 3"), DONE],
    runs: [json()],
  },
  {
    id: "command-not-found",
    about: "a command that is not there",
    script: [command("no-such-program-here; sleep 0.3"), DONE],
    runs: [json()],
  },
  {
    id: "command-both-streams",
    about: "stdout and stderr in the order of writing",
    script: [command("echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three"), DONE],
    runs: [json()],
  },
  { id: "command-silent", about: "a command without output", script: [command("sleep 0.3"), DONE], runs: [json()] },
  {
    id: "command-signal",
    about: "a command that ends by a signal",
    script: [command("sleep 0.3; kill -KILL $$"), DONE],
    runs: [json()],
  },
  {
    id: "command-large-output",
    about: "two megabytes of output",
    script: [command("seq 1 300000 | sed 's/^/line /'"), DONE],
    runs: [json()],
  },
  {
    id: "command-workdir",
    about: "a command in a folder below",
    files: { "ws/sub/a.txt": "" },
    script: [command("pwd; sleep 0.3", { workdir: "{ws}/sub" }), DONE],
    runs: [json()],
  },
  {
    id: "command-workdir-missing",
    about: "a command in a folder that is not there",
    script: [command("pwd; sleep 0.3", { workdir: "{ws}/none" }), DONE],
    runs: [json()],
  },
  {
    id: "command-quotes",
    about: "quotes, newlines and dollars in a command",
    script: [command("a='b c'\necho \"$a\" 'it'\"'\"'s'; sleep 0.3"), DONE],
    runs: [json()],
  },
  {
    id: "command-polled",
    about: "a command that outlives its wait and is read again",
    script: [
      command("echo first; sleep 1; echo second", { yield_time_ms: 300 }),
      { calls: [{ tool: "write_stdin", args: { session_id: "{session}", chars: "", yield_time_ms: 3000 } }] },
      DONE,
    ],
    runs: [json()],
  },
  {
    id: "command-left-running",
    about: "the turn ends while a command runs",
    script: [command("echo started; sleep 20", { yield_time_ms: 400 }), DONE],
    runs: [json()],
  },
  {
    id: "commands-two",
    about: "two commands in one answer",
    isUnordered: true,
    script: [
      {
        calls: [
          { tool: "exec_command", args: { cmd: "echo one; sleep 0.3", login: false } },
          { tool: "exec_command", args: { cmd: "echo two; sleep 0.3", login: false } },
        ],
      },
      DONE,
    ],
    runs: [json()],
  },
  {
    id: "commands-in-turn",
    about: "three answers with a command each",
    script: [command("echo one"), command("echo two"), command("echo three"), DONE],
    runs: [json()],
  },
  {
    id: "text-and-command",
    about: "words before a command are a message of their own",
    script: [{ text: "Looking.", ...command("echo hello") }, DONE],
    runs: [json("-o", "{root}/last.txt"), human()],
    looksAt: ["last.txt"],
  },
  {
    id: "reasoning",
    about: "a summary of thoughts",
    script: [
      { reasoning: "**Thinking** about it", ...command("echo hello") },
      { reasoning: "Enough.", text: "Done." },
    ],
    runs: [json(), human()],
  },
  {
    id: "patch-add",
    about: "a patch adds a file",
    script: [patch("*** Add File: made.txt", "+hi"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "patch-add-below",
    about: "a patch adds a file in a folder that is not there yet",
    script: [patch("*** Add File: a/b/made.txt", "+hi"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/a/b/made.txt"],
  },
  {
    id: "patch-update",
    about: "a patch changes a line",
    files: { "ws/file.txt": THREE_LINES },
    script: [patch("*** Update File: file.txt", "@@", " one", "-two", "+2", " three"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/file.txt"],
  },
  {
    id: "patch-delete",
    about: "a patch deletes a file",
    files: { "ws/file.txt": THREE_LINES },
    script: [patch("*** Delete File: file.txt"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/file.txt"],
  },
  {
    id: "patch-move",
    about: "a patch moves and changes a file",
    files: { "ws/file.txt": THREE_LINES },
    script: [patch("*** Update File: file.txt", "*** Move to: moved.txt", "@@", " one", "-two", "+2", " three"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/file.txt", "ws/moved.txt"],
  },
  {
    id: "patch-several",
    about: "a patch with three files",
    files: { "ws/file.txt": THREE_LINES, "ws/old.txt": "x\n" },
    script: [
      patch(
        "*** Add File: made.txt",
        "+hi",
        "*** Update File: file.txt",
        "@@",
        "-two",
        "+2",
        "*** Delete File: old.txt",
      ),
      DONE,
    ],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/made.txt", "ws/file.txt", "ws/old.txt"],
  },
  {
    id: "patch-human",
    about: "a patch, for people",
    files: { "ws/file.txt": THREE_LINES },
    script: [patch("*** Update File: file.txt", "@@", " one", "-two", "+2", " three"), DONE],
    runs: [human(...WRITABLE)],
    looksAt: ["ws/file.txt"],
  },
  {
    id: "patch-bad-context",
    about: "a patch whose lines are not in the file",
    files: { "ws/file.txt": THREE_LINES },
    script: [patch("*** Update File: file.txt", "@@", "-four", "+4"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/file.txt"],
  },
  {
    id: "patch-missing-file",
    about: "a patch of a file that is not there",
    script: [patch("*** Update File: none.txt", "@@", "-four", "+4"), DONE],
    runs: [json(...WRITABLE)],
  },
  {
    id: "patch-unreadable",
    about: "a patch that is none",
    script: [{ calls: [{ tool: "apply_patch", args: "not a patch" }] }, DONE],
    runs: [json(...WRITABLE)],
  },
  {
    id: "patch-outside",
    about: "a patch outside the workspace",
    script: [patch("*** Add File: {root}/outside.txt", "+hi"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["outside.txt"],
  },
  {
    id: "patch-read-only",
    about: "a patch where nothing may be written",
    script: [patch("*** Add File: made.txt", "+hi"), DONE],
    runs: [json("-s", "read-only")],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "patch-in-shell",
    about: "a patch typed into a shell",
    script: [command("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+hi\n*** End Patch\nEOF"), DONE],
    runs: [json(...WRITABLE)],
    looksAt: ["ws/made.txt"],
  },
  {
    id: "plan",
    about: "a plan, then its steps done",
    script: [
      { calls: [{ tool: "update_plan", args: { plan: plan("in_progress", "pending") } }] },
      { calls: [{ tool: "update_plan", args: { plan: plan("completed", "completed") } }] },
      DONE,
    ],
    runs: [json()],
  },
  {
    id: "tool-unknown",
    about: "a tool nobody offered",
    script: [{ calls: [{ tool: "no_such_tool", args: { a: 1 } }] }, DONE],
    runs: [json()],
  },
  {
    id: "arguments-not-json",
    about: "arguments that are not JSON",
    script: [{ calls: [{ tool: "exec_command", args: '{"cmd": ' }] }, DONE],
    runs: [json()],
  },
  {
    id: "arguments-missing",
    about: "arguments without what is needed",
    script: [{ calls: [{ tool: "exec_command", args: { nothing: true } }] }, DONE],
    runs: [json()],
  },
  {
    id: "image-viewed",
    about: "the model looks at an image that is not there",
    script: [{ calls: [{ tool: "view_image", args: { path: "{ws}/none.png" } }] }, DONE],
    runs: [json()],
  },
  {
    id: "signal-int",
    about: "SIGINT while a command runs",
    script: [command("echo started; sleep 20"), DONE],
    runs: [{ ...json(), signal: { name: "SIGINT", after: '"command_execution"' } }],
  },
  {
    id: "signal-term",
    about: "SIGTERM while a command runs",
    script: [command("echo started; sleep 20"), DONE],
    runs: [{ ...json(), signal: { name: "SIGTERM", after: '"command_execution"' } }],
  },
];

function plan(first: string, second: string): readonly Readonly<Record<string, string>>[] {
  return [
    { step: "read", status: first },
    { step: "write", status: second },
  ];
}
