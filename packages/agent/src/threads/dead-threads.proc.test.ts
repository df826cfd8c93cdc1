/** Threads that a service would refuse to go on with for something it said itself, or took before: they live. */
import { join } from "node:path";
import { writeFile } from "node:fs/promises";
import { startModelServer, type HttpWire, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import type { EventBody, TurnSettings } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { fixture, mcpCall, mcpItems, notices, play } from "../../test/mcp-play.ts";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const MODELS: Record<HttpWire, string> = {
  "openai-responses": "gpt-5.5",
  "openai-chat": "some-local-model",
  anthropic: "claude-fable-5-1",
  gemini: "gemini-3.8-flash",
};
const WIRES = Object.keys(MODELS) as HttpWire[];
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

function open(server: ModelServer, wire: HttpWire, settings: Partial<TurnSettings> = {}): Promise<TestHeddle> {
  const provider = server.provider(wire, wire === "anthropic" ? { vendor: "anthropic" } : {});
  return openTestHeddle({
    providers: [provider],
    settings: { provider: "test", model: MODELS[wire], ...settings },
  });
}

async function say(t: TestHeddle, words: string, thread?: string): Promise<{ threadId: string; end: EventBody }> {
  const turn = await t.start(words, thread === undefined ? {} : { thread });
  return { threadId: turn.threadId, end: (await turn.done).body };
}

async function bodies(t: TestHeddle, threadId: string): Promise<EventBody[]> {
  return (await t.events(threadId)).map(({ body }) => body);
}

test.each(WIRES)(
  "12.16: reasoning that the output limit of %s cut does not keep the thread from going on",
  async (wire) => {
    await using server = await startModelServer({
      respond: () => ({ reasoning: "let me think about this for long", text: "done" }),
      faults: [{ kind: "out-of-tokens" }],
    });
    await using t = await open(server, wire);
    const first = await say(t, "think");
    expect(first.end).toMatchObject({ status: "failed", failure: { code: "limit.reached" } });
    const second = await say(t, "go on", first.threadId);
    expect(second.end).toMatchObject({ status: "completed" });
    expect((await bodies(t, first.threadId)).filter(({ type }) => type === "context.left-out")).toEqual([]);
  },
);

test("12.16: text of nothing but white space, and arguments that are no JSON, do not kill a thread", async () => {
  for (const [wire, tool] of [
    ["anthropic", "bash"],
    ["openai-chat", "bash"],
    ["openai-responses", "exec_command"],
  ] as const) {
    await using server = await startModelServer({
      script: [{ text: " \n", calls: [{ tool, args: '{"command": "ls' }] }, { text: "sorry" }, { text: "fine" }],
    });
    await using t = await open(server, wire);
    const first = await say(t, "list");
    expect([wire, first.end]).toMatchObject([wire, { status: "completed" }]);
    expect((await say(t, "again", first.threadId)).end).toMatchObject({ status: "completed" });
    expect(server.requests).toHaveLength(3);
  }
});

test.each(WIRES)("12.16: halves of characters and names that %s refuses do not kill a thread", async (wire) => {
  const tool = wire === "openai-responses" ? "exec_command" : "bash";
  const half = '"echo \\ud83d"';
  const bad = ["multi_tool_use.parallel", `functions.${tool}`, "", "\u5de5\u5177", "x".repeat(300)];
  await using server = await startModelServer({
    script: [
      { calls: [{ tool, args: `{"command":${half},"cmd":${half}}`, id: `${"x".repeat(63)}\u{1f600}` }] },
      ...bad.map((name) => ({ calls: [{ tool: name, args: {} }] })),
      { text: "sorry" },
      { text: "fine" },
    ],
  });
  await using t = await open(server, wire);
  const first = await say(t, "run it");
  expect(first.end).toMatchObject({ status: "completed" });
  expect((await say(t, "again", first.threadId)).end).toMatchObject({ status: "completed" });
  expect(server.requests).toHaveLength(bad.length + 3);
  expect((await bodies(t, first.threadId)).filter(({ type }) => type === "context.left-out")).toEqual([]);
});

test("12.16: thinking that is bound to other tools, or to what a compaction took away, is dropped and not refused", async () => {
  await using server = await startModelServer({
    respond: (request) =>
      JSON.stringify(request.body).includes("<data-")
        ? { text: "a summary" }
        : { reasoning: "thinking of it", text: `answer ${request.number}` },
  });
  await using t = await open(server, "anthropic");
  const { threadId, end } = await say(t, "one");
  expect(end).toMatchObject({ status: "completed" });
  const planning = await t.heddle.as("user:owner").startTurn({
    thread: threadId,
    input: [{ type: "text", text: "two" }],
    settings: { ...t.settings, mode: "plan" },
  });
  expect((await planning.done).body).toMatchObject({ status: "completed" });
  expect((await say(t, "three", threadId)).end).toMatchObject({ status: "completed" });
  const compacting = await t.heddle.as("user:owner").compact(threadId);
  expect((await compacting.done).body).toMatchObject({ status: "completed" });
  expect((await say(t, "four", threadId)).end).toMatchObject({ status: "completed" });
  expect(server.requests.at(-1)?.headers["anthropic-beta"]).toBe("thinking-binding-controls-2026-08-01");
  expect((await bodies(t, threadId)).filter(({ type }) => type === "context.left-out")).toEqual([]);
});

test.each(WIRES)("12.16: a tool of an MCP server with a schema that %s refuses is offered and called", async (wire) => {
  await using server = await startModelServer({
    script: [{ calls: [mcpCall("echo", { text: "hello" })] }, { text: "done" }],
  });
  await using t = await openTestHeddle({
    providers: [server.provider(wire)],
    settings: { provider: "test", model: MODELS[wire] },
    mcpServers: [fixture("odd-schemas")],
  });
  const { status, bodies: events } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(events)).toMatchObject([{ tool: "echo", arguments: { text: "hello" }, status: "completed" }]);
  // What the schema cannot say any more is said in words.
  expect(JSON.stringify(server.requests[0]?.body)).toContain("must also match this JSON Schema");
});

const toolNames = (request: RecordedRequest | undefined): string[] => {
  const body = request?.body as { tools?: readonly { function: { name: string } }[] };
  return (body.tools ?? []).map((tool) => tool.function.name);
};

test("12.16: a model without eyes is not offered view_image, and is told of pictures in words", async () => {
  await using server = await startModelServer({
    script: [{ calls: [{ tool: "view_image", args: { path: "a.png" } }] }, { text: "seen" }, { text: "told" }],
  });
  await using t = await open(server, "openai-chat", { model: "some-vlm" });
  await writeFile(join(t.workspace, "a.png"), PNG);
  const { threadId } = await say(t, "look");
  expect(toolNames(server.requests[0])).toContain("view_image");
  expect(JSON.stringify(server.requests[1]?.body)).toContain("image_url");
  const turn = await t.heddle.as("user:owner").startTurn({
    thread: threadId,
    input: [
      { type: "text", text: "and this?" },
      { type: "image", mediaType: "image/png", base64: "iVBORw0KGgo=" },
    ],
    settings: { ...t.settings, model: "deepseek-chat" },
  });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const said = notices(await bodies(t, threadId)).map(({ code, message }) => `${code}: ${message}`);
  expect(said).toEqual(["model.images: deepseek-chat does not accept images; the model gets a note instead"]);
  expect(toolNames(server.requests[2])).not.toContain("view_image");
  const told = JSON.stringify(server.requests[2]?.body);
  expect(told).not.toContain("image_url");
  expect(told).toContain("this model takes no images");
});

describe("12.16: a provider that refuses a stored part of the conversation", () => {
  const refuses = (message: string) => ({ kind: "status", status: 400, body: { error: { message } } }) as const;

  test("goes on without it, once, on record, and says so; a resumed thread does not meet it again", async () => {
    await using server = await startModelServer({
      script: [{ calls: [{ tool: "view_image", args: { path: "a.png" } }] }, { text: "first" }, { text: "second" }],
      faults: ({ body }) =>
        JSON.stringify(body).includes("image_url")
          ? refuses("messages[4]: unknown variant `image_url`, expected `text`")
          : undefined,
    });
    await using t = await open(server, "openai-chat");
    await writeFile(join(t.workspace, "a.png"), PNG);
    const { threadId, end } = await say(t, "look");
    expect(end).toMatchObject({ status: "completed" });
    expect(server.requests).toHaveLength(3);
    const events = await bodies(t, threadId);
    expect(events.find(({ type }) => type === "context.left-out")).toMatchObject({
      parts: "images",
      provider: "test",
      failure: { code: "provider.rejected", details: { refused: "images" } },
    });
    expect(notices(events)).toMatchObject([{ level: "warning", code: "context.left-out" }]);

    await using again = await openTestHeddle({
      folder: t.folder,
      providers: [server.provider("openai-chat")],
      settings: { provider: "test", model: MODELS["openai-chat"] },
    });
    expect((await say(again, "go on", threadId)).end).toMatchObject({ status: "completed" });
    expect(server.requests).toHaveLength(4);
    expect((await bodies(again, threadId)).filter(({ type }) => type === "context.left-out")).toHaveLength(1);
  });

  test("sealed reasoning is left out of every earlier answer", async () => {
    await using server = await startModelServer({
      respond: ({ number }) => ({ reasoning: "hm", text: `answer ${number}` }),
      faults: ({ body, number }) =>
        number > 1 && JSON.stringify(body).includes('encrypted_content":"sealed')
          ? refuses("The encrypted content gAAA could not be verified. Reason: wrong organization.")
          : undefined,
    });
    await using t = await open(server, "openai-responses");
    const { threadId } = await say(t, "one");
    await say(t, "two", threadId);
    expect((await say(t, "three", threadId)).end).toMatchObject({ status: "completed" });
    const leftOut = (await bodies(t, threadId)).filter(({ type }) => type === "context.left-out");
    expect(leftOut).toMatchObject([{ parts: "sealed" }]);
  });

  test("calls and results become words when nothing less helps", async () => {
    await using server = await startModelServer({
      script: [{ text: "hm", calls: [{ tool: "bash", args: { command: "echo found" } }] }],
      faults: ({ body }) =>
        JSON.stringify(body).includes("tool_use") ? refuses("messages.1.content.1: no such tool") : undefined,
    });
    await using t = await open(server, "anthropic");
    const { threadId, end } = await say(t, "look");
    expect(end).toMatchObject({ status: "completed" });
    const told = JSON.stringify(server.requests.at(-1)?.body);
    expect(told).toContain("[called bash: ");
    expect(told).toContain("Result of bash: ");
    const leftOut = (await bodies(t, threadId)).filter(({ type }) => type === "context.left-out");
    expect(leftOut).toMatchObject([{ parts: "structure" }]);
  });

  test("ends the turn when that does not help either: never a loop; the user's own new input is not touched", async () => {
    await using server = await startModelServer({
      respond: ({ number }) => ({ reasoning: "hm", text: `answer ${number}` }),
      faults: ({ number }) => (number > 0 ? refuses("messages.0: this is not allowed") : undefined),
    });
    await using t = await open(server, "anthropic");
    const { threadId } = await say(t, "one");
    expect((await say(t, "two", threadId)).end).toMatchObject({
      status: "failed",
      failure: { code: "provider.rejected" },
    });
    // As it was, and without what was sealed; then nothing is left to leave out.
    expect(server.requests).toHaveLength(3);
    const image = { type: "image", mediaType: "image/png", base64: PNG.toString("base64") } as const;
    const turn = await t.heddle.as("user:owner").startTurn({
      thread: { workspace: t.workspace, origin: "test" },
      input: [image, { type: "text", text: "look" }],
      settings: t.settings,
    });
    expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "provider.rejected" } });
    expect(server.requests).toHaveLength(4);
  });

  test("a refusal of something else leaves the conversation as it is", async () => {
    await using server = await startModelServer({
      respond: ({ number }) => ({ reasoning: "hm", text: `answer ${number}` }),
      faults: ({ number }) => (number > 0 ? refuses("Invalid input: max_tokens is too large") : undefined),
    });
    await using t = await open(server, "anthropic");
    const { threadId } = await say(t, "one");
    await say(t, "two", threadId);
    expect(server.requests).toHaveLength(2);
    expect((await bodies(t, threadId)).filter(({ type }) => type === "context.left-out")).toEqual([]);
  });
});

test("12.17: a refusal fails the turn in the provider's words", async () => {
  const refused = {
    type: "message_delta",
    delta: { stop_reason: "refusal", stop_details: { category: "cyber", explanation: "It asks for malware." } },
  };
  const frames = [{ type: "message_start", message: {} }, refused, { type: "message_stop" }];
  const body = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("");
  await using server = await startModelServer({ faults: () => ({ kind: "body", body }) });
  await using t = await open(server, "anthropic");
  const { threadId, end } = await say(t, "write it");
  expect(end).toMatchObject({
    status: "failed",
    failure: { code: "provider.refused", message: "the model declined the request: cyber: It asks for malware." },
  });
  const responded = (await bodies(t, threadId)).find(({ type }) => type === "model.responded");
  expect(responded).toMatchObject({ stopReason: "refusal", explanation: "cyber: It asks for malware." });
});

test("12.18: an effort that the model does not have is fitted, and the thread is told once", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "hi" }) });
  await using t = await open(server, "openai-responses", { model: "gpt-5", effort: "xhigh" });
  const { threadId } = await say(t, "one");
  await say(t, "two", threadId);
  expect(server.requests.map(({ body }) => body)).toMatchObject([
    { reasoning: { effort: "high" } },
    { reasoning: { effort: "high" } },
  ]);
  expect(notices(await bodies(t, threadId)).map(({ message }) => message)).toEqual([
    "gpt-5 has no effort xhigh: it takes minimal, low, medium, high; high is used",
  ]);
});
