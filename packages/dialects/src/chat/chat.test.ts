/** C2, C3, C5, C15 and the numbers of events: the chat dialect as a pure mapping. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { logEntryCount, type EventBody, type Item, type StoredEvent, type TurnSettings } from "@heddle/protocol";
import {
  CHAT_EVENTS,
  CHAT_METHODS,
  ChatLog,
  chatMethod,
  chatSchema,
  chatTurns,
  chatPatch,
  matchesTopic,
  isChatName,
  negotiate,
  placeholderTitle,
  readParams,
  topicFor,
} from "./index.ts";

const turnId = "turn";
const usage = {
  inputTokens: 10,
  cachedInputTokens: 1,
  cacheWriteInputTokens: 0,
  outputTokens: 5,
  reasoningOutputTokens: 2,
};
const settings: TurnSettings = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "untrusted",
};
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const input = [{ type: "text" as const, text: "hi" }];
const failure = { code: "provider.cut", message: "it broke off" };

const items: readonly Item[] = [
  { type: "userMessage", id: "i1", content: [...input, { type: "image", mediaType: "image/png", base64: "AA==" }] },
  { type: "agentMessage", id: "i2", text: "hello" },
  { type: "reasoning", id: "i3", summary: ["hm"], text: "raw" },
  {
    type: "commandExecution",
    id: "i4",
    callId: "c",
    command: "ls",
    cwd: "/w",
    status: "completed",
    output: "x",
    exitCode: 0,
  },
  {
    type: "fileChange",
    id: "i5",
    callId: "c",
    status: "completed",
    changes: [{ path: "/w/a", kind: "add", diff: "+a" }],
  },
  { type: "toolCall", id: "i6", callId: "c", tool: "grep", arguments: { q: 1 }, status: "failed", error: "no" },
  {
    type: "mcpToolCall",
    id: "i7",
    callId: "c",
    server: "s",
    tool: "t",
    arguments: {},
    status: "completed",
    result: { content: [] },
  },
  { type: "plan", id: "i8", callId: "c", status: "completed", steps: [{ text: "one", status: "inProgress" }] },
  { type: "imageView", id: "i9", callId: "c", path: "/w/p.png", status: "completed" },
  { type: "contextCompaction", id: "i10", trigger: "auto", status: "completed", tokensBefore: 9 },
  { type: "notice", id: "i11", level: "warning", code: "hook.failed", message: "careful" },
];

const bodies: readonly EventBody[] = [
  { type: "thread.created", v: 1, workspace: "/w", origin: "chat:", title: "T" },
  { type: "thread.settings-changed", v: 1, changes: { model: "m2", effort: "low" } },
  { type: "thread.settings-changed", v: 1, changes: { effort: null } },
  { type: "thread.named", v: 1, name: "N" },
  { type: "thread.moved", v: 1, workspace: "/v" },
  { type: "thread.archived", v: 1, isArchived: true },
  { type: "turn.queued", v: 1, turnId: "later", input, settings },
  { type: "turn.admitted", v: 1, turnId, input, settings, holder },
  ...items.flatMap((item): EventBody[] => [
    { type: "item.started", v: 1, turnId, item },
    { type: "item.completed", v: 1, turnId, item },
  ]),
  {
    type: "item.completed",
    v: 1,
    turnId,
    item: { type: "plan", id: "i12", callId: "c", status: "interrupted", steps: [] },
  },
  { type: "item.checkpointed", v: 1, turnId, itemId: "i2", channel: "text", appended: "x" },
  { type: "model.requested", v: 1, turnId, requestId: "r", provider: "p", model: "m", requestBytes: 1 },
  { type: "model.retried", v: 1, turnId, requestId: "r", attempt: 1, maxAttempts: 2, delayMs: 1, cause: failure },
  { type: "model.responded", v: 1, turnId, requestId: "r", output: [], stopReason: "end", usage },
  {
    type: "approval.requested",
    v: 1,
    turnId,
    approvalId: "a1",
    question: { kind: "command", callId: "c", itemId: "i4", command: "rm x", cwd: "/w", reason: "why" },
  },
  { type: "approval.resolved", v: 1, turnId, approvalId: "a1", decision: "acceptForThread" },
  {
    type: "approval.requested",
    v: 1,
    turnId,
    approvalId: "a2",
    question: { kind: "fileChange", callId: "c", itemId: "i5", paths: ["/w/a"] },
  },
  {
    type: "approval.requested",
    v: 1,
    turnId,
    approvalId: "a3",
    question: { kind: "tool", callId: "c", itemId: "i6", tool: "t", arguments: 1 },
  },
  { type: "path.violated", v: 1, turnId, path: "/w/.git/config" },
  {
    type: "hook.ran",
    v: 1,
    turnId,
    event: "Stop",
    command: "x",
    outcome: "failed",
    failure,
    durationMs: 1,
    output: "",
  },
  { type: "hook.ran", v: 1, turnId, event: "Stop", command: "x", outcome: "ok", durationMs: 1, output: "" },
  { type: "turn.steered", v: 1, turnId, input },
  { type: "turn.completed", v: 1, turnId, status: "failed", failure, usage, durationMs: 5 },
  { type: "turn.dequeued", v: 1, turnId: "later", failure: { code: "turn.interrupted", message: "stop" } },
  { type: "background.ran", v: 1, purpose: "title", provider: "p", model: "m", outcome: "ok", usage, durationMs: 1 },
  { type: "thread.deleted", v: 1, reason: "r" },
];

const stored: readonly StoredEvent[] = bodies.map((body, index) => ({
  position: index + 1,
  stream: "t",
  version: index + 1,
  id: `evt_${index}`,
  at: 1_700_000_000_000 + index,
  author: "user:owner",
  body,
  hash: "",
}));

test("every stored event is as many events as it weighs, numbered without a gap, each as its schema says", () => {
  const log = new ChatLog({ threadId: "t" });
  const told = stored.flatMap((event) => {
    const events = log.event(event);
    expect([event.body.type, events.length]).toEqual([event.body.type, logEntryCount(event.body)]);
    return events;
  });
  expect(told.map(({ params }) => params.seq)).toEqual(told.map((_, index) => index + 1));
  for (const { topic, params } of told)
    expect([topic, CHAT_EVENTS[topic].safeParse(params).error]).toEqual([topic, undefined]);
  const settings = told.flatMap(({ params }) => ("settings" in params ? [params.settings] : []));
  expect(settings).toEqual([{ model: "m2", effort: "low" }, { model: "m2" }]);
  const live = new Set([
    "chat.item.updated",
    "chat.message.delta",
    "chat.reasoning.delta",
    "chat.command.output",
    "chat.file.output",
  ]);
  const topics = new Set<string>(told.map(({ topic }) => topic));
  expect(Object.keys(CHAT_EVENTS).filter((topic) => !topics.has(topic) && !live.has(topic))).toEqual([]);
});

describe("C5 a client written from the table of topics", () => {
  /** What older clients do with each topic: a row on the screen, or a change of one. */
  function render(topic: string, params: Readonly<Record<string, unknown>>): string {
    const item = params["item"] as Readonly<Record<string, unknown>> | undefined;
    switch (topic) {
      case "chat.item.started":
      case "chat.item.completed":
        return renderItem(item ?? {});
      case "chat.message.delta":
      case "chat.reasoning.delta":
      case "chat.command.output":
      case "chat.file.output":
        return `+${String(params["itemId"])}:${String(params["delta"])}`;
      case "chat.diff.updated":
        return `diff ${String(params["diff"])}`;
      case "chat.plan.updated":
        return `plan ${JSON.stringify(params["plan"])}`;
      case "chat.token.usage.updated":
        return `tokens ${JSON.stringify(params["tokenUsage"])}`;
      case "chat.approval.required":
        return `ask ${String(params["codex_request_id"])} ${String(params["command"] ?? params["kind"])}`;
      case "chat.turn.started":
      case "chat.turn.completed":
        return `${topic} ${JSON.stringify([params["turnId"], params["status"]])}`;
      default:
        return topic.startsWith("chat.") ? topic : "";
    }
  }

  function renderItem(item: Readonly<Record<string, unknown>>): string {
    const text = (key: string): string => JSON.stringify(item[key]) ?? "";
    const fields: Readonly<Record<string, readonly string[]>> = {
      userMessage: ["content"],
      agentMessage: ["text"],
      plan: ["text"],
      reasoning: ["summary", "content"],
      commandExecution: ["command", "cwd", "aggregatedOutput", "status"],
      fileChange: ["changes", "status"],
      mcpToolCall: ["tool", "status"],
      imageView: ["path"],
      contextCompaction: ["status"],
    };
    const wanted = fields[String(item["type"])] ?? [];
    for (const key of wanted) expect([item["type"], key, item[key] === undefined]).toEqual([item["type"], key, false]);
    return wanted.length === 0 ? "" : `${String(item["type"])} ${wanted.map(text).join(" ")}`;
  }

  test("shows something for every event, and knows its turn", () => {
    const log = new ChatLog({ threadId: "t" });
    for (const { topic, params } of stored.flatMap((event) => log.event(event))) {
      expect([topic, render(topic, { ...params })]).not.toEqual([topic, ""]);
      expect(params).toMatchObject({ chat_id: "t", threadId: "t" });
      if (/^chat\.(turn|item|diff|plan|approval|token)/.test(topic)) expect(params.turnId).toBeDefined();
    }
  });

  test("is told deltas of items that have begun", () => {
    const log = new ChatLog({ threadId: "t" });
    const delta = (itemId: string, channel: "text" | "reasoningSummary" | "output", words: string) =>
      log
        .delta({ threadId: "t", turnId, itemId, channel, delta: words })
        .map(({ topic, params }) => render(topic, { ...params }));
    expect(delta("i2", "text", "he")).toEqual([]);
    const begun = stored.find(({ body }) => body.type === "item.started" && body.item.id === "i2");
    if (begun === undefined) throw new Error("there is no such item");
    log.event(begun);
    expect(delta("i2", "text", "llo")).toEqual(["+i2:llo"]);
    const thinking = stored.find(({ body }) => body.type === "item.started" && body.item.id === "i3");
    if (thinking !== undefined) log.event(thinking);
    expect(delta("i3", "reasoningSummary", "one")).toEqual(["+i3:one"]);
    expect(delta("i3", "reasoningSummary", "\n\ntwo")).toEqual(["+i3:two"]);
  });
});

test("a running item is told as its checkpoints have it, live and without a number of its own", () => {
  const log = new ChatLog({ threadId: "t" });
  const item: Item = { type: "agentMessage", id: "m", text: "" };
  const grown = (appended: string) =>
    ({ type: "item.checkpointed", v: 1, turnId, itemId: "m", channel: "text", appended }) as const;
  const [first] = stored;
  if (first === undefined) throw new Error("there is no event");
  for (const body of [{ type: "item.started", v: 1, turnId, item } as const, grown("he"), grown("llo")]) {
    log.event({ ...first, body });
  }
  const [updated] = log.updated(grown("llo"));
  expect(updated).toMatchObject({
    topic: "chat.item.updated",
    params: { seq: 1, live: true, turnId, itemId: "m", item: { type: "agentMessage", text: "hello" } },
  });
  expect(CHAT_EVENTS["chat.item.updated"].safeParse(updated?.params).error).toBeUndefined();
  log.event({ ...first, body: { type: "item.completed", v: 1, turnId, item } });
  expect(log.updated(grown("late"))).toEqual([]);
});

test("a failed turn has one end, with its reason; one that was taken out of the queue too", () => {
  const log = new ChatLog({ threadId: "t" });
  const ends = stored.flatMap((event) => log.event(event)).filter(({ topic }) => topic === "chat.turn.completed");
  expect(ends.map(({ params }) => params)).toMatchObject([
    { turnId, status: "failed", error: { code: "provider.cut", retryable: true } },
    { turnId: "later", status: "interrupted" },
  ]);
  expect(ends[1]?.params).not.toHaveProperty("error");
});

test("the view of a thread has its turns in the order they ran, with what a running item has said so far", () => {
  const turns = chatTurns(stored);
  expect(turns.map(({ id, status }) => [id, status])).toEqual([
    ["later", "interrupted"],
    [turnId, "failed"],
  ]);
  const begun = stored.filter(({ body }) => body.type !== "item.completed" && body.type !== "turn.completed");
  const running = chatTurns(begun).find(({ id }) => id === turnId);
  expect(running?.items.find(({ id }) => id === "i2")).toMatchObject({ text: "hellox" });
});

test("C2 keys come in both forms, also inside settings; what is there in both counts once", () => {
  const given = {
    chatId: "a",
    includeTurns: true,
    settings: { approvalPolicy: "never" },
    thread_id: "x",
    threadId: "y",
  };
  expect(readParams(given)).toEqual({
    chat_id: "a",
    include_turns: true,
    settings: { approval_policy: "never" },
    thread_id: "x",
  });
  expect(readParams(undefined)).toEqual({});
  expect(readParams([1])).toEqual([1]);
});

test("C3 older names are the same methods and topics", () => {
  for (const method of Object.keys(CHAT_METHODS).filter((name) => name.startsWith("chat."))) {
    const rest = method.slice("chat.".length);
    expect([chatMethod(method), chatMethod(`agent.chat.${rest}`), chatMethod(`agent.codex.${rest}`)]).toEqual([
      method,
      method,
      method,
    ]);
  }
  expect(chatMethod("chat.event.subscribe")).toBe("events.subscribe");
  expect([chatMethod("constructor"), chatMethod("agent.chat.none"), chatMethod("thread/start")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect([isChatName("hello"), isChatName("chat.x"), isChatName("agent.codex.x"), isChatName("initialize")]).toEqual([
    true,
    true,
    true,
    false,
  ]);
  expect(topicFor("agent.chat.*", "chat.turn.started")).toBe("agent.chat.turn.started");
  expect(topicFor("agent.chat.turn.started", "chat.turn.started")).toBe("agent.chat.turn.started");
  expect(topicFor("*", "chat.turn.started")).toBe("chat.turn.started");
  const patterns = ["*", "chat.*", "chat.turn.*", "chat.turn.started", "chat.turn", "chatx.*"];
  expect(patterns.map((pattern) => matchesTopic(pattern, "chat.turn.started"))).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
  ]);
});

test.each([
  [{ min: 1, max: 1 }, { min: 1, max: 1 }, 1],
  [{ min: 0, max: 9 }, { min: 1, max: 3 }, 3],
  [{ min: 2, max: 2 }, { min: 1, max: 3 }, 2],
  [{ min: 4, max: 9 }, { min: 1, max: 3 }, undefined],
  [{ min: 0, max: 0 }, { min: 1, max: 3 }, undefined],
])("C15 %j and %j speak %s", (theirs, ours, version) => {
  expect(negotiate(theirs, ours)).toBe(version);
});

test("settings are read as the engine takes them: a model may name its provider", () => {
  expect(
    chatPatch({ model: "openai-codex:gpt-5", effort: "auto", sandbox: "danger-full-access", runner: "codex" }),
  ).toEqual({
    runner: "codex",
    provider: "openai-codex",
    model: "gpt-5",
    effort: undefined,
    approvalPolicy: undefined,
    sandboxMode: "danger-full-access",
    mode: undefined,
  });
  expect(chatPatch({ model: "llama3:8b", approval_policy: "always", collaboration_mode: "plan" })).toMatchObject({
    provider: undefined,
    model: "llama3:8b",
    approvalPolicy: "untrusted",
    mode: "plan",
  });
  expect(chatPatch({ collaboration_mode: { mode: "code" } })).toMatchObject({ mode: "default" });
});

test("B1 until it has a title a chat is called by its first 42 letters", () => {
  expect(placeholderTitle("x".repeat(50))).toBe("x".repeat(42));
  expect(placeholderTitle(undefined)).toBeNull();
  expect(placeholderTitle("short")).toBe("short");
});

test("W10: the published schema is the one the methods come from (heddle schema chat > schemas/chat.schema.json)", () => {
  const published: unknown = JSON.parse(
    readFileSync(new URL("../../../../schemas/chat.schema.json", import.meta.url), "utf8"),
  );
  expect(published).toEqual(JSON.parse(JSON.stringify(chatSchema())));
});
