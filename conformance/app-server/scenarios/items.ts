/** What a thread shows of itself and its turns: phases, compaction, its repository, its file, open questions. */
import { command, say } from "../../exec-case.ts";
import { responsesBody } from "../responses-body.ts";
import { initialize, threadStarted, turn, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const COMMAND = "item/commandExecution/requestApproval";

function message(id: string, words: string, phase: string): object {
  return {
    type: "message",
    id,
    role: "assistant",
    phase,
    status: "completed",
    content: [{ type: "output_text", text: words }],
  };
}

const CALL = {
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "exec_command",
  arguments: JSON.stringify({ cmd: "sleep 0.3; echo one", login: false }),
  status: "completed",
};

export const ITEMS: readonly Scenario[] = [
  {
    id: "phases",
    about: "messages that say which phase they belong to",
    faults: [
      { kind: "body", body: responsesBody(1, [message("msg_1", "I look.", "commentary"), CALL]) },
      { kind: "body", body: responsesBody(2, [message("msg_2", "It is done.", "final_answer")]) },
    ],
    moves: [...threadStarted(), ...turn("Do it"), { call: "thread/items/list", params: ON_THREAD }],
  },
  {
    id: "compact-short",
    about: "a thread with one short turn is compacted, and goes on",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/compact/start", params: ON_THREAD },
      { until: "turn/completed" },
      ...turn("two"),
      { call: "thread/turns/list", params: { ...ON_THREAD, itemsView: "full" } },
    ],
  },
  {
    id: "compact-empty",
    about: "a thread without a turn is compacted",
    script: [say("A summary."), say("One.")],
    moves: [...threadStarted(), { call: "thread/compact/start", params: ON_THREAD }, { until: "turn/completed" }],
  },
  {
    id: "git-info",
    about: "a thread in a repository with a commit, a branch and a remote whose address holds a password",
    setUp:
      "git config user.email a@b.c && git config user.name a && git commit -q --allow-empty --no-gpg-sign -m one --date=2020-01-01T00:00:00Z && git checkout -q -b work/branch && git remote add origin https://user:secret@example.com/team/repo.git",
    script: [say("One.")],
    moves: [...threadStarted(), ...turn("one"), { call: "thread/read", params: ON_THREAD }],
  },
  {
    id: "git-info-forked",
    about: "a fork tells of the repository as it is when the fork begins",
    setUp:
      "git config user.email a@b.c && git config user.name a && git commit -q --allow-empty --no-gpg-sign -m one && git checkout -q -b first",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      {
        call: "command/exec",
        params: {
          command: ["git", "checkout", "-q", "-b", "second"],
          cwd: "{ws}",
          sandboxPolicy: { type: "dangerFullAccess" },
        },
      },
      { call: "thread/fork", params: { ...ON_THREAD, excludeTurns: true } },
      { call: "thread/read", params: ON_THREAD },
    ],
  },
  {
    id: "git-info-detached",
    about: "a thread in a folder below the top of a repository, on no branch, without a remote",
    setUp:
      "git config user.email a@b.c && git config user.name a && git commit -q --allow-empty --no-gpg-sign -m one && git checkout -q --detach && mkdir below",
    script: [say("One.")],
    moves: [...threadStarted({ cwd: "{ws}/below" }), ...turn("one"), { call: "thread/read", params: ON_THREAD }],
  },
  {
    id: "resume-by-path",
    about: "a thread is resumed and forked by its path",
    script: [say("One."), say("Two.")],
    moves: [
      initialize({ isExperimental: true }),
      {
        call: "thread/start",
        params: { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write" },
        keep: { path: "thread.path" },
      },
      { until: "thread/started" },
      ...turn("one"),
      { call: "thread/resume", params: { ...ON_THREAD, path: "{path}", excludeTurns: true } },
      { call: "thread/resume", params: { ...ON_THREAD, path: "/nowhere/else.jsonl", excludeTurns: true } },
      { call: "thread/fork", params: { threadId: "", path: "{path}", excludeTurns: true } },
      { until: "thread/started" },
      { restart: "b" },
      initialize({ client: "b", isExperimental: true }),
      { client: "b", call: "thread/resume", params: { threadId: "", path: "{path}", excludeTurns: true } },
      { client: "b", call: "thread/resume", params: { threadId: "", path: "/nowhere/else.jsonl", excludeTurns: true } },
    ],
  },
  {
    id: "resume-while-asked",
    about: "clients that resume a thread are asked what is still open, under the same id, as often as they resume",
    door: "unix",
    script: [command("touch made.txt; sleep 0.4"), say("Done.")],
    moves: [
      ...threadStarted({ approvalPolicy: "untrusted" }),
      ...turn("one", COMMAND),
      { open: "b" },
      initialize({ client: "b" }),
      { client: "b", call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true } },
      { client: "b", until: COMMAND },
      { client: "b", call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true } },
      { client: "b", until: COMMAND },
      { client: "b", reply: { decision: "accept" }, to: COMMAND },
      { client: "b", until: "turn/completed" },
      { until: "turn/completed" },
    ],
  },
];
