/**
 * Programs that know nothing of the agent behind Heddle: the Codex SDK, a client of the Agent Client Protocol and the chat API,
 * each in front of each agent. The same task, and the same items at the door, whoever carries it out.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Codex } from "@openai/codex-sdk";
import { expect, test } from "vitest";
import { dial } from "../../e2e/dialled.ts";
import { openEditor } from "../../e2e/editor.ts";
import { heddle } from "../program.ts";
import { at } from "../app-server-client.ts";
import { eachSubject, type Scene } from "./suite.ts";
import type { Subject } from "./subject.ts";

await eachSubject("behind", ({ subject, scene, server }) => {
  const exit = subject.tellsNoExitCode === true ? {} : { exit_code: 0 };

  test("the Codex SDK", async () => {
    const t = await task(subject, await scene());
    const codex = new Codex({ codexPathOverride: heddle.file, env: { ...t.world.env } });
    const thread = codex.startThread({
      workingDirectory: t.workspace,
      sandboxMode: "workspace-write",
      approvalPolicy: "never",
    });
    const { events } = await thread.runStreamed("do the task");
    const seen: unknown[] = [];
    for await (const event of events) {
      if (event.type === "item.completed") seen.push(event.item);
      if (event.type === "turn.completed") seen.push(event.type);
    }
    expect(seen).toMatchObject([
      { type: "command_execution", status: "completed", ...exit, aggregated_output: OUTPUT },
      { type: "file_change", status: "completed", changes: [{ kind: "add", path: FILE }] },
      { type: "agent_message", text: "All done." },
      "turn.completed",
    ]);
    expect(await made(t)).toBe("one\ntwo\n");
    t.model.play({ says: "As I said." });
    expect((await thread.run("and again")).finalResponse).toBe("As I said.");
    expect(t.model.requests.at(-1)?.source).toContain("All done.");
  });

  test("an ACP client", async () => {
    const t = await task(subject, await scene());
    const options = ["-c", "approval_policy=never", "-c", "sandbox_mode=workspace-write"];
    await using editor = openEditor({ workspace: t.workspace, env: t.world.env }, options);
    await editor.call("initialize", { protocolVersion: 1, clientInfo: { name: "probe" } });
    const session = await editor.call("session/new", { cwd: t.workspace, mcpServers: [] });
    const prompt = [{ type: "text", text: "do the task" }];
    const end = await editor.call("session/prompt", { sessionId: at(session, "sessionId"), prompt });
    expect(end).toMatchObject({ stopReason: "end_turn" });
    const updates = editor.received.flatMap(({ params }) =>
      at(params, "update") === undefined ? [] : [at(params, "update")],
    );
    const begun = updates.filter((update) => at(update, "sessionUpdate") === "tool_call");
    expect(begun.map((update) => at(update, "kind"))).toEqual(["execute", "edit"]);
    const ends = updates.filter((update) => at(update, "status") === "completed");
    expect(ends.map((update) => at(update, "toolCallId"))).toEqual(begun.map((update) => at(update, "toolCallId")));
    const said = updates.filter((update) => at(update, "sessionUpdate") === "agent_message_chunk");
    expect(said.map((update) => at(update, "content.text")).join("")).toBe("All done.");
    expect(await made(t)).toBe("one\ntwo\n");
  });

  test("the chat API", async () => {
    const t = await task(subject, await scene());
    const { url, token } = server();
    using client = await dial(url, token);
    await client.call("events.subscribe", { topic: "chat.*" });
    const settings = { approval_policy: "never", sandbox: "workspace-write" };
    const chat = await client.call("chat.create", { cwd: t.workspace, settings });
    const sent = await client.call("chat.message.send", { chat_id: at(chat, "chat_id"), message: "do the task" });
    const turnId = at(sent, "turn_id");
    const { params: end } = await client.waitFor(
      ({ method, params }) => method === "chat.turn.completed" && params?.["turnId"] === turnId,
    );
    expect(end).toMatchObject({ status: "completed" });
    const read = await client.call("chat.thread.read", { chat_id: at(chat, "chat_id"), include_turns: true });
    expect(itemsIn(read)).toMatchObject([
      { type: "userMessage" },
      { type: "commandExecution", status: "completed" },
      { type: "fileChange", status: "completed" },
      { type: "agentMessage", text: "All done." },
    ]);
    expect(await made(t)).toBe("one\ntwo\n");
  });
});

const OUTPUT = expect.stringContaining("from the command");
const FILE = expect.stringContaining("made.txt");

async function task(subject: Subject, t: Scene): Promise<Scene> {
  const name = subject.wantsWholePaths === true ? path.join(t.workspace, "made.txt") : "made.txt";
  t.model.play({ runs: "echo from the command" }, { writes: name, content: "one\ntwo\n" }, { says: "All done." });
  return t;
}

function made(t: Scene): Promise<string> {
  return readFile(path.join(t.workspace, "made.txt"), "utf8");
}

/** Of every turn that was read, in order. */
function itemsIn(read: unknown): readonly unknown[] {
  const turns = at(read, "turns") ?? at(read, "thread.turns");
  if (!Array.isArray(turns)) throw new Error(`no turns in ${JSON.stringify(read).slice(0, 500)}`);
  return turns.flatMap((turn): unknown[] => {
    const items = at(turn, "items");
    return Array.isArray(items) ? items : [];
  });
}
