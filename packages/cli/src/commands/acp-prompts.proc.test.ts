/** What an editor may put into a prompt, and what may go wrong with it. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { allow, newSession, openAcp, serveAcp, textPrompt } from "../../test/acp-client.ts";
import { at, command, list, text } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

/** One white pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

test("images, named files and whole files reach the model", async () => {
  await using opened = await openAcp({ script: [{ text: "seen" }] });
  const { client, sessionId, world, model } = opened;
  const file = path.join(world.workspace, "a b.ts");
  const prompt = [
    { type: "text", text: "Look at " },
    { type: "image", mimeType: "image/png", data: PIXEL },
    { type: "resource_link", uri: pathToFileURL(file).href, name: "a b.ts" },
    {
      type: "resource",
      resource: { uri: "file:///elsewhere/whole.txt", mimeType: "text/plain", text: "whole content" },
    },
  ];
  expect(await client.call("session/prompt", { sessionId, prompt })).toMatchObject({ stopReason: "end_turn" });
  const asked = model.requests[0]?.source ?? "";
  for (const words of ["Look at ", PIXEL, `@a b.ts (${file})`, "@whole.txt (/elsewhere/whole.txt)", "whole content"]) {
    expect(asked).toContain(words);
  }
  // Text of others, which the model is told so.
  expect(asked).toContain('trusted=\\"no\\"');
});

test.each([
  [[], -32_602, "empty"],
  [[{ type: "audio", data: "AA==", mimeType: "audio/wav" }], -32_602, "audio"],
  [[{ type: "image", mimeType: "image/png", data: "AAAA" }], -32_602, "not PNG"],
  [[{ type: "resource", resource: { uri: "file:///x.bin", blob: "AA==" } }], -32_602, "neither text nor an image"],
  [[{ type: "text" }], -32_602, "Invalid params"],
  [[{ type: "text", text: "x".repeat(1024 * 1024 + 1) }], -32_602, "longer than"],
])("a prompt that cannot be taken is refused with what is wrong (%#)", async (prompt, code, words) => {
  await using opened = await openAcp({ script: [{ text: "never" }] });
  const { client, sessionId, model } = opened;
  const { error } = await client.ask("session/prompt", { sessionId, prompt });
  expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
  expect(model.requests).toEqual([]);
});

test("text that is not Latin comes piece by piece as it was written, nothing between, nothing twice", async () => {
  const words = "日本語のテキスト。👩‍👩‍👧‍👦 नमस्ते दुनिया — مرحبا";
  await using opened = await openAcp({ script: [{ text: words }], deltaChars: 3 });
  const { client, sessionId } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(client.said()).toBe(words);
  expect(client.updates("agent_message_chunk").length).toBeGreaterThan(5);
  const ids = client.updates("agent_message_chunk").map((one) => at(one, "messageId"));
  expect(new Set(ids).size).toBe(1);
});

test("a patch is shown as a diff before it is asked about, and as it was applied", async () => {
  const patch = (words: string) => ({ tool: "apply_patch", args: `*** Begin Patch\n${words}*** End Patch\n` });
  await using opened = await openAcp(
    {
      script: [
        { calls: [patch("*** Add File: made.txt\n+one\n+two\n")] },
        { calls: [patch("*** Update File: made.txt\n@@\n one\n-two\n+zwei\n")] },
        { text: "ok" },
      ],
    },
    { args: ["-c", "approval_policy=untrusted", "--envelope", "edit"] },
  );
  const { client, sessionId, world } = opened;
  client.answer = allow("allow");
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  const file = path.join(world.workspace, "made.txt");
  const asked = client.received.find(({ method }) => method === "session/request_permission");
  expect(list(asked, "params.toolCall.content")).toEqual([
    { type: "diff", path: file, oldText: null, newText: "one\ntwo\n" },
    { type: "content", content: { type: "text", text: "it is not known to be read-only" } },
  ]);
  const ends = client.updates("tool_call_update").filter((one) => at(one, "status") === "completed");
  expect(ends).toMatchObject([
    { title: "Create made.txt", content: [{ type: "diff", path: file, oldText: null, newText: "one\ntwo\n" }] },
    {
      title: "Edit made.txt",
      kind: "edit",
      locations: [{ path: file }],
      content: [{ type: "diff", path: file, oldText: "one\ntwo\n", newText: "one\nzwei\n" }],
    },
  ]);
  expect(await readFile(file, "utf8")).toBe("one\nzwei\n");
});

test("a plan comes whole with every change", async () => {
  const plan = [
    { step: "look", status: "completed" },
    { step: "fix", status: "in_progress" },
  ];
  await using opened = await openAcp({
    script: [{ calls: [{ tool: "update_plan", args: { plan } }] }, { text: "ok" }],
  });
  const { client, sessionId } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(client.updates("plan")).toMatchObject([
    {
      entries: [
        { content: "look", status: "completed", priority: "medium" },
        { content: "fix", status: "in_progress", priority: "medium" },
      ],
    },
  ]);
});

test("an editor that draws terminals gets what a command prints as it prints it", async () => {
  await using opened = await openAcp(
    { script: [{ calls: [command("echo one; sleep 0.3; echo two")] }, { text: "ok" }] },
    { capabilities: { _meta: { terminal_output: true } } },
  );
  const { client, sessionId } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  const [begun] = client.updates("tool_call");
  const terminalId = text(begun, "toolCallId");
  expect(begun).toMatchObject({
    content: [{ type: "terminal", terminalId }],
    _meta: { terminal_info: { terminal_id: terminalId } },
  });
  const pieces = client
    .updates("tool_call_update")
    .flatMap((one) =>
      at(one, "_meta.terminal_output") === undefined ? [] : [text(one, "_meta.terminal_output.data")],
    );
  expect(pieces.join("")).toBe("one\ntwo\n");
  expect(pieces.length).toBeGreaterThan(1);
  expect(client.updates("tool_call_update").at(-1)).toMatchObject({
    status: "completed",
    _meta: { terminal_exit: { terminal_id: terminalId, exit_code: 0 } },
  });
});

test("slash commands: a skill is used, the conversation is compacted, an unknown one is text", async () => {
  await using opened = await openAcp({ respond: ({ number }) => ({ text: `answer ${number}` }) });
  const { client, sessionId, world, model } = opened;
  await world.file(
    "workspace/.agents/skills/tidy/SKILL.md",
    "---\nname: tidy\ndescription: How to tidy.\n---\nFold the towels first.\n",
  );
  const other = await newSession(client, world.workspace);
  const isOfOther = (wire: unknown): boolean =>
    at(wire, "params.sessionId") === other && at(wire, "params.update.sessionUpdate") === "available_commands_update";
  const offered = list(await client.waitFor(isOfOther), "params.update.availableCommands");
  expect(offered).toContainEqual({ name: "tidy", description: "How to tidy.", input: { hint: expect.any(String) } });
  await client.call("session/prompt", { sessionId, prompt: textPrompt("/tidy the house") });
  expect(model.requests[0]?.source).toContain("Fold the towels first.");
  expect(model.requests[0]?.source).toContain("the house");
  await client.call("session/prompt", { sessionId, prompt: textPrompt("/unheard of") });
  expect(model.requests[1]?.source).toContain("/unheard of");
  expect(await client.call("session/prompt", { sessionId, prompt: textPrompt("/compact") })).toMatchObject({
    stopReason: "end_turn",
  });
  expect(client.updates("tool_call").at(-1)).toMatchObject({ title: "Compact the conversation" });
});

test("a failure of the provider is an error with its code, and the session goes on", async () => {
  await using opened = await openAcp({
    respond: () => ({ text: "here again" }),
    faults: [{ kind: "status", status: 401, body: { error: { message: "wrong key" } } }],
  });
  const { client, sessionId } = opened;
  const { error } = await client.ask("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(error).toMatchObject({ code: -32_000, data: { code: "auth.rejected" } });
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(client.said()).toBe("here again");
});

test("two prompts at once: the second is input of the turn that runs, and both get its end", async () => {
  await using opened = await openAcp({
    respond: ({ number }) => (number === 0 ? { calls: [command("sleep 0.7; echo slept")] } : { text: "Hello" }),
  });
  const { client, sessionId, model } = opened;
  const first = client.request("session/prompt", { sessionId, prompt: textPrompt("slow") });
  await client.update("tool_call");
  const second = client.request("session/prompt", { sessionId, prompt: textPrompt("and this too") });
  expect((await client.answerTo(first)).result).toMatchObject({ stopReason: "end_turn" });
  expect((await client.answerTo(second)).result).toMatchObject({ stopReason: "end_turn" });
  expect(model.requests.at(-1)?.source).toContain("and this too");
  expect(client.updates("user_message_chunk")).toEqual([]);
});

test("lines that are no messages are answered as errors, and end nothing", async () => {
  await using world = await openWorld();
  await using served = serveAcp([], { world });
  const { client } = served;
  for (const line of ["{", "[]", '{"jsonrpc":"2.0","id":77}', `"${"x".repeat(17 * 1024 * 1024)}"`]) client.send(line);
  await client.initialize();
  expect(client.received.slice(0, 4).map(({ error, id }) => [error?.code, id])).toEqual([
    [-32_700, null],
    [-32_600, null],
    [-32_600, 77],
    [-32_600, null],
  ]);
  expect((await client.ask("session/dance", {})).error).toMatchObject({
    code: -32_601,
    data: { method: "session/dance" },
  });
  expect((await client.ask("session/new", { cwd: "relative", mcpServers: [] })).error).toMatchObject({
    code: -32_602,
    message: expect.stringContaining("absolute"),
  });
  expect((await client.ask("session/prompt", { sessionId: "nowhere", prompt: [] })).error).toMatchObject({
    code: -32_002,
    data: { code: "thread.not-found" },
  });
  client.note("session/cancel", { sessionId: "nowhere" });
  client.note("no/such/notification");
  expect(client.malformed).toEqual([]);
});

test("a reader that is slow gets every text whole", async () => {
  const words = "0123456789".repeat(300_000);
  await using opened = await openAcp({ script: [{ text: words }], deltaChars: 1_000 });
  const { client, sessionId } = opened;
  const stdout = client.running.child.stdout;
  stdout?.pause();
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  await client.untilRecorded(sessionId, "turn.completed", opened.world);
  stdout?.resume();
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "end_turn" });
  expect(client.said()).toBe(words);
});
