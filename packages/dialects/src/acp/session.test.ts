import { expect, test } from "vitest";
import { NO_USAGE, type EventBody, type Item, type ItemDelta, type StoredEvent } from "@heddle/protocol";
import { AcpSessionDialect } from "./session.ts";
import type { AcpClient, AcpOutgoing } from "./shapes.ts";

const T = "turn-1";
const CLIENT: AcpClient = {
  name: "editor",
  drawsTerminals: false,
  showsNotices: false,
  showsCompactions: false,
  hasForms: false,
};
const SETTINGS = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "on-request",
  contextTokens: 1_000,
} as const;

function open(client: Partial<AcpClient> = {}) {
  let version = 0;
  const dialect = new AcpSessionDialect({
    client: { ...CLIENT, ...client },
    isOwn: (clientId) => clientId === "own",
    contextWindow: () => undefined,
  });
  const event = (body: EventBody, author: StoredEvent["author"] = "system"): readonly AcpOutgoing[] => {
    version += 1;
    return dialect.event({
      position: version,
      stream: "thread-1",
      version,
      id: `evt_${version}`,
      at: version,
      author,
      body,
      hash: "",
    });
  };
  const admitted: EventBody = {
    type: "turn.admitted",
    v: 1,
    turnId: T,
    input: [],
    settings: { ...SETTINGS, writableRoots: [] },
    holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" },
  };
  return {
    dialect,
    event,
    begin: () => event(admitted),
    started: (item: Item) => event({ type: "item.started", v: 1, turnId: T, item }),
    completed: (item: Item) => event({ type: "item.completed", v: 1, turnId: T, item }),
    delta: (delta: string, more: Partial<ItemDelta> = {}, isBehind = false) =>
      dialect.delta({ threadId: "thread-1", turnId: T, itemId: "i1", channel: "text", delta, ...more }, isBehind),
  };
}

function texts(outgoing: readonly AcpOutgoing[]): readonly unknown[] {
  return outgoing.map((out) => (out.kind === "update" ? (out.update["content"] ?? out.update) : out.kind));
}

const said = (text: string): Item => ({ type: "agentMessage", id: "i1", text });
const text = (words: string) => ({ type: "text", text: words });

test("a text that came in pieces is not sent again when it ends; one that did not is sent whole", () => {
  const { begin, started, delta, completed } = open();
  expect(begin().map(({ kind }) => kind)).toEqual(["began", "settings"]);
  expect(started(said(""))).toEqual([]);
  expect(texts([...delta("he"), ...delta("llo")])).toEqual([text("he"), text("llo")]);
  expect(completed(said("hello"))).toEqual([]);
  expect(texts(completed({ ...said("all at once"), id: "i2" }))).toEqual([text("all at once")]);
});

test("what a slow reader was spared comes with the end of the text, and nothing in between", () => {
  const { begin, started, delta, completed, dialect } = open();
  begin();
  started(said(""));
  expect(texts(delta("one "))).toEqual([text("one ")]);
  expect(delta("two ", {}, true)).toEqual([]);
  // There is room again, but it would not follow what was sent.
  expect(delta("three ")).toEqual([]);
  expect(texts(completed(said("one two three four")))).toEqual([text("two three four")]);
  started({ ...said(""), id: "i3" });
  dialect.lost();
  expect(delta("x", { itemId: "i3" })).toEqual([]);
  expect(texts(completed({ ...said("wx"), id: "i3" }))).toEqual([text("wx")]);
});

test("a reasoning with summary and text is sent once", () => {
  const { begin, started, delta, completed } = open();
  begin();
  const item: Item = { type: "reasoning", id: "i1", summary: ["short"], text: "long" };
  started({ type: "reasoning", id: "i1", summary: [] });
  expect(delta("short", { channel: "reasoningSummary" })).toMatchObject([
    { update: { sessionUpdate: "agent_thought_chunk", messageId: "i1", content: text("short") } },
  ]);
  expect(delta("long", { channel: "reasoningText" })).toEqual([]);
  expect(completed(item)).toEqual([]);
  expect(texts(completed({ ...item, id: "i2" }))).toEqual([text("short")]);
  expect(texts(completed({ type: "reasoning", id: "i3", summary: [], text: "long" }))).toEqual([text("long")]);
});

test("input of this client is not shown to it again, that of others is", () => {
  const { completed } = open();
  const message = { type: "userMessage", id: "u", content: [text("hi")] } as const;
  expect(completed({ ...message, content: [{ type: "text", text: "hi" }], clientId: "own" })).toEqual([]);
  expect(completed({ ...message, content: [{ type: "text", text: "hi" }], clientId: "other" })).toMatchObject([
    { update: { sessionUpdate: "user_message_chunk", content: text("hi") } },
  ]);
  const image = { type: "image", mediaType: "image/png", base64: "AA==" } as const;
  expect(texts(completed({ ...message, content: [image] }))).toEqual([
    { type: "image", mimeType: "image/png", data: "AA==" },
  ]);
});

const COMMAND = { type: "commandExecution", id: "c", callId: "k", command: "make", cwd: "/w" } as const;
const running: Item = { ...COMMAND, status: "inProgress", output: "" };
const over: Item = { ...COMMAND, status: "completed", output: "a\nb\n", exitCode: 0 };

test("a command grows at its checkpoints and ends with its whole output and exit code", () => {
  const { begin, event, started, completed, delta } = open();
  begin();
  expect(started(running)).toMatchObject([
    { update: { sessionUpdate: "tool_call", toolCallId: "c", kind: "execute", title: "make", status: "in_progress" } },
  ]);
  expect(delta("a\n", { itemId: "c", channel: "output" })).toEqual([]);
  const grown = event({ type: "item.checkpointed", v: 1, turnId: T, itemId: "c", channel: "output", appended: "a\n" });
  expect(grown).toMatchObject([
    { update: { sessionUpdate: "tool_call_update", content: [{ content: text("```console\na\n```") }] } },
  ]);
  expect(completed(over)).toMatchObject([
    {
      update: {
        sessionUpdate: "tool_call_update",
        status: "completed",
        rawOutput: { exitCode: 0 },
        content: [{ content: text("```console\na\nb\n```") }],
      },
    },
  ]);
});

test("output that holds a fence cannot end the one around it", () => {
  const { completed } = open();
  const [shown] = completed({ ...COMMAND, status: "completed", output: "```\n````\n", exitCode: 0 });
  expect(shown).toMatchObject({ update: { content: [{ content: text("`````console\n```\n````\n`````") }] } });
});

test("for a client that draws terminals output is data, whole even when a piece was left out", () => {
  const { begin, started, completed, delta } = open({ drawsTerminals: true });
  begin();
  expect(started(running)).toMatchObject([
    { update: { content: [{ type: "terminal", terminalId: "c" }], _meta: { terminal_info: { cwd: "/w" } } } },
  ]);
  const data = (outgoing: readonly AcpOutgoing[]): unknown =>
    outgoing.map((out) => (out.kind === "update" ? out.update["_meta"] : out.kind));
  expect(data(delta("a\n", { itemId: "c", channel: "output" }))).toEqual([
    { terminal_output: { terminal_id: "c", data: "a\n" } },
  ]);
  expect(delta("b\n", { itemId: "c", channel: "output" }, true)).toEqual([]);
  expect(data(completed(over))).toEqual([
    { terminal_output: { terminal_id: "c", data: "b\n" } },
    { terminal_exit: { terminal_id: "c", exit_code: 0, signal: null } },
  ]);
});

test("a command of the past is shown as begun and as ended to a client that draws terminals", () => {
  const { completed } = open({ drawsTerminals: true });
  const kinds = completed(over).map((out) => (out.kind === "update" ? out.update.sessionUpdate : out.kind));
  expect(kinds).toEqual(["tool_call", "tool_call_update", "tool_call_update"]);
});

test("a question shows its call first, and is closed by its answer, once", () => {
  const { begin, event } = open();
  begin();
  const question = { kind: "command", callId: "k", itemId: "c", command: "rm x", cwd: "/w", reason: "why" } as const;
  const asked = event({ type: "approval.requested", v: 1, turnId: T, approvalId: "a", question });
  expect(asked).toMatchObject([
    { kind: "update", update: { sessionUpdate: "tool_call", toolCallId: "c", title: "rm x", status: "pending" } },
    { kind: "ask", approvalId: "a" },
  ]);
  const answer: EventBody = { type: "approval.resolved", v: 1, turnId: T, approvalId: "a", decision: "accept" };
  expect(event(answer)).toEqual([{ kind: "resolved", approvalId: "a" }]);
  expect(event(answer)).toEqual([]);
});

const END: EventBody = {
  type: "turn.completed",
  v: 1,
  turnId: T,
  status: "completed",
  durationMs: 1,
  usage: { ...NO_USAGE, inputTokens: 100, cachedInputTokens: 80, outputTokens: 7, reasoningOutputTokens: 3 },
};

test.each([
  ["completed", undefined, "end_turn"],
  ["interrupted", "turn.interrupted", "cancelled"],
  ["failed", "provider.refused", "refusal"],
  ["failed", "limit.reached", "max_turn_requests"],
] as const)("a turn that is %s with %s stops with a reason of the protocol", (status, code, stopReason) => {
  const { begin, event } = open();
  begin();
  const failure = code === undefined ? {} : { failure: { code, message: "why" } };
  expect(event({ ...END, status, ...failure }).at(-1)).toEqual({
    kind: "ended",
    turnId: T,
    end: {
      kind: "stopped",
      stopReason,
      usage: {
        totalTokens: 107,
        inputTokens: 20,
        outputTokens: 7,
        cachedReadTokens: 80,
        cachedWriteTokens: 0,
        thoughtTokens: 3,
      },
    },
  });
});

test("any other failure is an error, with its code", () => {
  const { begin, event } = open();
  begin();
  const failure = { code: "provider.cut", message: "it broke off" };
  expect(event({ ...END, status: "failed", failure })).toEqual([
    { kind: "ended", turnId: T, end: { kind: "failed", failure } },
  ]);
});

test("the output limit of a model is max_tokens, and said why", () => {
  const { begin, event } = open({ showsNotices: true });
  begin();
  const usage = { ...NO_USAGE, inputTokens: 90, outputTokens: 10 };
  const responded = {
    type: "model.responded",
    v: 1,
    turnId: T,
    requestId: "r",
    output: [],
    stopReason: "length",
    usage,
  };
  expect(event(responded as EventBody)).toMatchObject([
    { update: { sessionUpdate: "usage_update", used: 100, size: 1_000 } },
  ]);
  const failure = { code: "limit.reached", message: "the output limit" };
  expect(event({ ...END, status: "failed", failure })).toMatchObject([
    { update: { sessionUpdate: "notice", severity: "error", title: "the output limit" } },
    { end: { stopReason: "max_tokens" } },
  ]);
});

test("notices and compactions are updates of their own for clients that show them, and thoughts and calls for others", () => {
  const notice: Item = { type: "notice", id: "n", level: "warning", code: "x", message: "mind this" };
  const compaction: Item = {
    type: "contextCompaction",
    id: "k",
    trigger: "manual",
    status: "completed",
    tokensBefore: 9,
  };
  const kinds = (outgoing: readonly AcpOutgoing[]): unknown =>
    outgoing.map((out) => (out.kind === "update" ? out.update.sessionUpdate : out.kind));
  const able = open({ showsNotices: true, showsCompactions: true });
  expect(kinds([...able.completed(notice), ...able.completed(compaction)])).toEqual(["notice", "compaction_update"]);
  const other = open();
  expect(kinds([...other.completed(notice), ...other.completed(compaction)])).toEqual([
    "agent_thought_chunk",
    "tool_call",
  ]);
});

test("names, settings and envelopes that change at any door are told", () => {
  const { event } = open();
  expect(event({ type: "thread.named", v: 1, name: "new" })).toMatchObject([
    { update: { sessionUpdate: "session_info_update", title: "new" } },
  ]);
  expect(event({ type: "thread.settings-changed", v: 1, changes: {} })).toEqual([{ kind: "settings" }]);
});
