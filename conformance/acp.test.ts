/**
 * `@agentclientprotocol/codex-acp`, unchanged, with CODEX_PATH: what an editor sees of it, over Codex first and then over
 * Heddle. Where the two differ, the test says so by name.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { MARK, openAcpWorld, type AcpMessage, type Adapter } from "./acp-client.ts";
import { at } from "./app-server-client.ts";
import { ECHO_CONFIG, ECHO_SERVER } from "./app-server/scenarios/mcp.ts";
import { command, patch, say } from "./exec-case.ts";
import { codex, heddle } from "./program.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

interface Session {
  readonly sessionId: string;
  prompt(words: string): Promise<unknown>;
}

async function newSession(
  adapter: Adapter,
  cwd: string,
  mode?: string,
  mcpServers: readonly object[] = [],
): Promise<Session> {
  const sessionId = String(at(await adapter.ask("session/new", { cwd, mcpServers }), "sessionId"));
  if (mode !== undefined) await adapter.ask("session/set_mode", { sessionId, modeId: mode });
  return { sessionId, prompt: (words) => prompt(adapter, sessionId, words) };
}

function prompt(adapter: Adapter, sessionId: string, words: string): Promise<unknown> {
  return adapter.ask("session/prompt", { sessionId, prompt: [{ type: "text", text: `${MARK} ${words}` }] });
}

function updates(received: readonly AcpMessage[], kinds: RegExp): readonly unknown[] {
  return received
    .filter(({ method }) => method === "session/update")
    .map(({ params }) => at(params, "update"))
    .filter((update) => kinds.test(String(at(update, "sessionUpdate"))));
}

/** The states a tool call went through. */
function states(received: readonly AcpMessage[]): readonly unknown[] {
  return updates(received, /^tool_call/)
    .map((update) => at(update, "status"))
    .filter((status) => status !== undefined);
}

function said(received: readonly AcpMessage[], kind: RegExp): string {
  return updates(received, kind)
    .map((update) => String(at(update, "content.text")))
    .join("");
}

describe.each([codex(), heddle])("@agentclientprotocol/codex-acp over $name", (program) => {
  const isHeddle = program.name === "heddle";

  test("a session, a prompt, a tool call and an answer", async () => {
    const run = command("echo made > made.txt; sleep 0.4; echo one");
    await using world = await openAcpWorld(program, [{ reasoning: "Thinking hard", ...run }, say("All done.")]);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace);
    const result = await session.prompt("do it");
    expect(result).toMatchObject({
      stopReason: "end_turn",
      usage: { totalTokens: 240, inputTokens: 120, cachedReadTokens: 80, outputTokens: 40, thoughtTokens: 10 },
    });
    expect(states(adapter.received)).toEqual(["in_progress", "completed"]);
    expect(updates(adapter.received, /^tool_call$/)).toMatchObject([
      { kind: "execute", title: "echo made > made.txt; sleep 0.4; echo one" },
    ]);
    expect(said(adapter.received, /^agent_message_chunk$/)).toBe("All done.");
    // A new part of a summary begins with an empty line.
    expect(said(adapter.received, /^agent_thought_chunk$/).trim()).toBe("Thinking hard");
    expect(await readFile(path.join(world.fixture.workspace, "made.txt"), "utf8")).toBe("made\n");
  });

  test("a patch is shown as a change of a file", async () => {
    await using world = await openAcpWorld(program, [patch("*** Add File: new.txt", "+hello"), say("Patched.")]);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace);
    expect(await session.prompt("patch it")).toMatchObject({ stopReason: "end_turn" });
    expect(updates(adapter.received, /^tool_call$/)).toMatchObject([
      {
        kind: "edit",
        content: [
          { type: "diff", path: path.join(world.fixture.workspace, "new.txt"), oldText: null, newText: "hello\n" },
        ],
      },
    ]);
    expect(states(adapter.received).at(-1)).toBe("completed");
  });

  test("a patch in a read-only session asks for permission", async () => {
    await using world = await openAcpWorld(program, [patch("*** Add File: new.txt", "+hello"), say("Tried.")]);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace, "read-only");
    const done = session.prompt("patch it");
    const question = await adapter.waitFor(({ method }) => method === "session/request_permission");
    const allow = [at(question.params, "options")].flat().find((option) => at(option, "kind") === "allow_once");
    adapter.answer(question, { outcome: { outcome: "selected", optionId: at(allow, "optionId") } });
    expect(await done).toMatchObject({ stopReason: "end_turn" });
    expect(states(adapter.received).at(-1)).toBe("completed");
    expect(said(adapter.received, /^agent_message_chunk$/)).toBe("Tried.");
  });

  test.each([
    ["allow_once", "completed"],
    ["reject_once", "failed"],
  ])("a tool of an MCP server asks for permission; %s", async (kind, end) => {
    const call = { calls: [{ tool: "mcp__echo__echo", args: { text: "hi" } }] };
    const furniture = { config: ECHO_CONFIG, files: { "echo.mjs": ECHO_SERVER } };
    await using world = await openAcpWorld(program, [call, say("Asked.")], furniture);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace, "workspace-write");
    const done = session.prompt("say it");
    const question = await adapter.waitFor(({ method }) => method === "session/request_permission");
    const options = [at(question.params, "options")].flat();
    const chosen = options.find((option) => at(option, "kind") === kind);
    expect(chosen, JSON.stringify(options)).toBeDefined();
    adapter.answer(question, { outcome: { outcome: "selected", optionId: at(chosen, "optionId") } });
    expect(await done).toMatchObject({ stopReason: "end_turn" });
    expect(states(adapter.received).at(-1)).toBe(end);
    expect(said(adapter.received, /^agent_message_chunk$/)).toContain("Asked.");
  });

  test("an MCP server that the editor brings is started and called", async () => {
    const call = { calls: [{ tool: "mcp__brought__echo", args: { text: "hi" } }] };
    await using world = await openAcpWorld(program, [call, say("Called.")], { files: { "echo.mjs": ECHO_SERVER } });
    await using adapter = await world.open();
    const { workspace: cwd } = world.fixture;
    const server = path.join(path.dirname(cwd), "echo.mjs");
    const brought = { name: "brought", command: process.execPath, args: [server], env: [] };
    const sessionId = String(at(await adapter.ask("session/new", { cwd, mcpServers: [brought] }), "sessionId"));
    await adapter.ask("session/set_mode", { sessionId, modeId: "workspace-write" });
    const done = prompt(adapter, sessionId, "say it");
    // Codex asks about a tool that does not call itself read-only; here that is the server's default_tools_approval_mode.
    if (program.name === "codex") {
      const question = await adapter.waitFor(({ method }) => method === "session/request_permission");
      adapter.answer(question, { outcome: { outcome: "selected", optionId: "allow_once" } });
    }
    expect(await done).toMatchObject({ stopReason: "end_turn" });
    expect(states(adapter.received).at(-1)).toBe("completed");
    expect(said(adapter.received, /^agent_message_chunk$/)).toContain("Called.");
  });

  test("an MCP server that the editor brings is started and called, in any script", async () => {
    const call = { calls: [{ tool: "mcp__echo__echo", args: { text: "你好" } }] };
    await using world = await openAcpWorld(program, [call, say("Сделано。")], { files: { "echo.mjs": ECHO_SERVER } });
    await using adapter = await world.open();
    const { root, workspace } = world.fixture;
    const echo = { name: "echo", command: process.execPath, args: [path.join(root, "echo.mjs")], env: [] };
    const session = await newSession(adapter, workspace, "workspace-write", [echo]);
    const done = session.prompt("скажи 漢字");
    // Here the server runs inside the sandbox of the session, and needs no permission.
    if (!isHeddle) {
      const question = await adapter.waitFor(({ method }) => method === "session/request_permission");
      const allow = [at(question.params, "options")].flat().find((option) => at(option, "kind") === "allow_once");
      adapter.answer(question, { outcome: { outcome: "selected", optionId: at(allow, "optionId") } });
    }
    expect(await done).toMatchObject({ stopReason: "end_turn" });
    expect(JSON.stringify(updates(adapter.received, /^tool_call/))).toContain("你好");
    expect(said(adapter.received, /^agent_message_chunk$/)).toContain("Сделано。");
  });

  test("an image goes with a prompt", async () => {
    await using world = await openAcpWorld(program, [say("Seen.")]);
    await using adapter = await world.open();
    const { sessionId } = await newSession(adapter, world.fixture.workspace);
    const image = { type: "image", mimeType: "image/png", data: PIXEL };
    const prompted = [{ type: "text", text: `${MARK} look` }, image];
    expect(await adapter.ask("session/prompt", { sessionId, prompt: prompted })).toMatchObject({
      stopReason: "end_turn",
    });
    const asked = world.requests.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes("input_image"));
    expect(asked.some((body) => body.includes(PIXEL))).toBe(true);
  });

  test("a prompt is cancelled while its command runs", async () => {
    await using world = await openAcpWorld(program, [command("sleep 20"), say("Never.")]);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace);
    const done = session.prompt("do it");
    await adapter.waitFor(({ params }) => at(params, "update.sessionUpdate") === "tool_call");
    adapter.notify("session/cancel", { sessionId: session.sessionId });
    expect(await done).toMatchObject({ stopReason: "cancelled" });
  });

  test("another adapter loads the session, shows it, and goes on", async () => {
    await using world = await openAcpWorld(program, [say("First."), say("Second.")]);
    let sessionId: string;
    {
      await using first = await world.open();
      const session = await newSession(first, world.fixture.workspace);
      expect(await session.prompt("one")).toMatchObject({ stopReason: "end_turn" });
      sessionId = session.sessionId;
    }
    await using second = await world.open();
    await second.ask("session/load", { sessionId, cwd: world.fixture.workspace, mcpServers: [] });
    expect(said(second.received, /^user_message_chunk$/)).toBe(`${MARK} one`);
    // Codex adds a remark about its sandbox.
    expect(said(second.received, /^agent_message_chunk$/)).toMatch(isHeddle ? /^First\.$/ : /^First\./);
    const from = second.received.length;
    expect(await prompt(second, sessionId, "two")).toMatchObject({ stopReason: "end_turn" });
    expect(said(second.received.slice(from), /^agent_message_chunk$/)).toBe("Second.");
  });

  test("sessions are listed", async () => {
    await using world = await openAcpWorld(program, [say("First.")]);
    await using adapter = await world.open();
    const session = await newSession(adapter, world.fixture.workspace);
    await session.prompt("one");
    const listed = await adapter.ask("session/list", { cwd: world.fixture.workspace });
    expect(at(listed, "sessions")).toMatchObject([{ sessionId: session.sessionId, cwd: world.fixture.workspace }]);
  });
});
