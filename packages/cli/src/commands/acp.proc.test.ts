/** `heddle acp` through the real program: an editor on its standard streams, a scripted model behind it. */
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { allow, longSleep, openAcp, serveAcp, textPrompt } from "../../test/acp-client.ts";
import { at, command, list, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

const UNTRUSTED = ["-c", "approval_policy=untrusted", "--envelope", "edit"];

test("the handshake says what there is, and only version 1 is spoken", async () => {
  await using world = await openWorld();
  await using served = serveAcp([], { world });
  const { client } = served;
  expect((await client.ask("session/new", { cwd: world.workspace, mcpServers: [] })).error).toMatchObject({
    code: -32_600,
    message: expect.stringContaining("initialize"),
  });
  const hello = await client.call("initialize", { protocolVersion: 7, clientInfo: { name: "probe", version: "1" } });
  expect(hello).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: "heddle" },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {} },
    },
    authMethods: [],
  });
  client.end();
  expect(await served.running.ended).toMatchObject({ code: 0, stderr: "" });
  expect(client.malformed).toEqual([]);
});

test("a prompt streams thought, text and a command with its output, and answers with its end", async () => {
  await using opened = await openAcp({
    script: [
      { reasoning: "Thinking hard about it", calls: [command("echo one; exit 3")] },
      { text: "All done, both lines printed." },
    ],
    deltaChars: 8,
  });
  const { client, sessionId, world } = opened;
  const answer = await client.call("session/prompt", { sessionId, prompt: textPrompt("Do it") });
  expect(answer).toMatchObject({ stopReason: "end_turn" });
  expect(client.said("agent_thought_chunk")).toBe("Thinking hard about it");
  expect(client.said()).toBe("All done, both lines printed.");
  expect(client.updates("agent_message_chunk").length).toBeGreaterThan(1);
  // The editor shows its own prompt already.
  expect(client.updates("user_message_chunk")).toEqual([]);
  const [begun] = client.updates("tool_call");
  expect(begun).toMatchObject({
    kind: "execute",
    title: "echo one; exit 3",
    status: "in_progress",
    rawInput: { command: "echo one; exit 3", cwd: world.workspace },
  });
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({
    toolCallId: at(begun, "toolCallId"),
    status: "failed",
    rawOutput: { exitCode: 3 },
    content: [{ type: "content", content: { type: "text", text: "```console\none\n```" } }],
  });
  expect(client.received.at(-1)?.result).toMatchObject({ stopReason: "end_turn" });
  expect(client.malformed).toEqual([]);
  client.end();
  expect(await client.running.ended).toMatchObject({ code: 0, stderr: "" });
});

test("what a session begins with: modes are envelopes, a model, an effort, and slash commands after the answer", async () => {
  await using opened = await openAcp({ script: [] }, { args: ["--envelope", "explore"] });
  const { client, sessionId } = opened;
  const begun = client.received.find((wire) => at(wire, "result.sessionId") === sessionId);
  expect(at(begun, "result.modes.currentModeId")).toBe("explore");
  const modes = list(begun, "result.modes.availableModes").map((mode) => at(mode, "id"));
  expect(modes).toEqual(expect.arrayContaining(["explore", "plan", "edit", "test", "full"]));
  const options = list(begun, "result.configOptions");
  expect(options.map((option) => [at(option, "id"), at(option, "currentValue")])).toEqual([
    ["mode", "explore"],
    ["model", "gpt-5.5"],
    ["effort", "default"],
  ]);
  const offered = await client.update("available_commands_update");
  expect(list(offered, "params.update.availableCommands").map((one) => at(one, "name"))).toEqual(
    expect.arrayContaining(["compact", "review"]),
  );
});

test("a permission that is given lets the command run; its call was shown before it was asked about", async () => {
  await using opened = await openAcp(
    { script: [{ calls: [command("touch made")] }, { text: "ok" }] },
    { args: UNTRUSTED },
  );
  const { client, sessionId, world } = opened;
  client.answer = allow("allow");
  expect(await client.call("session/prompt", { sessionId, prompt: textPrompt("go") })).toMatchObject({
    stopReason: "end_turn",
  });
  const asked = client.received.find(({ method }) => method === "session/request_permission");
  expect(asked?.params).toMatchObject({
    sessionId,
    toolCall: { kind: "execute", title: "touch made", status: "pending" },
    options: [{ kind: "allow_once" }, { kind: "allow_always" }, { kind: "reject_once" }],
  });
  const id = text(asked, "params.toolCall.toolCallId");
  const states = client
    .updates()
    .filter((one) => at(one, "toolCallId") === id)
    .map((one) => [at(one, "sessionUpdate"), at(one, "status")]);
  expect(states).toEqual([
    ["tool_call", "pending"],
    ["tool_call_update", "in_progress"],
    ["tool_call_update", "completed"],
  ]);
  await stat(path.join(world.workspace, "made"));
});

test("a permission that is rejected: the call has failed, the model goes on, nothing has happened", async () => {
  await using opened = await openAcp(
    { script: [{ calls: [command("touch made")] }, { text: "then not" }] },
    { args: UNTRUSTED },
  );
  const { client, sessionId, world } = opened;
  client.answer = allow("reject");
  expect(await client.call("session/prompt", { sessionId, prompt: textPrompt("go") })).toMatchObject({
    stopReason: "end_turn",
  });
  expect(client.said()).toBe("then not");
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
  await expect(stat(path.join(world.workspace, "made"))).rejects.toThrow();
});

test("always: it is Heddle that remembers, so the second time nobody is asked", async () => {
  const calls = [command("echo x >> made")];
  await using opened = await openAcp(
    { script: [{ calls }, { text: "1" }, { calls }, { text: "2" }] },
    { args: UNTRUSTED },
  );
  const { client, sessionId, world } = opened;
  client.answer = allow("allow_always");
  for (const words of ["one", "two"]) await client.call("session/prompt", { sessionId, prompt: textPrompt(words) });
  expect(client.received.filter(({ method }) => method === "session/request_permission")).toHaveLength(1);
  expect(await readFile(path.join(world.workspace, "made"), "utf8")).toBe("x\nx\n");
});

test("cancel in a command: the prompt is answered as cancelled, and no process is left", async () => {
  const sleep = longSleep();
  await using opened = await openAcp({ script: [{ calls: [command(sleep.cmd)] }, { text: "never" }] });
  const { client, sessionId } = opened;
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  await client.update("tool_call");
  await client.until(sleep.isRunning);
  client.note("session/cancel", { sessionId });
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "cancelled" });
  expect(sleep.isRunning()).toBe(false);
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
  client.end();
  expect((await client.running.ended).code).toBe(0);
});

test("cancel in the middle of a text: what was said stays, and the session goes on", async () => {
  await using opened = await openAcp({
    respond: () => ({ text: "some words and more" }),
    deltaChars: 5,
    faults: [{ kind: "stall", at: "after-last-delta" }],
  });
  const { client, sessionId } = opened;
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  await client.update("agent_message_chunk");
  client.note("session/cancel", { sessionId });
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "cancelled" });
  const from = client.received.length;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("again") });
  expect(client.said("agent_message_chunk", from)).toBe("some words and more");
});

test("cancel while a permission is open: the request is withdrawn, the prompt is cancelled", async () => {
  await using opened = await openAcp(
    { script: [{ calls: [command("touch made")] }, { text: "never" }] },
    { args: UNTRUSTED },
  );
  const { client, sessionId, world } = opened;
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  const asked = await client.waitFor(({ method }) => method === "session/request_permission");
  client.note("session/cancel", { sessionId });
  client.send({ jsonrpc: "2.0", id: asked.id, result: { outcome: { outcome: "cancelled" } } });
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "cancelled" });
  await expect(stat(path.join(world.workspace, "made"))).rejects.toThrow();
  // The session can go on.
  const { stdout } = await run(["threads", "show", sessionId, "--json"], { world });
  expect(stdout.match(/"type":"turn.completed"/g)).toHaveLength(1);
});

test("everything on record has an author: the owner of the home, or Heddle", async () => {
  await using opened = await openAcp({ script: [{ text: "hi" }] });
  const { client, sessionId, world } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  const { stdout } = await run(["threads", "show", sessionId, "--json"], { world });
  const authors = stdout.split("\n").flatMap((line) => (line === "" ? [] : [String(at(JSON.parse(line), "author"))]));
  expect(new Set(authors.filter((author) => author.startsWith("user")))).toEqual(new Set([authors[0]]));
  expect(authors[0]).toMatch(/^user:/);
});
