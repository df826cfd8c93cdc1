/** Questions to the client: commands and file changes, with every answer. */
import { command, MOCK_CONFIG, patch, say, type Step } from "../../exec-case.ts";
import { threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const COMMAND = "item/commandExecution/requestApproval";
const CHANGE = "item/fileChange/requestApproval";
const PERMISSIONS = "item/permissions/requestApproval";

/** Codex offers the tool only when this is on. */
const WITH_PERMISSIONS = `${MOCK_CONFIG}
[features]
request_permissions_tool = true
exec_permission_approvals = true
`;

/** Where the sandbox of the thread lets nobody write. */
const OUTSIDE = "touch {root}/out.txt && echo made";

const ESCALATED = { sandbox_permissions: "require_escalated", justification: "Need to write outside" };

function escalationCase(id: string, about: string, decision: unknown): Scenario {
  return {
    id: `approve-escalation${id}`,
    about,
    script: [command(OUTSIDE, ESCALATED), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "on-request" }), ...asked(COMMAND, decision)],
  };
}

function permissionsCase(id: string, about: string, answer: unknown, after: readonly Step[]): Scenario {
  const wanted = { file_system: { write: ["{root}"] } };
  const call = { tool: "request_permissions", args: { reason: "Need the folder above", permissions: wanted } };
  return {
    id: `permissions-${id}`,
    about,
    config: WITH_PERMISSIONS,
    script: [{ calls: [call] }, ...after, say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "on-request" }, true),
      ...turn("Do it", PERMISSIONS),
      { reply: answer, to: PERMISSIONS },
      { until: "turn/completed" },
    ],
  };
}

const GRANTED = { fileSystem: { write: ["{root}"], read: null } };

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
  escalationCase("", "a command that wants to leave the sandbox is refused by the user", "decline"),
  escalationCase("-accept", "a command that wants to leave the sandbox may", "accept"),
  {
    id: "approve-escalation-session",
    about: "a command may leave the sandbox for the whole thread, and comes again",
    script: [command(OUTSIDE, ESCALATED), command(OUTSIDE, ESCALATED), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "on-request" }), ...asked(COMMAND, "acceptForSession")],
  },
  {
    id: "approve-escalation-never",
    about: "a command wants to leave the sandbox and nobody may be asked",
    script: [command(OUTSIDE, ESCALATED), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "never" }), ...turn("Do it")],
  },
  {
    id: "approve-escalation-wider",
    about: "a command wants more rights in its sandbox, and gets them",
    config: WITH_PERMISSIONS,
    script: [
      command(OUTSIDE, {
        sandbox_permissions: "with_additional_permissions",
        justification: "Need to write there",
        additional_permissions: { file_system: { write: ["{root}"] } },
      }),
      say("ok"),
    ],
    moves: [...threadStarted({ approvalPolicy: "on-request" }, true), ...asked(COMMAND, "accept")],
  },
  {
    id: "approve-sandbox-failure",
    about: "the sandbox stops a command that did not ask to leave it",
    // Of a command that fails at once Codex does not always show an item.
    script: [command(`sleep 0.3; ${OUTSIDE}`), say("ok")],
    moves: [...threadStarted({ approvalPolicy: "on-request" }), ...turn("Do it")],
  },
  permissionsCase("turn", "more rights for the turn are granted, and used", { permissions: GRANTED, scope: "turn" }, [
    command(OUTSIDE),
  ]),
  permissionsCase("session", "more rights are granted for the thread", { permissions: GRANTED, scope: "session" }, []),
  permissionsCase("refused", "more rights are refused", { permissions: {}, scope: "turn" }, []),
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
