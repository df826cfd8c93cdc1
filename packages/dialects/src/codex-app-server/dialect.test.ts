import { expect, test } from "vitest";
import { NO_USAGE, type EventBody, type StoredEvent } from "@heddle/protocol";
import { answerFrom } from "./approvals.ts";
import { invalidParams } from "./errors.ts";
import { inputFrom, shownInput } from "./input.ts";
import { CODEX_METHODS } from "./methods.ts";
import { ThreadDialect } from "./notifications.ts";
import { patchChanges } from "./patch.ts";
import { CODEX_PARAMS } from "./params.ts";
import type { Outgoing } from "./shapes.ts";
import { approvalPolicyFrom, sandboxFrom, sandboxPolicy } from "./settings.ts";
import { codexTurn, storedTurns } from "./turns.ts";

const T = "turn-1";
const SETTINGS = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: ["/w"],
  approvalPolicy: "on-request",
} as const;
const HOLDER = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

function stored(bodies: readonly EventBody[]): StoredEvent[] {
  return bodies.map((body, index) => ({
    position: index + 1,
    stream: "thread-1",
    version: index + 1,
    id: `evt_${index}`,
    at: 1_000 * (index + 1),
    author: "system",
    body,
    hash: "",
  }));
}

const admitted: EventBody = {
  type: "turn.admitted",
  v: 1,
  turnId: T,
  input: [{ type: "text", text: "go" }],
  settings: { ...SETTINGS, writableRoots: [] },
  holder: HOLDER,
};
const agent = (text: string) => ({ type: "agentMessage", id: "i1", text }) as const;
const ended = (status: "completed" | "failed" | "interrupted", code?: string): EventBody => ({
  type: "turn.completed",
  v: 1,
  turnId: T,
  status,
  usage: NO_USAGE,
  durationMs: 7,
  ...(code === undefined ? {} : { failure: { code, message: "why" } }),
});

function methods(outgoing: readonly Outgoing[]): string[] {
  return outgoing.map((out) => ("notification" in out ? out.notification.method : out.kind));
}

function dialect(): ThreadDialect {
  return new ThreadDialect({ threadId: "thread-1", contextWindow: () => 100 });
}

test("there are 182 methods, 9 without which no client works, 73 for those who asked for experiments", () => {
  const all = [...CODEX_METHODS.values()];
  expect(all).toHaveLength(182);
  expect(all.filter(({ tier }) => tier === "P0")).toHaveLength(9);
  expect(all.filter(({ isExperimental }) => isExperimental)).toHaveLength(73);
});

test("pieces of an item are told after its beginning and before its end", () => {
  const live = dialect();
  const [first, begun, done] = stored([
    admitted,
    { type: "item.started", v: 1, turnId: T, item: agent("") },
    { type: "item.completed", v: 1, turnId: T, item: agent("ab") },
  ]);
  const delta = { threadId: "thread-1", turnId: T, itemId: "i1", channel: "text", delta: "a" } as const;
  expect(live.event(first!)).toEqual([]);
  expect(methods(live.event(begun!))).toEqual(["item/started"]);
  expect(methods(live.delta({ ...delta, delta: "b" }))).toEqual(["item/agentMessage/delta"]);
  expect(methods(live.event(done!))).toEqual(["item/completed"]);
});

test("sections of a reasoning summary are parts of their own", () => {
  const live = dialect();
  const events = stored([
    admitted,
    { type: "item.started", v: 1, turnId: T, item: { type: "reasoning", id: "r", summary: [] } },
  ]);
  for (const event of events) live.event(event);
  const say = (delta: string): unknown[] =>
    live
      .delta({ threadId: "thread-1", turnId: T, itemId: "r", channel: "reasoningSummary", delta })
      .map(
        (out) => "notification" in out && [out.notification.params["summaryIndex"], out.notification.params["delta"]],
      );
  expect(say("one")).toEqual([
    [0, undefined],
    [0, "one"],
  ]);
  expect(say(" more")).toEqual([[0, " more"]]);
  expect(say("\n\ntwo")).toEqual([
    [1, undefined],
    [1, "two"],
  ]);
});

test("a turn that fails before it began is begun and ended for its followers", () => {
  const live = dialect();
  const out = stored([admitted, ended("failed", "auth.rejected")]).flatMap((event) => live.event(event));
  expect(methods(out)).toEqual([
    "thread/status/changed",
    "turn/started",
    "thread/status/changed",
    "error",
    "turn/completed",
  ]);
  expect(out.at(-2)).toMatchObject({ notification: { params: { error: { codexErrorInfo: "unauthorized" }, seq: 2 } } });
  expect(live.status).toEqual({ type: "systemError" });
});

test("questions that wait show in the status, and those of the past can be found again", () => {
  const live = dialect();
  const question = { kind: "command", callId: "c", itemId: "i", command: "ls", cwd: "/w" } as const;
  const events = stored([
    admitted,
    { type: "turn.started", v: 1, turnId: T, runner: "r", sandboxLevel: "none", envelope: ENVELOPE, envelopeHash: "" },
    { type: "approval.requested", v: 1, turnId: T, approvalId: "a1", question },
    { type: "approval.resolved", v: 1, turnId: T, approvalId: "a1", decision: "accept" },
    { type: "item.started", v: 1, turnId: T, item: { ...COMMAND, status: "inProgress" } },
  ]);
  const said = events.map((event) => methods(live.event(event)));
  expect(said.slice(2)).toEqual([
    ["thread/status/changed", "item/started", "ask"],
    ["resolved", "thread/status/changed"],
    // It was shown with the question.
    [],
  ]);
});

test("a tool of an MCP server is shown as its server's, also while it is asked about, and a refused one has failed", () => {
  const live = dialect();
  const question = { kind: "tool" as const, callId: "c", itemId: "i", tool: "mcp.echo.say.it", arguments: { a: 1 } };
  const call = {
    type: "mcpToolCall" as const,
    id: "i",
    callId: "c",
    server: "echo",
    tool: "say.it",
    arguments: { a: 1 },
  };
  const [, asked, , done] = stored([
    admitted,
    { type: "approval.requested", v: 1, turnId: T, approvalId: "a1", question },
    { type: "approval.resolved", v: 1, turnId: T, approvalId: "a1", decision: "decline" },
    { type: "item.completed", v: 1, turnId: T, item: { ...call, status: "declined" } },
  ]).map((event) => live.event(event));
  expect(JSON.stringify(asked)).toContain('"server":"echo","tool":"say.it","status":"inProgress"');
  expect(JSON.stringify(done)).toContain('"server":"echo","tool":"say.it","status":"failed","outcome":"declined"');
});

test("a change of a file is shown before the thread says that it waits", () => {
  const live = dialect();
  const question = { kind: "fileChange" as const, callId: "c", itemId: "i", paths: ["/w/a"] };
  const events = stored([admitted, { type: "approval.requested", v: 1, turnId: T, approvalId: "a1", question }]);
  const said = events.map((event) => methods(live.event(event)));
  expect(said.at(-1)).toEqual(["item/started", "thread/status/changed", "ask"]);
});

const ENVELOPE = {
  id: "edit",
  tools: [],
  effects: [],
  writeRoots: [],
  masked: [],
  network: "none",
  sandbox: "off",
  approval: "never",
} satisfies Extract<EventBody, { type: "turn.started" }>["envelope"];
const COMMAND = { type: "commandExecution", id: "i", callId: "c", command: "ls", cwd: "/w", output: "" } as const;

test("stored turns: an interrupt is no error, a crash is one; running items have what was kept of them", () => {
  const turn = (...more: EventBody[]) => codexTurn(storedTurns(stored([admitted, ...more]))[0]!, "full");
  expect(turn(ended("interrupted", "turn.interrupted"))).toMatchObject({ status: "interrupted", error: null });
  expect(turn(ended("interrupted", "turn.abandoned"))).toMatchObject({ error: { code: "turn.abandoned" } });
  const running = turn(
    { type: "item.started", v: 1, turnId: T, item: agent("") },
    { type: "item.checkpointed", v: 1, turnId: T, itemId: "i1", channel: "text", appended: "so far" },
  );
  expect(running).toMatchObject({ status: "inProgress", items: [{ text: "so far", completedAtMs: null }] });
});

test.each([
  [{ decision: "accept" }, "accept"],
  [{ decision: "acceptForSession" }, "acceptForThread"],
  [{ decision: { acceptWithExecpolicyAmendment: { execpolicy_amendment: ["ls"] } } }, "acceptForThread"],
  [{ decision: { acceptWithExecpolicyAmendment: { execpolicy_amendment: null } } }, "decline"],
  [
    { decision: { applyNetworkPolicyAmendment: { network_policy_amendment: { host: "a", action: "allow" } } } },
    "accept",
  ],
  [
    { decision: { applyNetworkPolicyAmendment: { network_policy_amendment: { host: "a", action: "deny" } } } },
    "decline",
  ],
  [{ decision: { applyNetworkPolicyAmendment: {} } }, "decline"],
  [{ decision: "cancel" }, "cancel"],
  [{ decision: "approved" }, "decline"],
  [{}, "decline"],
  [null, "decline"],
  [{ action: "accept", content: {} }, "accept"],
  [{ action: "accept", _meta: { persist: "session" } }, "acceptForThread"],
  [{ action: "decline" }, "decline"],
  [{ action: "cancel" }, "decline"],
])("the answer %j means %s", (answer, decision) => {
  const question = { kind: "command", callId: "c1", itemId: "i1", command: "ls", cwd: "/w" } as const;
  expect(answerFrom(answer, question)).toEqual({ decision });
});

test("words for sandbox and approval, both ways", () => {
  expect(sandboxFrom({ type: "workspaceWrite" })).toEqual({ sandboxMode: "workspace-write" });
  expect(sandboxFrom({ type: "readOnly", networkAccess: true })).toEqual({
    sandboxMode: "read-only",
    networkAccess: true,
  });
  expect(sandboxFrom({ type: "externalSandbox", networkAccess: "enabled" })).toBeUndefined();
  expect(sandboxPolicy({ ...SETTINGS, writableRoots: ["/w"] })).toMatchObject({
    type: "workspaceWrite",
    writableRoots: ["/w"],
  });
  expect(approvalPolicyFrom({ granular: {} })).toBe("on-request");
});

test.each([
  [CODEX_PARAMS["turn/start"], { threadId: "x" }, "missing field `input`"],
  [CODEX_PARAMS["turn/start"], { threadId: true, input: [] }, "invalid type: boolean `true`, expected a string"],
  [CODEX_PARAMS["turn/start"], { threadId: "x", input: "y" }, 'invalid type: string "y", expected a sequence'],
  [
    CODEX_PARAMS["turn/start"],
    { threadId: "x", input: [{ type: "video" }] },
    "unknown variant `video`, expected one of `text`, `image`, `localImage`, `audio`, `localAudio`, `skill`, `mention`",
  ],
  [CODEX_PARAMS["turn/start"], { threadId: "x", input: [{ type: "text" }] }, "missing field `text`"],
  [
    CODEX_PARAMS["thread/list"],
    { sortKey: "size" },
    "unknown variant `size`, expected one of `created_at`, `updated_at`, `recency_at`, `section_position`",
  ],
])("params that do not fit are refused in the original's words (%#)", (schema, params, message) => {
  const parsed = schema.safeParse(params, { reportInput: true });
  expect(parsed.success ? "" : invalidParams(parsed.error.issues)).toBe(message);
});

test("input: text, pictures by value or path, skills and files by name; sound is refused", () => {
  expect(inputFrom({ type: "image", url: "data:image/png;base64,AAAA" })).toEqual({
    type: "image",
    mediaType: "image/png",
    base64: "AAAA",
  });
  expect(inputFrom({ type: "image", url: "https://example.org/x.png" })).toMatchObject({ type: "unsupported" });
  expect(inputFrom({ type: "localImage", path: "x.png" })).toEqual({ type: "localImage", path: "x.png" });
  const skill = { type: "skill", name: "pdf", path: "/s" } as const;
  expect(inputFrom(skill)).toEqual({ type: "text", text: "$pdf", chosen: skill });
  expect(shownInput({ type: "text", text: "$pdf", chosen: skill })).toEqual(skill);
  expect(inputFrom({ type: "localAudio", path: "x" })).toMatchObject({ type: "unsupported" });
});

test("a patch is told apart file by file, also inside JSON; what it does not explain has no diff", () => {
  const patch =
    "*** Begin Patch\n*** Update File: a/b.txt\n@@\n-x\n+y\n*** Delete File: c.txt\n*** Add File: d.txt\n+new\n*** End Patch";
  const paths = ["/w/a/b.txt", "/w/c.txt", "/w/d.txt", "/w/other"];
  const changes = [
    { path: "/w/a/b.txt", kind: "update", diff: "@@\n-x\n+y" },
    { path: "/w/c.txt", kind: "delete", diff: "" },
    { path: "/w/d.txt", kind: "add", diff: "+new" },
    { path: "/w/other", kind: "update", diff: "" },
  ];
  expect(patchChanges(paths, patch)).toEqual(changes);
  expect(patchChanges(paths, JSON.stringify({ input: patch }))).toEqual(changes);
  expect(patchChanges(["/w/d.txt"], "{")).toEqual([{ path: "/w/d.txt", kind: "update", diff: "" }]);
});
