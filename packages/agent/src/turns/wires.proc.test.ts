import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer, type HttpWire } from "@heddle/models/testing";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const MAX_FIRST_REQUEST_BYTES = 8 * 1024;

const shell: Record<HttpWire, { tool: string; key: string; model: string }> = {
  "openai-responses": { tool: "exec_command", key: "cmd", model: "gpt-5.5" },
  "openai-chat": { tool: "bash", key: "command", model: "some-local-model" },
  anthropic: { tool: "bash", key: "command", model: "claude-sonnet-5-5" },
  gemini: { tool: "run_shell_command", key: "command", model: "gemini-3.8-flash" },
};

const wires = Object.keys(shell) as HttpWire[];

async function bodies(t: TestHeddle, threadId: string): Promise<EventBody[]> {
  return (await t.events(threadId)).map(({ body }) => body);
}

test.each(wires)(
  "a turn over %s runs a command, sends its result back and ends; the first request stays small",
  async (wire) => {
    const { tool, key, model } = shell[wire];
    await using server = await startModelServer({
      script: [
        { reasoning: "let me look", text: "looking", calls: [{ tool, args: { [key]: "echo over the wire" } }] },
        { text: "all done" },
      ],
    });
    await using t = await openTestHeddle({
      providers: [server.provider(wire)],
      settings: { provider: "test", model },
    });
    const turn = await t.start("say something");
    const terminal = await turn.done;
    expect(terminal.body).toMatchObject({ status: "completed" });
    expect(terminal.body.usage.outputTokens).toBeGreaterThan(0);
    expect(server.requests).toHaveLength(2);
    expect(server.requests[0]?.bytes).toBeLessThanOrEqual(MAX_FIRST_REQUEST_BYTES);
    expect(JSON.stringify(server.requests[1]?.body)).toContain("over the wire");
    const command = (await bodies(t, turn.threadId)).find(
      (body) => body.type === "item.completed" && body.item.type === "commandExecution",
    );
    expect(command).toMatchObject({ item: { status: "completed", output: "over the wire\n" } });
  },
);

test("the responses wire is asked without storage, with the thread as cache key", async () => {
  await using server = await startModelServer({ script: [{ text: "hi" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const turn = await t.start("hello");
  await turn.done;
  expect(server.requests[0]?.body).toMatchObject({ store: false, prompt_cache_key: turn.threadId });
});

test("a failed attempt is a stored retry with its real cause, and its half message is closed as partial", async () => {
  await using server = await startModelServer({
    script: [{ text: "a message long enough to be cut somewhere in the middle of it" }],
    faults: [
      { kind: "status", status: 503, body: { error: { message: "the kettle is on fire" } } },
      { kind: "cut", at: "mid-delta" },
    ],
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const turn = await t.start("hello");
  expect((await turn.done).body.status).toBe("completed");
  const events = await bodies(t, turn.threadId);
  const retries = events.flatMap((body) => (body.type === "model.retried" ? [body.cause] : []));
  expect(retries.map(({ code }) => code)).toEqual(["provider.overloaded", "provider.cut"]);
  expect(retries[0]?.message).toContain("the kettle is on fire");
  const messages = events.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item] : [],
  );
  expect(messages.at(-1)).toMatchObject({ text: "a message long enough to be cut somewhere in the middle of it" });
  for (const partial of messages.slice(0, -1)) expect(partial.isPartial).toBe(true);
  const started = events.filter((body) => body.type === "item.started").length;
  expect(events.filter((body) => body.type === "item.completed")).toHaveLength(started);
});

test("a provider that refuses for good fails the turn with its code after one request", async () => {
  await using server = await startModelServer({
    faults: () => ({ kind: "status", status: 401, body: { error: { message: "bad key test-key" } } }),
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const turn = await t.start("hello");
  expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "auth.rejected" } });
  expect(server.requests).toHaveLength(1);
  expect(JSON.stringify(await bodies(t, turn.threadId))).not.toContain("test-key");
});

test("a model that answers with nothing at all fails the turn", async () => {
  await using server = await startModelServer({ script: [{}] });
  await using t = await openTestHeddle({
    providers: [server.provider("anthropic")],
    settings: { provider: "test", model: "claude-sonnet-5-5" },
  });
  const turn = await t.start("hello");
  expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "provider.malformed" } });
});

test("guides are told from the outermost to the nearest, and a link out of the walls is not followed into Heddle's home", async () => {
  await using server = await startModelServer({ script: [{ text: "hi" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  const nested = join(t.workspace, "inner", "linked");
  await mkdir(join(t.workspace, ".git"), { recursive: true });
  await writeFile(join(t.workspace, ".git/HEAD"), "ref: refs/heads/main\n");
  await mkdir(nested, { recursive: true });
  await writeFile(join(t.workspace, "AGENTS.md"), "outer guide");
  await writeFile(join(t.workspace, "inner", "AGENTS.md"), "inner guide");
  await writeFile(join(t.home, "secret.md"), "state of Heddle");
  await symlink(join(t.home, "secret.md"), join(nested, "AGENTS.md"));
  const turn = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: nested, origin: "test" },
    input: [{ type: "text", text: "hello" }],
    settings: t.settings,
  });
  await turn.done;
  const loaded = (await bodies(t, turn.threadId)).find((body) => body.type === "context.loaded");
  expect(loaded?.text.indexOf("outer guide")).toBeGreaterThan(0);
  expect(loaded?.text.indexOf("inner guide")).toBeGreaterThan(loaded?.text.indexOf("outer guide") ?? 0);
  expect(loaded?.text).not.toContain("state of Heddle");
});

test("a secret in a command's output is told to nobody: not the model, not live, not on disk", async () => {
  const canary = `ghp_${"a1B2".repeat(9)}`;
  await using server = await startModelServer({
    script: [{ calls: [{ tool: "exec_command", args: { cmd: "cat token.txt" } }] }, { text: "seen" }],
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
  });
  await writeFile(join(t.workspace, "token.txt"), `${canary}\n`);
  const turn = await t.start("read it");
  const streamed: string[] = [];
  using _listener = t.heddle.onDelta(turn.threadId, ({ delta }) => streamed.push(delta));
  await turn.done;
  expect(JSON.stringify(server.requests[1]?.body)).not.toContain(canary);
  expect(streamed.join("")).not.toContain(canary);
  for (const file of ["heddle.db", "heddle.db-wal"]) {
    const bytes = await readFile(join(t.home, file)).catch(() => Buffer.alloc(0));
    expect(bytes.includes(canary)).toBe(false);
  }
});
