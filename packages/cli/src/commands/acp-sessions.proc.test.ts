/** Sessions of an editor: opened again, forked, and what is left when somebody goes away in the middle. */
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { startModelServer } from "@heddle/models/testing";
import type { StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { allow, longSleep, newSession, openAcp, serveAcp, textPrompt } from "../../test/acp-client.ts";
import { at, command, KEY, list, pointAt, text } from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

const UNTRUSTED = ["-c", "approval_policy=untrusted", "--envelope", "edit"];
const MAKE = "echo made >> made.txt";

async function eventsOf(world: World, threadId: string): Promise<readonly StoredEvent[]> {
  await using journal = await openJournal({ home: world.home });
  expect((await journal.verify(threadId)).damage).toEqual([]);
  return await journal.read({ stream: threadId, after: 0 });
}

function count(events: readonly StoredEvent[], type: StoredEvent["body"]["type"]): number {
  return events.filter(({ body }) => body.type === type).length;
}

test("a session is listed, loaded with its past, resumed without it, forked, closed and deleted", async () => {
  await using opened = await openAcp({
    respond: ({ number }) =>
      number === 0 ? { reasoning: "Hm", calls: [command("echo one")] } : { text: `answer ${number}` },
  });
  const { client, sessionId, world, model } = opened;
  expect(await client.call("session/list", {})).toEqual({ sessions: [] });
  await client.call("session/prompt", { sessionId, prompt: textPrompt("the first words") });
  const cwd = world.workspace;
  expect(await client.call("session/list", { cwd })).toEqual({
    sessions: [{ sessionId, cwd, title: "the first words", updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) }],
  });
  expect(await client.call("session/list", { cwd: "/elsewhere" })).toEqual({ sessions: [] });

  const from = client.received.length;
  const loaded = await client.call("session/load", { sessionId, cwd, mcpServers: [] });
  expect(loaded).toMatchObject({ modes: { currentModeId: expect.any(String) } });
  // All of it before the answer.
  const before = client.kinds(from).slice(0, client.kinds(from).indexOf("answer"));
  expect(before).toEqual([
    "user_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "agent_message_chunk",
  ]);
  expect(client.said("user_message_chunk", from)).toBe("the first words");
  expect(client.said("agent_message_chunk", from)).toBe("answer 1");
  expect(client.updates("tool_call_update", from)).toMatchObject([{ status: "completed", rawOutput: { exitCode: 0 } }]);

  await client.update("available_commands_update", from);
  const resumedFrom = client.received.length;
  await client.call("session/resume", { sessionId, cwd });
  await client.update("available_commands_update", resumedFrom);
  expect(client.kinds(resumedFrom)).toEqual(["answer", "available_commands_update"]);
  await client.call("session/prompt", { sessionId, prompt: textPrompt("more") });
  expect(model.requests.at(-1)?.source).toContain("the first words");

  expect(await client.call("session/set_title", { sessionId, title: " Named here " })).toEqual({ title: "Named here" });
  expect(list(await client.call("session/list", {}), "sessions")).toMatchObject([{ title: "Named here" }]);
  expect((await client.ask("session/set_title", { sessionId, title: " " })).error).toMatchObject({ code: -32_602 });

  const forkId = text(await client.call("session/fork", { sessionId, cwd }), "sessionId");
  await client.call("session/prompt", { sessionId: forkId, prompt: textPrompt("in the fork") });
  expect(model.requests.at(-1)?.source).toContain("the first words");
  expect(list(await client.call("session/list", {}), "sessions").map((one) => at(one, "sessionId"))).toEqual([
    forkId,
    sessionId,
  ]);
  expect(await client.call("session/close", { sessionId: forkId })).toEqual({});
  expect((await client.ask("session/prompt", { sessionId: forkId, prompt: textPrompt("x") })).error).toMatchObject({
    code: -32_002,
  });
  expect(await client.call("session/delete", { sessionId: forkId })).toEqual({});
  expect((await client.ask("session/load", { sessionId: forkId, cwd, mcpServers: [] })).error).toMatchObject({
    code: -32_002,
    data: { code: "thread.not-found" },
  });
});

test("a thread that another door began is loaded like one of the editor's own", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "from exec" }, { text: "from the editor" }] });
  await pointAt(world, model.url);
  expect((await run(["exec", "hello"], { world, env: KEY })).code).toBe(0);
  await using served = serveAcp([], { world });
  const { client } = served;
  await client.initialize();
  const sessionId = text(await client.call("session/list", {}), "sessions.0.sessionId");
  await client.call("session/load", { sessionId, cwd: world.workspace, mcpServers: [] });
  expect([client.said("user_message_chunk"), client.said()]).toEqual(["hello", "from exec"]);
  const from = client.received.length;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go on") });
  expect(client.said("agent_message_chunk", from)).toBe("from the editor");
});

test.each(["SIGKILL", "SIGTERM", "EOF"] as const)(
  "an editor that goes away (%s) while it is asked: the next one is asked again, and the same turn ends once",
  async (how) => {
    await using world = await openWorld();
    await using model = await startModelServer({ script: [{ calls: [command(MAKE)] }, { text: "ok" }] });
    await pointAt(world, model.url);
    let sessionId: string;
    {
      await using served = serveAcp(UNTRUSTED, { world });
      const { client, running } = served;
      await client.initialize();
      sessionId = await newSession(client, world.workspace);
      client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
      await client.waitFor(({ method }) => method === "session/request_permission");
      if (how === "EOF") client.end();
      else running.child.kill(how);
      const { code } = await running.ended;
      if (how !== "SIGKILL") expect(code).toBe(how === "EOF" ? 0 : 143);
    }
    await using served = serveAcp([], { world });
    const { client } = served;
    client.answer = allow("allow");
    await client.initialize();
    await client.call("session/load", { sessionId, cwd: world.workspace, mcpServers: [] });
    await client.waitFor((wire) => at(wire, "params.update.content.text") === "ok");
    await client.untilRecorded(sessionId, "turn.completed", world);
    expect(await readFile(path.join(world.workspace, "made.txt"), "utf8")).toBe("made\n");
    const events = await eventsOf(world, sessionId);
    expect([
      count(events, "turn.completed"),
      count(events, "approval.requested"),
      count(events, "approval.resolved"),
    ]).toEqual([1, 1, 1]);
  },
);

test("kill -9 in a command, then load: one end, the command is not run again, and the session goes on", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ number }) => (number === 0 ? { calls: [command(`${MAKE}; exec sleep 30`)] } : { text: "after" }),
  });
  await pointAt(world, model.url);
  let sessionId: string;
  {
    await using served = serveAcp(["--envelope", "edit"], { world });
    const { client, running } = served;
    await client.initialize();
    sessionId = await newSession(client, world.workspace);
    client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
    await client.update("tool_call");
    await stat(path.join(world.workspace, "made.txt")).catch(() => undefined);
    running.child.kill("SIGKILL");
    await running.ended;
  }
  await using served = serveAcp([], { world });
  const { client } = served;
  await client.initialize();
  await client.call("session/load", { sessionId, cwd: world.workspace, mcpServers: [] });
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
  expect(await client.call("session/prompt", { sessionId, prompt: textPrompt("and now") })).toMatchObject({
    stopReason: "end_turn",
  });
  const events = await eventsOf(world, sessionId);
  expect([count(events, "turn.admitted"), count(events, "turn.completed")]).toEqual([2, 2]);
});

test.each(["EOF", "SIGTERM", "SIGKILL"] as const)(
  "an editor that goes away (%s) while a command runs: one end on record, and no process is left",
  async (how) => {
    const sleep = longSleep();
    await using opened = await openAcp({
      respond: ({ source }) => (source.includes("again") ? { text: "ok" } : { calls: [command(sleep.cmd)] }),
    });
    const { client, sessionId, world } = opened;
    client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
    await client.until(sleep.isRunning);
    if (how === "EOF") client.end();
    else client.running.child.kill(how);
    const { code } = await client.running.ended;
    expect(code).toBe({ EOF: 0, SIGTERM: 143, SIGKILL: null }[how]);
    await client.until(() => !sleep.isRunning());
    // The next process closes what the dead one left open.
    if (how === "SIGKILL") await run(["exec", "again"], { world, env: KEY });
    const ends = (await eventsOf(world, sessionId)).flatMap(({ body }) =>
      body.type === "turn.completed" ? [body] : [],
    );
    expect(ends).toHaveLength(1);
    expect(ends[0]?.failure?.code).toBe(how === "SIGKILL" ? "turn.abandoned" : "turn.interrupted");
  },
);

/** Says what it is called with, and with which variable it was started. */
const SERVER = `
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    return say({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "own", version: "3" } } });
  }
  if (method === "tools/list") {
    return say({ id, result: { tools: [{ name: "echo", description: "says it", inputSchema: { type: "object", properties: {} } }] } });
  }
  if (method === "tools/call") {
    return say({ id, result: { content: [{ type: "text", text: "echo " + process.env.BROUGHT.length }] } });
  }
  say({ id, error: { code: -32601, message: "Method not found" } });
});
`;

test("MCP servers of the editor are for its session; what their variables hold is on no record", async () => {
  await using world = await openWorld();
  const file = await world.file("programs/server.mjs", SERVER);
  await using model = await startModelServer({
    respond: ({ number }) => (number === 0 ? { calls: [{ tool: "mcp__own__echo", args: {} }] } : { text: "ok" }),
  });
  await pointAt(world, model.url);
  await using served = serveAcp([], { world });
  const { client } = served;
  await client.initialize();
  const own = {
    name: "own",
    command: process.execPath,
    args: [file],
    env: [{ name: "BROUGHT", value: "canary-of-editor" }],
  };
  const sessionId = await newSession(client, world.workspace, { mcpServers: [own] });
  client.answer = allow("allow");
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({
    title: "own: echo",
    status: "completed",
    content: [{ type: "content", content: { type: "text", text: "echo 16" } }],
  });
  expect(JSON.stringify(await eventsOf(world, sessionId))).not.toContain("canary-of-editor");
  const sse = { type: "sse", name: "old", url: "http://127.0.0.1:9/sse", headers: [] };
  expect((await client.ask("session/new", { cwd: world.workspace, mcpServers: [sse] })).error).toMatchObject({
    code: -32_602,
    message: expect.stringContaining("SSE"),
  });
});
