/** Questions to the client: commands and file changes, with every answer. */
import { command, patch, say } from "../../exec-case.ts";
import { threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const COMMAND = "item/commandExecution/requestApproval";
const CHANGE = "item/fileChange/requestApproval";

/** A turn that asks, the answer, and the end of the turn. */
function asked(method: string, decision: unknown): readonly Move[] {
  return [...turn("Do it", method), { reply: { decision }, to: method }, { until: "turn/completed" }];
}

function commandCase(id: string, about: string, decision: unknown): Scenario {
  return {
    id: `approve-command-${id}`,
    about,
    script: [command("touch made.txt; sleep 0.4; echo made"), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "untrusted" }), ...asked(COMMAND, decision)],
  };
}

function changeCase(id: string, about: string, decision: unknown): Scenario {
  return {
    id: `approve-change-${id}`,
    about,
    script: [patch("*** Add File: made.txt", "+hello"), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "untrusted" }), ...asked(CHANGE, decision)],
  };
}

export const APPROVALS: readonly Scenario[] = [
  commandCase("accept", "a command is allowed", "accept"),
  commandCase("decline", "a command is refused, the turn goes on", "decline"),
  commandCase("cancel", "a command is refused, and the turn with it", "cancel"),
  commandCase("unknown", "an answer nobody knows", "frobnicate"),
  {
    id: "approve-command-session",
    about: "a command is allowed for the whole thread, and comes again",
    script: [command("touch s1.txt; sleep 0.4"), command("touch s1.txt; sleep 0.4"), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "untrusted" }), ...asked(COMMAND, "acceptForSession")],
  },
  {
    id: "approve-escalation",
    about: "a command that wants to leave the sandbox is refused",
    script: [
      command("touch {root}/out.txt", {
        sandbox_permissions: "require_escalated",
        justification: "Need to write outside",
      }),
      say("ok"),
    ],
    moves: [...threadStarted({ approvalPolicy: "on-request" }), ...asked(COMMAND, "decline")],
  },
  {
    id: "approve-interrupted",
    about: "the turn is stopped while a question waits",
    script: [command("touch made.txt"), say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "untrusted" }),
      ...turn("Do it", COMMAND),
      { call: "turn/interrupt", params: { threadId: "{thread}", turnId: "{turn}" } },
      { until: "turn/completed" },
    ],
  },
  changeCase("accept", "a file change is allowed", "accept"),
  changeCase("decline", "a file change is refused, the turn goes on", "decline"),
  changeCase("cancel", "a file change is refused, and the turn with it", "cancel"),
  {
    id: "approve-change-read-only",
    about: "a file change in a read-only thread is allowed",
    script: [patch("*** Add File: made.txt", "+hello"), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "on-request", sandbox: "read-only" }), ...asked(CHANGE, "accept")],
  },
];
