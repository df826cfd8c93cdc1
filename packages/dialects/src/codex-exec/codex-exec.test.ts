import { expect, test } from "vitest";
import type { EventBody, EventOf, Item, StoredEvent } from "@heddle/protocol";
import { codexExecDialect, type CodexExecLine } from "./codex-exec.ts";

const THREAD = "01a1ddef-663f-7992-951d-be2be3662c1a";
const TURN = "01a1ddef-663f-7992-951d-be2be3662c1b";
const usage = {
  inputTokens: 200,
  cachedInputTokens: 80,
  cacheWriteInputTokens: 0,
  outputTokens: 40,
  reasoningOutputTokens: 10,
};
const codexUsage = {
  input_tokens: 200,
  cached_input_tokens: 80,
  cache_write_input_tokens: 0,
  output_tokens: 40,
  reasoning_output_tokens: 10,
};

function lines(...bodies: readonly EventBody[]): readonly CodexExecLine[] {
  const dialect = codexExecDialect();
  return bodies.flatMap((body, index) => dialect.event(stored(body, index + 1)));
}

function stored(body: EventBody, version: number): StoredEvent {
  return { position: version, stream: THREAD, version, id: `evt_${version}`, at: 0, author: "system", body, hash: "" };
}

const started = (item: Item): EventBody => ({ type: "item.started", v: 1, turnId: TURN, item });
const completed = (item: Item): EventBody => ({ type: "item.completed", v: 1, turnId: TURN, item });

const admitted: EventBody = {
  type: "turn.admitted",
  v: 1,
  turnId: TURN,
  input: [{ type: "text", text: "go" }],
  settings: {
    provider: "mock",
    model: "m",
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  },
  holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" },
};
const turnStarted: EventBody = {
  type: "turn.started",
  v: 1,
  turnId: TURN,
  runner: "embedded",
  sandboxLevel: "namespaces",
  envelope: {
    id: "explore",
    tools: [],
    effects: [],
    writeRoots: [],
    masked: [],
    network: "none",
    sandbox: "required",
    approval: "never",
  },
  envelopeHash: "h",
};

function ended(change: Partial<EventOf<"turn.completed">> = {}): EventBody {
  return { type: "turn.completed", v: 1, turnId: TURN, status: "completed", usage, durationMs: 12, ...change };
}

const command = {
  type: "commandExecution",
  id: "item_a",
  callId: "call_1",
  command: "echo hello; exit 3",
  cwd: "/home/dev/project",
} as const;

// Expected lines are what codex-cli 0.166 printed for such a turn, plus the additive fields.
test("a turn with reasoning, a failing command and a message prints the lines Codex prints", () => {
  expect(
    lines(
      admitted,
      turnStarted,
      started({ type: "userMessage", id: "item_u", content: [] }),
      completed({ type: "userMessage", id: "item_u", content: [] }),
      started({ type: "reasoning", id: "item_r", summary: [] }),
      completed({ type: "reasoning", id: "item_r", summary: ["Thinking about it"] }),
      started({ ...command, status: "inProgress", output: "" }),
      { type: "item.checkpointed", v: 1, turnId: TURN, itemId: "item_a", channel: "output", appended: "hello\n" },
      completed({ ...command, status: "completed", output: "hello\n", exitCode: 3 }),
      started({ type: "agentMessage", id: "item_m", text: "" }),
      completed({ type: "agentMessage", id: "item_m", text: "It printed hello." }),
      ended({ costUsd: 0.25 }),
    ),
  ).toEqual([
    { type: "thread.started", thread_id: THREAD },
    { type: "turn.started", turn_id: TURN, sandbox: "namespaces" },
    { type: "item.completed", item: { id: "item_0", type: "reasoning", text: "Thinking about it" } },
    {
      type: "item.started",
      item: {
        id: "item_1",
        type: "command_execution",
        command: "/bin/bash -c 'echo hello; exit 3'",
        aggregated_output: "",
        exit_code: null,
        status: "in_progress",
      },
    },
    {
      type: "item.completed",
      item: {
        id: "item_1",
        type: "command_execution",
        command: "/bin/bash -c 'echo hello; exit 3'",
        aggregated_output: "hello\n",
        exit_code: 3,
        status: "failed",
      },
    },
    { type: "item.completed", item: { id: "item_2", type: "agent_message", text: "It printed hello." } },
    { type: "turn.completed", usage: codexUsage, cost_usd: 0.25, duration_ms: 12 },
  ]);
});

test("the bytes of a command line keep the order of fields that Codex writes", () => {
  const [line] = lines(completed({ ...command, status: "completed", output: "hello\n", exitCode: 3 }));
  expect(JSON.stringify(line)).toBe(
    `{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -c 'echo hello; exit 3'","aggregated_output":"hello\\n","exit_code":3,"status":"failed"}}`,
  );
});

test("plans are one to-do list: started once, updated after, completed with the turn", () => {
  const plan = (id: string, done: boolean): EventBody =>
    completed({
      type: "plan",
      id,
      callId: "c",
      status: "completed",
      steps: [{ text: "look", status: done ? "completed" : "inProgress" }],
    });
  const list = (isDone: boolean): unknown => ({
    id: "item_0",
    type: "todo_list",
    items: [{ text: "look", completed: isDone }],
  });
  expect(lines(plan("p1", false), plan("p2", true), ended()).slice(0, 3)).toEqual([
    { type: "item.started", item: list(false) },
    { type: "item.updated", item: list(true) },
    { type: "item.completed", item: list(true) },
  ]);
});

test("a notice and a violated path become error items", () => {
  expect(
    lines(completed({ type: "notice", id: "n", level: "warning", code: "model.fallback", message: "no metadata" }), {
      type: "path.violated",
      v: 1,
      turnId: TURN,
      path: "/w/.git/hooks/x",
      quarantinedTo: "/q/x",
    }),
  ).toEqual([
    { type: "item.completed", item: { id: "item_0", type: "error", message: "no metadata", code: "model.fallback" } },
    {
      type: "item.completed",
      item: {
        id: "item_1",
        type: "error",
        message: "a protected path was written: /w/.git/hooks/x; it was moved to /q/x",
        code: "path.protected",
      },
    },
  ]);
});

test("a provider that fails to the end prints each retry, the error, and the failed turn", () => {
  const cause = { code: "provider.overloaded", message: "high demand" };
  const retried = (attempt: number): EventBody => ({
    type: "model.retried",
    v: 1,
    turnId: TURN,
    requestId: "r",
    attempt,
    maxAttempts: 3,
    delayMs: 200,
    cause,
  });
  expect(lines(retried(1), retried(2), ended({ status: "failed", failure: cause }))).toEqual([
    { type: "error", message: "Reconnecting... 1/2 (high demand)", code: cause.code, details: { delay_ms: 200 } },
    { type: "error", message: "Reconnecting... 2/2 (high demand)", code: cause.code, details: { delay_ms: 200 } },
    { type: "error", ...cause },
    { type: "turn.failed", error: cause, status: "failed", usage: codexUsage, cost_usd: null, duration_ms: 12 },
  ]);
});

test("a request that is sent again is a line of its own, and Codex's count is that of answers asked for", () => {
  const cause = { code: "provider.overloaded", message: "high demand", details: { status: 500 } };
  const retried = (attempt: number, level: "request" | "stream"): EventBody => ({
    type: "model.retried",
    v: 1,
    turnId: TURN,
    requestId: "r",
    attempt,
    maxAttempts: 4,
    level,
    round: Math.ceil(attempt / 2),
    maxRounds: 2,
    delayMs: 200,
    cause,
  });
  expect(lines(retried(1, "request"), retried(2, "stream"), retried(3, "request"))).toEqual([
    { type: "heddle.retry", ...cause, attempt: 1, max_attempts: 4, delay_ms: 200 },
    {
      type: "error",
      message: "Reconnecting... 1/1 (high demand)",
      code: "provider.overloaded",
      details: { delay_ms: 200 },
    },
    { type: "heddle.retry", ...cause, attempt: 3, max_attempts: 4, delay_ms: 200 },
  ]);
});

test("a turn that fails because its answer broke off says so in Codex's words, and one that an address refused does not", () => {
  const failing = (details: Record<string, number>): readonly CodexExecLine[] => {
    const cause = { code: "provider.rate-limited", message: "too many requests", details };
    return lines(
      {
        type: "model.retried",
        v: 1,
        turnId: TURN,
        requestId: "r",
        attempt: 1,
        maxAttempts: 2,
        level: "stream",
        delayMs: 1,
        cause,
      },
      ended({ status: "failed", failure: cause }),
    );
  };
  const message = "stream disconnected before completion: too many requests";
  expect(failing({}).slice(1)).toMatchObject([
    { type: "error", message },
    { type: "turn.failed", error: { message } },
  ]);
  expect(failing({ status: 429 }).slice(1)).toMatchObject([{ message: "too many requests" }, { type: "turn.failed" }]);
});

test("the thread's usage counts turns of the same run whose ends were not shown", () => {
  const before = { ...usage, inputTokens: 1000 };
  const responded: EventBody = {
    type: "model.responded",
    v: 1,
    turnId: TURN,
    requestId: "r",
    output: [],
    stopReason: "end",
    usage,
  };
  const total = (...bodies: readonly (readonly [stream: string, body: EventBody])[]): unknown => {
    const dialect = codexExecDialect({ usageBefore: before });
    const all = bodies.flatMap(([stream, body], index) => dialect.event({ ...stored(body, index + 1), stream }));
    const end = all.at(-1);
    return end?.type === "turn.completed" ? end.thread_usage?.input_tokens : undefined;
  };
  const turn = (stream: string): readonly (readonly [string, EventBody])[] => [
    [stream, admitted],
    [stream, responded],
  ];
  const end = ended({ status: "completed" });
  expect(total(...turn("a"), ["a", end])).toBe(1200);
  expect(total(...turn("a"), ...turn("a"), ["a", end])).toBe(1400);
  // A run that began again did so in another thread.
  expect(total(...turn("a"), ...turn("b"), ["b", end])).toBe(200);
});

test("a command in a login shell is shown with it", () => {
  expect(lines(completed({ ...command, isLogin: true, status: "completed", output: "" }))).toMatchObject([
    { item: { command: expect.stringMatching(/^\/bin\/bash -lc /) } },
  ]);
});

test("an interrupted turn ends with turn.failed that says so", () => {
  const failure = { code: "turn.interrupted", message: "interrupted by SIGINT" };
  expect(lines(ended({ status: "interrupted", failure }))).toEqual([
    { type: "turn.failed", error: failure, status: "interrupted", usage: codexUsage, cost_usd: null, duration_ms: 12 },
  ]);
});

test("a message cut off by a retry is marked partial, an empty one is not shown", () => {
  expect(
    lines(
      completed({ type: "agentMessage", id: "m1", text: "It pri", isPartial: true }),
      completed({ type: "agentMessage", id: "m2", text: "", isPartial: true }),
      completed({ type: "agentMessage", id: "m3", text: "It printed." }),
    ),
  ).toEqual([
    { type: "item.completed", item: { id: "item_0", type: "agent_message", text: "It pri", is_partial: true } },
    { type: "item.completed", item: { id: "item_1", type: "agent_message", text: "It printed." } },
  ]);
});

test("the end names what the whole thread used beside what this turn used", () => {
  const dialect = codexExecDialect({ usageBefore: { ...usage, outputTokens: 2 } });
  expect(dialect.event(stored(ended(), 9))).toEqual([
    {
      type: "turn.completed",
      usage: codexUsage,
      thread_usage: {
        input_tokens: 400,
        cached_input_tokens: 160,
        cache_write_input_tokens: 0,
        output_tokens: 42,
        reasoning_output_tokens: 20,
      },
      cost_usd: null,
      duration_ms: 12,
    },
  ]);
});

test("with deltas a message is announced and grows under one number; without, it arrives whole", () => {
  const message = { type: "agentMessage", id: "item_m", text: "" } as const;
  const dialect = codexExecDialect({ hasDeltas: true });
  const item = (text: string): unknown => ({ id: "item_0", type: "agent_message", text });
  expect(dialect.progress("item_m", "early")).toBeUndefined();
  expect(dialect.event(stored(started(message), 1))).toEqual([{ type: "item.started", item: item("") }]);
  expect(dialect.progress("item_m", "so f")).toEqual({ type: "item.updated", item: item("so f") });
  expect(dialect.event(stored(completed({ ...message, text: "so far" }), 2))).toEqual([
    { type: "item.completed", item: item("so far") },
  ]);
  expect(dialect.progress("item_m", "late")).toBeUndefined();
  expect(lines(started(message))).toEqual([]);
});

test("a command grows by what it prints, and what has no text does not", () => {
  const dialect = codexExecDialect({ hasDeltas: true });
  dialect.event(stored(started({ ...command, status: "inProgress", output: "" }), 1));
  dialect.event(stored(started({ type: "fileChange", id: "p", callId: "c", status: "inProgress", changes: [] }), 2));
  expect(dialect.progress("item_a", "hel")).toMatchObject({
    type: "item.updated",
    item: { id: "item_0", aggregated_output: "hel", status: "in_progress" },
  });
  expect(dialect.progress("p", "x")).toBeUndefined();
});

test("a call of an MCP tool names its server, and keeps result or error", () => {
  const call = {
    type: "mcpToolCall",
    id: "m",
    callId: "c",
    server: "docs",
    tool: "find",
    arguments: { q: 1 },
  } as const;
  const content = [{ type: "text", text: "found" }];
  const item = { id: "item_0", type: "mcp_tool_call", server: "docs", tool: "find", arguments: { q: 1 } };
  expect(
    lines(started({ ...call, status: "inProgress" }), completed({ ...call, status: "completed", result: { content } })),
  ).toEqual([
    { type: "item.started", item: { ...item, result: null, error: null, status: "in_progress" } },
    {
      type: "item.completed",
      item: { ...item, result: { content, structured_content: null }, error: null, status: "completed" },
    },
  ]);
  expect(lines(completed({ ...call, status: "failed", error: "gone" }))).toMatchObject([
    { item: { error: { message: "gone" }, result: null, status: "failed" } },
  ]);
});
