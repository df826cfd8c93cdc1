/** Quirks of ACP agents, message by message. */
import type { Item } from "@heddle/protocol";
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled, type HeardWire } from "../../../test/dialect-turn.ts";
import { acpDialect } from "./acp.ts";
import type { Conversation, ModelCall, NativeOutcome, ProgramTurn, Wire } from "./conversation.ts";

const HELLO = [{ type: "text", text: "hello" }] as const;

interface Agent {
  readonly name?: string;
  readonly version?: string;
  readonly able?: object;
  /** What it answers to `session/new`, besides the id. */
  readonly opened?: object;
}

/** Answers the last request that was sent. */
async function answer(talk: Conversation, { sent }: HeardWire, result: object): Promise<void> {
  const asked = sent.findLast(({ method, id }) => method !== undefined && id !== undefined);
  await talk.receive({ jsonrpc: "2.0", id: asked?.["id"], result });
  await settled();
}

async function begun(
  turn: ProgramTurn,
  { name = "play", version = "1.0.0", able = { loadSession: true }, opened = {} }: Agent = {},
  wire: HeardWire = heardWire(),
): Promise<{ readonly wire: HeardWire; readonly talk: Conversation }> {
  const talk = acpDialect.open(wire, turn);
  const ready = talk.begin();
  await settled();
  const agentInfo = { name, version };
  await answer(talk, wire, { protocolVersion: 1, agentInfo, agentCapabilities: able });
  await answer(talk, wire, { sessionId: "ses_1", ...opened });
  await settled();
  if (wire.sent.at(-1)?.["method"] === "session/set_mode") await answer(talk, wire, {});
  await ready;
  return { wire, talk };
}

test("an end that it says before it was told to stop is its own", async () => {
  const held = Promise.withResolvers<void>();
  const heard = heardWire();
  const wire: HeardWire & Wire = {
    sent: heard.sent,
    async send(message) {
      if ("method" in message && message.method === "session/cancel") await held.promise;
      await heard.send(message);
    },
    finish: (text) => heard.finish(text),
  };
  const { talk } = await begun(dialectTurn(), {}, wire);
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const told = talk.interrupt();
  await settled();
  await answer(talk, wire, { stopReason: "end_turn" });
  expect(await prompted).toMatchObject({ kind: "completed" });
  held.resolve();
  await told;
});

test.each([
  [["allow_always", "reject_once"], "accept", { outcome: "selected", optionId: "reject_once" }],
  [["allow_always"], "accept", { outcome: "cancelled" }],
  [["allow_always", "allow_once"], "accept", { outcome: "selected", optionId: "allow_once" }],
  [["allow_once", "reject_always"], "decline", { outcome: "selected", optionId: "reject_always" }],
] as const)("of %j, a user's %s is answered with %j: only Heddle remembers a yes", async (kinds, decision, outcome) => {
  const { talk, wire } = await begun(dialectTurn({ decide: () => decision }));
  const prompted = talk.prompt(HELLO, undefined);
  prompted.catch(() => undefined);
  await settled();
  const toolCall = { toolCallId: "c1", kind: "execute", title: "make", rawInput: { command: "make" } };
  const options = kinds.map((kind) => ({ optionId: kind, kind, name: kind }));
  await talk.receive({
    id: 77,
    method: "session/request_permission",
    params: { sessionId: "ses_1", toolCall, options },
  });
  await settled();
  expect(wire.sent.at(-1)).toMatchObject({ id: 77, result: { outcome } });
});

test("usage that an agent counts for its session is taken once, also by a later process", async () => {
  const spent: ModelCall[] = [];
  const before = { inputTokens: 100, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 20 };
  const countedBefore = { ...before, reasoningOutputTokens: 0 };
  const turn = dialectTurn({
    spent: (call) => void spent.push(call),
    changes: { handle: { id: "ses_1", isOfOther: false }, countedBefore },
  });
  const { talk, wire } = await begun(turn, { name: "copilot" });
  for (const [inputTokens, outputTokens] of [
    [150, 30],
    [170, 45],
  ]) {
    const prompted = talk.prompt(HELLO, undefined);
    await settled();
    await answer(talk, wire, { stopReason: "end_turn", usage: { inputTokens, outputTokens } });
    await prompted;
  }
  expect(spent.map(({ usage }) => [usage.inputTokens, usage.outputTokens])).toEqual([
    [50, 10],
    [20, 15],
  ]);
});

test("usage that begins at nothing in a new process is taken whole", async () => {
  const spent: ModelCall[] = [];
  const before = { inputTokens: 100, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 20 };
  const countedBefore = { ...before, reasoningOutputTokens: 0 };
  const turn = dialectTurn({
    spent: (call) => void spent.push(call),
    changes: { handle: { id: "ses_1", isOfOther: false }, countedBefore },
  });
  const { talk, wire } = await begun(turn, { name: "copilot" });
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  await answer(talk, wire, { stopReason: "end_turn", usage: { inputTokens: 40, outputTokens: 30 } });
  await prompted;
  expect(spent.map(({ usage }) => [usage.inputTokens, usage.outputTokens])).toEqual([[40, 30]]);
});

test("what an agent declares at its start is known from then on", async () => {
  const declared: Record<string, boolean> = {};
  const turn = dialectTurn({ changes: { declared: (found) => void Object.assign(declared, found) } });
  await begun(turn, { able: { promptCapabilities: { image: false } } });
  expect(declared).toEqual({ images: false, resume: false });
  await begun(turn, { able: { loadSession: true, promptCapabilities: { image: true } } });
  expect(declared).toEqual({ images: true, resume: true });
});

interface Heard {
  readonly items: readonly Item[];
  readonly calls: readonly ModelCall[];
  readonly outcome: NativeOutcome;
}

/** A prompt, what the agent says of it, and its answer. */
async function heard(agent: Agent, updates: readonly object[], result: object = {}): Promise<Heard> {
  const items: Item[] = [];
  const calls: ModelCall[] = [];
  const turn = dialectTurn({
    record: (event) => void (event.type === "item.completed" && items.push(event.item)),
    spent: (call) => void calls.push(call),
  });
  const { talk, wire } = await begun(turn, agent);
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  for (const update of updates)
    await talk.receive({ method: "session/update", params: { sessionId: "ses_1", update } });
  await answer(talk, wire, { stopReason: "end_turn", ...result });
  return { items, calls, outcome: await prompted };
}

const COPILOT = { name: "Copilot", version: "1.0.102" };
const CLAUDE = { name: "@agentclientprotocol/claude-agent-acp", version: "0.100.0" };
const QWEN = { name: "qwen-code", version: "0.24.4" };
const GEMINI = { name: "gemini-cli", version: "0.61.0" };
const CODEX = { name: "@agentclientprotocol/codex-acp", version: "2.6.0" };

const textual = (text: string): object => ({ content: [{ type: "content", content: { type: "text", text } }] });
const COMMAND = { sessionUpdate: "tool_call", toolCallId: "c1", kind: "execute", status: "pending" };
const ENDED = { sessionUpdate: "tool_call_update", toolCallId: "c1" };
const SHELL = { command: "make", description: "build it" };

test.each([
  [
    "copilot 1.0.102 writes the exit code into the output",
    COPILOT,
    [
      { ...COMMAND, rawInput: SHELL },
      { ...ENDED, ...textual("one\n") },
      {
        ...ENDED,
        status: "completed",
        ...textual("one\n<shellId: 0 completed with exit code 3>"),
        rawOutput: { contents: [{ type: "shell_exit", exitCode: 3 }] },
      },
    ],
    { status: "failed", exitCode: 3, output: "one\n" },
  ],
  [
    "claude-agent-acp 0.100 shows what a command is for, and a code only of a failure",
    CLAUDE,
    [
      { ...COMMAND, rawInput: {} },
      { ...ENDED, rawInput: SHELL, ...textual("build it") },
      { ...ENDED, status: "failed", rawOutput: "Exit code 3\none", ...textual("```\nExit code 3\none\n```") },
    ],
    { status: "failed", exitCode: 3, output: "one\n" },
  ],
  [
    "claude-agent-acp 0.100 says nothing of a success",
    CLAUDE,
    [
      { ...COMMAND, rawInput: SHELL },
      { ...ENDED, status: "completed", rawOutput: "one", ...textual("```console\none\n```") },
    ],
    { status: "completed", exitCode: 0, output: "one\n" },
  ],
  [
    "qwen-code 0.24.4 shows a report, and the output beside it",
    QWEN,
    [
      { ...COMMAND, rawInput: {}, title: "Shell" },
      {
        ...ENDED,
        status: "failed",
        rawInput: SHELL,
        ...textual("Command: make\nOutput: one\nExit Code: 3"),
        rawOutput: { type: "shell_result", output: "one", exitCode: 3 },
      },
    ],
    { status: "failed", exitCode: 3, output: "one" },
  ],
  [
    "gemini-cli 0.61 explains a command where others show output, and does not tell how it ended",
    GEMINI,
    [
      { ...COMMAND, title: "make", ...textual("[current working directory /ws] (build it)") },
      { ...ENDED, status: "completed", ...textual("one") },
    ],
    { status: "completed", output: "one" },
  ],
  [
    "gemini-cli 0.61 calls a command completed that was stopped",
    GEMINI,
    [
      { ...COMMAND, title: "make" },
      { ...ENDED, status: "completed", ...textual("Command cancelled by user.\n\nOutput before cancellation:\none") },
    ],
    { status: "failed" },
  ],
] as const)("%s", async (_, agent, updates, told) => {
  const { items } = await heard(agent, updates);
  expect(items).toHaveLength(1);
  expect(items[0]).toMatchObject({ type: "commandExecution", command: "make", ...told });
  if (!("exitCode" in told)) expect(items[0]).not.toHaveProperty("exitCode");
});

test("a file that was not there is added, whether its earlier text is missing or empty", async () => {
  const change = (toolCallId: string, oldText: string | null): object => ({
    sessionUpdate: "tool_call",
    toolCallId,
    kind: "edit",
    status: "completed",
    content: [{ type: "diff", path: "made.txt", oldText, newText: "l1\nl2\n" }],
  });
  const { items } = await heard(GEMINI, [change("c1", ""), change("c2", null), change("c3", "l0\n")]);
  expect(items.map((item) => item.type === "fileChange" && item.changes)).toEqual([
    [{ path: "made.txt", kind: "add", diff: "l1\nl2\n" }],
    [{ path: "made.txt", kind: "add", diff: "l1\nl2\n" }],
    [{ path: "made.txt", kind: "update", diff: "-l0\n+l1\n+l2" }],
  ]);
});

test("a piece of text that is empty is no message", async () => {
  const { items } = await heard(QWEN, [piece(""), piece("It ran."), piece("")]);
  expect(items).toMatchObject([{ type: "agentMessage", text: "It ran." }]);
});

const CALL = { inputTokens: 100, outputTokens: 20, totalTokens: 120, thoughtTokens: 5, cachedReadTokens: 40 };
const ONE_CALL = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, reasoningOutputTokens: 5 };
const TWO_CALLS = { inputTokens: 200, cachedInputTokens: 80, outputTokens: 40, reasoningOutputTokens: 10 };

test.each([
  ["copilot 1.0.102 counts as input what was cached", COPILOT, [], { usage: CALL }, ONE_CALL],
  ["codex-acp 2.6 counts apart what was cached", CODEX, [], { usage: { ...CALL, inputTokens: 60 } }, ONE_CALL],
  [
    "gemini-cli 0.61 tells it as a quota",
    GEMINI,
    [],
    { _meta: { quota: { token_count: { input_tokens: 200, output_tokens: 40 } } } },
    { inputTokens: 200, outputTokens: 40 },
  ],
  [
    "qwen-code 0.24.4 tells it of each call of the model, with a message",
    QWEN,
    [1, 2].map(() => ({
      sessionUpdate: "agent_message_chunk",
      content: { type: "text", text: "" },
      _meta: { usage: CALL },
    })),
    {},
    TWO_CALLS,
  ],
])("usage: %s", async (_, agent, updates, result, usage) => {
  const { calls } = await heard(agent, updates, result);
  expect(calls.map((call) => call.usage)).toMatchObject([usage]);
});

test("codex-acp 2.6 is told to leave out its own sandbox in Heddle's, and then cannot ask before every act", async () => {
  const modes = ["read-only", "workspace-write", "agent", "agent-full-access"].map((id) => ({ id, name: id }));
  const opened = { modes: { currentModeId: "agent", availableModes: modes } };
  const declared: Record<string, boolean> = {};
  const turn = dialectTurn({ changes: { declared: (found) => void Object.assign(declared, found) } });
  const { wire } = await begun(turn, { ...CODEX, opened });
  expect(wire.sent.at(-1)).toMatchObject({ method: "session/set_mode", params: { modeId: "agent-full-access" } });
  expect(declared).toMatchObject({ asksFirst: false });

  const free = dialectTurn({ changes: { envelope: { ...turn.envelope, sandbox: "off" } } });
  const { wire: other } = await begun(free, { ...CODEX, opened });
  expect(other.sent.at(-1)).toMatchObject({ params: { modeId: "workspace-write" } });

  const asking = dialectTurn({ changes: { envelope: { ...turn.envelope, approval: "untrusted" } } });
  const refused = { code: "runner.unsupported", details: { ability: "asksFirst" } };
  await expect(begun(asking, { ...CODEX, opened })).rejects.toMatchObject(refused);
});

test.each([[{ details: "400 no such model" }], [{ message: "400 no such model" }], ["400 no such model"]])(
  "an error that is called internal says its reason: %j",
  async (data) => {
    const { talk, wire } = await begun(dialectTurn(), QWEN);
    const prompted = talk.prompt(HELLO, undefined);
    await settled();
    const asked = wire.sent.at(-1);
    await talk.receive({ id: asked?.["id"], error: { code: -32_603, message: "Internal error", data } });
    const error = { code: "provider.rejected", message: "the agent says: Internal error: 400 no such model" };
    expect(await prompted).toMatchObject({ kind: "failed", error });
  },
);

test("gemini-cli 0.61 is not asked to load a session, because it would empty its record", async () => {
  const declared: Record<string, boolean> = {};
  const handle = { id: "ses_0", isOfOther: false };
  const origins: string[] = [];
  const turn = dialectTurn({
    changes: {
      handle,
      declared: (found) => void Object.assign(declared, found),
      connected: async ({ origin }) => void origins.push(origin),
    },
  });
  const { wire } = await begun(turn, GEMINI);
  expect(wire.sent.map(({ method }) => method)).toEqual(["initialize", "session/new", "session/set_mode"]);
  expect(declared).toMatchObject({ resume: false });
  expect(origins).toEqual(["retold"]);
});

const piece = (text: string): object => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

test.each([
  ["Error: 400 no such model", "provider.rejected"],
  [
    "Error: Authentication failed with provider at http://127.0.0.1:46351/v1 (HTTP 401).\n  Check your key.",
    "auth.rejected",
  ],
  ["Error: Failed to get response from the AI model; retried 5 times", "runner.failed"],
])("copilot 1.0.102 tells a failure as the last piece of a message: %s", async (text, code) => {
  const retrying = piece("Info: Request failed due to a transient API error. Retrying...");
  const { items, outcome } = await heard(COPILOT, [piece("I will look."), retrying, retrying, piece(text)]);
  expect(items).toMatchObject([{ type: "agentMessage", text: "I will look." }]);
  expect(outcome).toMatchObject({ kind: "failed", error: { code } });
});

test("copilot 1.0.102 has not failed when it goes on after an error, and its own words are no message", async () => {
  const warned: string[] = [];
  const turn = dialectTurn({ changes: { warn: async (_, message) => void warned.push(message) } });
  const { talk, wire } = await begun(turn, COPILOT);
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const left = "Warning: 1 tool call(s) had no recorded result at resume.";
  for (const text of [left, left, "Info: /ws/made.txt", "Error: 400 busy", "Here again."])
    await talk.receive({ method: "session/update", params: { sessionId: "ses_1", update: piece(text) } });
  await answer(talk, wire, { stopReason: "end_turn" });
  expect(await prompted).toMatchObject({ kind: "completed" });
  expect(turn.items.lastMessage).toBe("Here again.");
  expect(warned).toEqual([`the agent says: ${left}`]);
});

const FAILED = { sessionUpdate: "session_info_update", _meta: { codex: { threadStatus: { type: "systemError" } } } };

test("codex-acp 2.6 tells what its provider refused as the body of the answer, without its status", async () => {
  const body = '{"type":"error","error":{"type":"invalid_request_error","message":"the prompt is not wanted"}}';
  const { outcome } = await heard(CODEX, [piece(body), FAILED]);
  expect(outcome).toMatchObject({ kind: "failed", error: { code: "provider.rejected" } });
});

const LOGIN = "the agent says: Authentication required";
test.each([
  [CLAUDE, [piece("Invalid API key")], "auth.rejected", ": Invalid API key"],
  [CLAUDE, [], "runner.logged-out", ""],
  [CODEX, [FAILED], "auth.rejected", ""],
] as const)("what %j tells before it asks for a login: %j", async (agent, updates, code, said) => {
  const { talk, wire } = await begun(dialectTurn(), agent);
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const asked = wire.sent.at(-1);
  for (const update of updates)
    await talk.receive({ method: "session/update", params: { sessionId: "ses_1", update } });
  await talk.receive({ id: asked?.["id"], error: { code: -32_000, message: "Authentication required" } });
  expect(await prompted).toMatchObject({ kind: "failed", error: { code, message: LOGIN + said } });
});
