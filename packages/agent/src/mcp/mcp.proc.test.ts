import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { fixture, mcpCall, mcpItems, notices, play, processesWith } from "../../test/mcp-play.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

test("a tool of a server is offered, called inside the sandbox, and its answer goes back to the model", async () => {
  await using model = await startModelServer({
    script: [{ calls: [mcpCall("echo", { text: "hello" })] }, { text: "done" }],
  });
  await using t = await openTestHeddle({
    providers: [model.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
    mcpServers: [fixture()],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(bodies)).toEqual([
    {
      type: "mcpToolCall",
      id: expect.any(String),
      callId: expect.any(String),
      server: "fix",
      tool: "echo",
      arguments: { text: "hello" },
      status: "completed",
      result: { content: [{ type: "text", text: "hello" }], structuredContent: { said: "hello" } },
      durationMs: expect.any(Number),
    },
  ]);
  const order = bodies.map(({ type }) => type);
  expect(order.indexOf("mcp.listed")).toBeLessThan(order.indexOf("model.requested"));
  expect(order.indexOf("tool.intended")).toBeLessThan(order.indexOf("tool.settled"));
  expect(bodies.find(({ type }) => type === "mcp.listed")).toMatchObject({
    server: "fix",
    transport: "stdio",
    hasNetwork: false,
    protocolVersion: "2025-11-25",
    changed: [],
  });
  const offered = JSON.parse(JSON.stringify(model.requests[0]?.body)) as {
    tools: { name: string; parameters: unknown }[];
  };
  expect(offered.tools.map(({ name }) => name).filter((name) => name.startsWith("mcp__"))).toEqual([
    "mcp__fix__echo",
    "mcp__fix__write",
    "mcp__fix__dial",
    "mcp__fix__look",
    "mcp__fix__misbehave",
  ]);
  expect(offered.tools.find(({ name }) => name === "mcp__fix__echo")?.parameters).toEqual({
    type: "object",
    properties: { text: { anyOf: [{ type: "string", minLength: 1 }, { type: "null" }] } },
    additionalProperties: false,
  });
  expect(JSON.stringify(model.requests[1]?.body)).toContain("hello");
});

test("S6: a server writes in the workspace, nowhere else, and reaches no network", async () => {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("write", { path: "inside.txt" })] },
      { calls: [mcpCall("write", { path: join(import.meta.dirname, "heddle-was-here") })] },
      { calls: [mcpCall("dial", { port })] },
      { text: "done" },
    ],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  listener.close();
  expect(mcpItems(bodies).map(({ status, error }) => [status, error?.includes("EROFS")])).toEqual([
    ["completed", undefined],
    ["failed", true],
    ["completed", undefined],
  ]);
  expect(JSON.stringify(mcpItems(bodies)[2]?.result)).toContain("refused");
  expect(await readFile(join(t.workspace, "inside.txt"), "utf8")).toBe("written");
  expect(existsSync(join(import.meta.dirname, "heddle-was-here"))).toBe(false);
});

test("a server with a network of its own reaches it, and that is recorded; its commands still do not", async () => {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await using t = await openTestHeddle({
    script: [
      {
        calls: [
          mcpCall("dial", { port }),
          { tool: "exec_command", args: { cmd: `exec 3<>/dev/tcp/127.0.0.1/${port} && echo through` } },
        ],
      },
      { text: "done" },
    ],
    mcpServers: [fixture("good", { network: true })],
  });
  const { bodies } = await play(t);
  listener.close();
  expect(bodies.find(({ type }) => type === "mcp.listed")).toMatchObject({ hasNetwork: true });
  expect(JSON.stringify(mcpItems(bodies)[0]?.result)).toContain("connected");
  const command = bodies.find((body) => body.type === "item.completed" && body.item.type === "commandExecution");
  expect(command).toMatchObject({ item: { status: "failed", exitCode: 1 } });
});

test("a server gets the allow-listed environment and exactly the variables of its configuration", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("look", {})] }, { text: "done" }],
    env: { OPENAI_API_KEY: "sk-of-heddle-itself", LANG: "C" },
    mcpServers: [fixture("good", { env: { WIKI_TOKEN: "wiki-token-0123456789", WIKI_URL: "http://wiki.test" } })],
  });
  const { bodies } = await play(t);
  const seen = JSON.stringify(mcpItems(bodies)[0]?.result);
  expect(seen).toContain("http://wiki.test");
  expect(seen).not.toContain("sk-of-heddle-itself");
  // It has the token, and the record has not.
  expect(seen).toContain("WIKI_TOKEN");
  expect(JSON.stringify(bodies)).not.toContain("wiki-token-0123456789");
});

test("nothing of a server is left when its turn is over", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("look", {})] }, { text: "done" }],
    mcpServers: [fixture("good", { env: { MCP_MARK: "heddle-mcp-leftover" } })],
  });
  await play(t);
  expect(await processesWith("heddle-mcp-leftover")).toEqual([]);
});

test("a server that cannot start is told with its last words, and the turn goes on without it", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "without it" }],
    mcpServers: [fixture("cannot-start"), { name: "gone", command: "/no/such/program" }],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  const said = notices(bodies);
  expect(said.map(({ level, code }) => [level, code])).toEqual([
    ["error", "mcp.failed"],
    ["error", "mcp.failed"],
  ]);
  const text = said.map(({ message }) => message).join("\n");
  expect(text).toContain(
    "the MCP server fix failed: the server exited with code 3; it had written: \\x1b[31mno such database",
  );
  expect(text).toContain("the MCP server gone failed");
  expect(text).toContain("/no/such/program");
});

test("a server that never answers costs its start-up time and nothing else, also beside one that works", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("echo", { text: "here" })] }, { text: "done" }],
    mcpServers: [fixture("silent", { name: "mute", startupTimeoutMs: 700 }), fixture()],
  });
  const startedAt = performance.now();
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(performance.now() - startedAt).toBeLessThan(8000);
  expect(notices(bodies).map(({ message }) => message)).toEqual([
    expect.stringContaining("the MCP server mute failed: the server did not start in 700 ms"),
  ]);
  expect(mcpItems(bodies).map(({ status: itemStatus }) => itemStatus)).toEqual(["completed"]);
});

test("a required server that cannot start fails the turn before the model is asked", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "never said" }],
    mcpServers: [fixture("cannot-start", { required: true })],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("failed");
  expect(bodies.at(-1)).toMatchObject({ type: "turn.completed", failure: { code: "mcp.failed" } });
  expect(bodies.some(({ type }) => type === "model.requested")).toBe(false);
});

test("a server that ends on a question it does not know is started again and greeted the old way", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("echo", { text: "old" })] }, { text: "done" }],
    mcpServers: [fixture("dies-of-probe")],
  });
  const { bodies } = await play(t);
  expect(mcpItems(bodies)[0]).toMatchObject({ status: "completed" });
  expect(notices(bodies)).toEqual([]);
});

test("text a server prints between its messages does no harm", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("echo", { text: "still" })] }, { text: "done" }],
    mcpServers: [fixture("talks")],
  });
  const { bodies } = await play(t);
  expect(mcpItems(bodies)[0]).toMatchObject({ status: "completed" });
});

test("a server that dies in a call fails that call, and the next call finds it started again", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "die" })] },
      { calls: [mcpCall("echo", { text: "back" })] },
      { text: "done" },
    ],
    mcpServers: [fixture()],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(bodies).map((item) => [item.status, item.error])).toEqual([
    ["failed", "the server exited with code 9; it had written: out of memory"],
    ["completed", undefined],
  ]);
  expect(notices(bodies).map(({ code }) => code)).toEqual(["mcp.failed"]);
});

test("a server that keeps dying is given up after a bounded number of starts", async () => {
  const die = { calls: [mcpCall("misbehave", { how: "die" })] };
  await using t = await openTestHeddle({
    script: [die, die, die, die, die, die, { text: "done" }],
    mcpServers: [fixture()],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  const errors = bodies.flatMap((body) => (body.type === "tool.settled" ? [body.failure?.code] : []));
  // Five lives; then the tool no longer exists.
  expect(errors).toEqual(["tool.failed", "tool.failed", "tool.failed", "tool.failed", "tool.failed", "tool.unknown"]);
}, 60_000);

test("an answer of 50 MB fails its call and the server stays usable", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "huge" })] },
      { calls: [mcpCall("echo", { text: "after" })] },
      { text: "done" },
    ],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  expect(mcpItems(bodies).map((item) => [item.status, item.error?.includes("too large: 524")])).toEqual([
    ["failed", true],
    ["completed", undefined],
  ]);
  expect(notices(bodies)).toEqual([]);
}, 60_000);

test("a long answer is cut in the middle with a mark", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("misbehave", { how: "long" })] }, { text: "done" }],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  const settled = bodies.find((body) => body.type === "tool.settled");
  const text = JSON.stringify(settled);
  expect(text.length).toBeLessThan(40_000);
  expect(text).toMatch(/begin.*bytes left out.*end/);
});

test("a server that closes its output but lives costs the limit of one call and is then started again", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "close" })] },
      { calls: [mcpCall("echo", { text: "again" })] },
      { text: "done" },
    ],
    mcpServers: [fixture("good", { toolTimeoutMs: 500 })],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(bodies).map((item) => item.status)).toEqual(["failed", "completed"]);
  expect(notices(bodies).map(({ message }) => message)).toEqual([
    expect.stringContaining("the server did not respond"),
  ]);
});

test("chatter between the answers is no harm", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("misbehave", { how: "chatter" })] }, { text: "done" }],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  expect(mcpItems(bodies)[0]).toMatchObject({ status: "completed" });
});

test("a server that floods Heddle with notifications is ended, and the turn goes on without it", async () => {
  await using t = await openTestHeddle({
    // The call ends when the server has answered or is gone; either way the flood has been met by then.
    script: [{ calls: [mcpCall("echo", { text: "here" })] }, { text: "dry" }],
    mcpServers: [fixture("floods")],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(notices(bodies).map(({ message }) => message)).toContain(
    "the MCP server fix failed: the server floods Heddle with notifications",
  );
});

test("a call that does not answer ends at its limit, and progress moves the limit", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "progress" })] },
      { calls: [mcpCall("misbehave", { how: "hang" })] },
      // Answered after what was sent before it.
      { calls: [mcpCall("echo", { text: "here" })] },
      { text: "done" },
    ],
    mcpServers: [fixture("good", { toolTimeoutMs: 400 })],
  });
  const { bodies } = await play(t);
  expect(mcpItems(bodies).map((item) => item.status)).toEqual(["completed", "failed", "completed"]);
  expect(mcpItems(bodies)[1]?.error).toContain("timed out");
  expect(await readFile(join(t.workspace, "cancelled.txt"), "utf8")).toContain("requestId");
});

test("stopping the turn stops a hanging call at once", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("misbehave", { how: "hang" })] }, { text: "never" }],
    mcpServers: [fixture()],
  });
  const turn = await t.start("go");
  await t.next(turn.threadId, "tool.intended");
  const stoppedAt = performance.now();
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  const { body } = await turn.done;
  expect(body.status).toBe("interrupted");
  expect(performance.now() - stoppedAt).toBeLessThan(5000);
  const bodies = (await t.events(turn.threadId)).map((event) => event.body);
  expect(mcpItems(bodies)[0]).toMatchObject({ status: "interrupted" });
});

test("images of an answer reach the model as images; a tool's own error is an error", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "image" })] },
      { calls: [mcpCall("misbehave", { how: "refuse" })] },
      { text: "done" },
    ],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  const settled = bodies.flatMap((body) => (body.type === "tool.settled" ? [body] : []));
  expect(settled[0]?.output).toEqual([{ type: "image", mediaType: "image/png", base64: "iVBORw0KGgo=" }]);
  expect(settled[1]).toMatchObject({ outcome: "failed", failure: { message: "no, I will not" } });
});

test("a server may ask for roots and gets the workspace; other questions are refused in words", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "roots" })] },
      { calls: [mcpCall("misbehave", { how: "elicit" })] },
      { text: "done" },
    ],
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  const [roots, refusal] = mcpItems(bodies).map(({ result }) => JSON.stringify(result));
  expect(roots).toContain(`file://${t.workspace}`);
  expect(refusal).toContain("Heddle does not support elicitation/create");
});
