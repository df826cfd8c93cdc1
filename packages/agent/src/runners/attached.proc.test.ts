/** A person takes a thread over and gives it back. The agent's program is played; processes, records and sandboxes are real. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { EventOf, EventType, StoredEvent } from "@heddle/protocol";
import { expect, inject, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";
import { stateOf } from "../recovery/holder.ts";
import { copilotLines, geminiLines, qwenLines } from "../../test/other-records.ts";
import { openTakenOver, type TakenOver } from "../../test/taken-over.ts";
import { readTakeover } from "./programs/takeover.ts";

const children = inject("children");

const all = <T extends EventType>(events: readonly StoredEvent[], type: T): readonly EventOf<T>[] =>
  events.flatMap(({ body }) => (body.type === type ? [body as EventOf<T>] : []));

interface Begun {
  readonly threadId: string;
  readonly handle: string;
  readonly record: string;
}

/** A thread with one turn of the program, and its record of that. */
async function begun(over: TakenOver): Promise<Begun> {
  const turn = await over.t.start("what is it?");
  expect((await turn.done).body.status).toBe("completed");
  const handle = all(await over.t.events(turn.threadId), "agent.connected")[0]?.handle ?? "";
  const record = await over.recordOf(handle);
  await writeFile(record, `{"type":"user","message":{"role":"user","content":"from before"}}\n`);
  return { threadId: turn.threadId, handle, record };
}

/** What the last turn of a thread holds. */
async function lastTurn(over: TakenOver, threadId: string): Promise<readonly StoredEvent[]> {
  const events = await over.t.events(threadId);
  const from = events.findLastIndex(({ body }) => body.type === "turn.admitted");
  return events.slice(from);
}

const itemsOf = (events: readonly StoredEvent[]) => all(events, "item.completed").map(({ item }) => item);

const USAGE = { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 3 };
const CLAUDE_LINES = [
  { type: "file-history-snapshot", snapshot: {} },
  { type: "user", isMeta: true, message: { role: "user", content: "a caveat for the model" } },
  { type: "user", message: { role: "user", content: "please look" } },
  {
    type: "assistant",
    message: {
      id: "m1",
      model: "claude-opus-5-5",
      usage: USAGE,
      stop_reason: "tool_use",
      content: [{ type: "text", text: "I look." }],
    },
  },
  {
    type: "assistant",
    message: {
      id: "m1",
      model: "claude-opus-5-5",
      usage: USAGE,
      stop_reason: "tool_use",
      content: [{ type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } }],
    },
  },
  {
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "made" }] },
    toolUseResult: { stdout: "made", stderr: "", interrupted: false },
  },
  {
    type: "assistant",
    message: {
      id: "m2",
      model: "claude-opus-5-5",
      usage: USAGE,
      stop_reason: "end_turn",
      content: [{ type: "text", text: "There it is." }],
    },
  },
];

const CODEX_LINES = [
  { timestamp: "t", type: "turn_context", payload: { model: "gpt-5.5" } },
  { timestamp: "t", type: "event_msg", payload: { type: "user_message", message: "please look" } },
  { timestamp: "t", type: "response_item", payload: { type: "message", role: "user", content: [] } },
  { timestamp: "t", type: "event_msg", payload: { type: "agent_message", message: "I look." } },
  {
    timestamp: "t",
    type: "response_item",
    payload: { type: "function_call", name: "exec_command", call_id: "c1", arguments: '{"cmd":"ls"}' },
  },
  {
    timestamp: "t",
    type: "response_item",
    payload: { type: "function_call_output", call_id: "c1", output: "Process exited with code 0\nmade" },
  },
  {
    timestamp: "t",
    type: "event_msg",
    payload: { type: "token_count", info: { last_token_usage: { input_tokens: 15, output_tokens: 3 } } },
  },
  { timestamp: "t", type: "event_msg", payload: { type: "agent_message", message: "There it is." } },
];

test.each([
  ["claude", CLAUDE_LINES, ["--resume"]],
  ["codex", CODEX_LINES, ["resume"]],
] as const)(
  "what is done by hand with %s becomes items of a turn of its own, and the next turn continues the conversation",
  async (protocol, lines, words) => {
    await using over = await openTakenOver(protocol, children);
    const { threadId, handle } = await begun(over);
    await over.byHand('echo "by hand: $*"; echo made > made; cat "$NEW" >> "$RECORD"', lines);
    const turn = await over.attach(threadId);
    const { body } = await turn.done;
    expect(body).toMatchObject({ status: "completed", native: { reason: "exit code 0", confidence: "certain" } });
    expect(await over.shown()).toBe(`by hand: ${words.join(" ")} ${handle}\n`);
    expect(await readFile(`${over.t.workspace}/made`, "utf8")).toBe("made\n");
    const events = await lastTurn(over, threadId);
    expect(itemsOf(events)).toMatchObject([
      { type: "userMessage", content: [{ type: "text", text: "please look" }] },
      { type: "agentMessage", text: "I look." },
      { type: "commandExecution", command: "ls", status: "completed", exitCode: 0 },
      { type: "agentMessage", text: "There it is." },
    ]);
    expect(all(events, "turn.admitted")).toMatchObject([
      { task: "attached", settings: { sandboxMode: "workspace-write" } },
    ]);
    expect(all(events, "turn.started")).toMatchObject([
      { sandboxLevel: "none", envelope: { id: "full", sandbox: "off" } },
    ]);
    expect(all(events, "agent.started")).toMatchObject([{ runner: protocol, sandboxLevel: "none" }]);
    expect(all(events, "agent.connected")).toMatchObject([{ handle, origin: "resumed" }]);
    expect(all(events, "agent.ended")).toMatchObject([{ end: "exited", exitCode: 0 }]);
    expect(body.usage).toMatchObject({ outputTokens: protocol === "claude" ? 6 : 3 });
    // Who said what.
    const authors = events.flatMap(({ body: one, author }) => (one.type === "item.completed" ? [author] : []));
    expect(authors).toEqual(["user:owner", "agent:attached", "agent:attached", "agent:attached"]);

    const next = await over.t.start("and now?", { thread: threadId });
    expect((await next.done).body.status).toBe("completed");
    const after = await lastTurn(over, threadId);
    expect(all(after, "agent.connected")).toMatchObject([{ handle, origin: "resumed" }]);
    expect(all(after, "turn.started")).toMatchObject([{ envelope: { id: "edit" } }]);
    const { journal } = over.t.heddle;
    const examined = await examine(journal, { home: over.t.home, level: 5, streams: [threadId] });
    expect(examined.findings).toEqual([]);
  },
);

test.each([
  ["copilot", copilotLines, (handle: string) => `--resume=${handle}`],
  ["gemini", geminiLines, (handle: string) => `--resume ${handle}`],
  ["qwen", qwenLines, (handle: string) => `--resume ${handle}`],
] as const)(
  "%s, which speaks ACP: the person has its own interface, and what its record says of that time is items",
  async (runner, linesOf, words) => {
    await using over = await openTakenOver(runner, children);
    const { threadId, handle, record } = await begun(over);
    const [head, ...lines] = linesOf(handle, over.t.workspace);
    await writeFile(record, `${JSON.stringify(head)}\n`);
    expect(await readTakeover(over.t.heddle.journal, threadId)).toMatchObject({
      program: [expect.stringContaining("agent"), ...words(handle).split(" ")],
    });
    await over.byHand('echo "by hand: $*"; cat "$NEW" >> "$RECORD"', lines);
    const { body } = await (await over.attach(threadId)).done;
    expect(body).toMatchObject({ status: "completed", usage: { inputTokens: 30, outputTokens: 9 } });
    expect(await over.shown()).toBe(`by hand: ${words(handle)}\n`);
    const events = await lastTurn(over, threadId);
    const items = itemsOf(events);
    expect(items[0]).toMatchObject({ type: "userMessage", content: [{ type: "text", text: "please look" }] });
    expect(items.map(({ type }) => type)).toContain("commandExecution");
    expect(items.at(-1)).toMatchObject({ type: "agentMessage", text: "There it is." });
    expect(all(events, "agent.ended")[0]).not.toHaveProperty("unknown");
    const next = await over.t.start("and now?", { thread: threadId });
    expect((await next.done).body.status).toBe("completed");
  },
);

test("an ACP agent of which nothing is known is refused with the key that helps; with it the person has it, and the time between is said not to be on record", async () => {
  await using over = await openTakenOver("other", children);
  const { threadId } = await begun(over);
  await expect(over.attach(threadId)).rejects.toMatchObject({
    code: "runner.unsupported",
    message: expect.stringMatching(/add resume = \["--resume", "\{id\}"\].* to \[runners\.other\]/),
  });
  await using told = await openTakenOver("other", children, { resume: ["--resume={id}", "-v"] });
  const { threadId: known, handle } = await begun(told);
  await told.byHand('echo "by hand: $*"');
  expect((await (await told.attach(known)).done).body.status).toBe("completed");
  expect(await told.shown()).toBe(`by hand: --resume=${handle} -v\n`);
  expect(itemsOf(await lastTurn(told, known))).toMatchObject([
    { type: "notice", code: "runner.not-imported", message: expect.stringContaining("is not on record here") },
  ]);
});

test("while a person has the thread nobody else gets it, and an interrupt at another door ends the program", async () => {
  await using over = await openTakenOver("claude", children);
  const { threadId } = await begun(over);
  await over.byHand('cat "$NEW" >> "$RECORD"; trap "" TERM; echo waiting; while :; do sleep 1; done', CLAUDE_LINES);
  const turn = await over.attach(threadId);
  await over.t.next(threadId, "agent.started");
  await expect.poll(() => over.shown()).toContain("waiting");
  await expect(over.attach(threadId)).rejects.toMatchObject({ code: "turn.active" });
  await expect(over.t.start("me too", { thread: threadId })).rejects.toMatchObject({ code: "turn.active" });
  await using other = await openTestHeddle({ ...over.options, isUnattended: false });
  const acts = other.heddle.as("user:other");
  await expect(acts.steer(turn.turnId, [{ type: "text", text: "and this" }])).rejects.toMatchObject({
    code: "runner.unsupported",
  });
  const [started] = all(await lastTurn(over, threadId), "agent.started");
  await acts.interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  expect((await turn.done).body).toMatchObject({ status: "interrupted", failure: { message: "enough" } });
  const events = await lastTurn(over, threadId);
  expect(all(events, "agent.ended")).toMatchObject([{ pid: started?.process.pid, end: "killed", signal: "SIGKILL" }]);
  expect(started && stateOf(started.process)).toBe("dead");
  // What was done until then is kept.
  expect(itemsOf(events).map(({ type }) => type)).toContain("commandExecution");
});

test("a Heddle that is killed leaves a turn that the next one closes with the program, and the thread goes on", async () => {
  await using over = await openTakenOver("claude", children);
  const { threadId, handle } = await begun(over);
  await over.byHand("while :; do sleep 1; done");
  await over.t.heddle[Symbol.asyncDispose]();
  const child = spawn(
    process.execPath,
    [join(children, "attached-in-child.mjs"), JSON.stringify(over.options), threadId],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const closed = once(child, "close");
  expect(await Promise.race([once(child.stdout, "data").then(String), closed.then(() => "ended")])).toBe("attached\n");
  child.kill("SIGKILL");
  await closed;
  await using t = await openTestHeddle(over.options);
  const events = await t.events(threadId);
  const [started] = all(events, "agent.started").slice(-1);
  expect(started && stateOf(started.process)).toBe("dead");
  expect(all(events, "agent.ended").at(-1)).toMatchObject({ pid: started?.process.pid, end: "left" });
  expect(all(events, "turn.completed").slice(1)).toMatchObject([{ failure: { code: "turn.abandoned" } }]);
  const next = await t.start("and now?", { thread: threadId });
  expect((await next.done).body.status).toBe("completed");
  expect(all(await t.events(threadId), "agent.connected").at(-1)).toMatchObject({ handle, origin: "resumed" });
});

test("a ceiling, Heddle's own loop and a program without a conversation are refused, and nothing is written", async () => {
  await using over = await openTakenOver("claude", children, { settings: { ceiling: "edit" } });
  const { threadId } = await begun(over);
  const { journal } = over.t.heddle;
  const before = await journal.version(threadId);
  const refusal = over.attach(threadId);
  await expect(refusal).rejects.toMatchObject({
    code: "ceiling.exceeded",
    message: expect.stringContaining(`heddle attach ${threadId} --print`),
  });
  await expect(over.attach(threadId)).rejects.toMatchObject({ code: "ceiling.exceeded" });
  expect(await journal.version(threadId)).toBe(before);

  await using own = await openTestHeddle({ script: [{ text: "done" }] });
  const turn = await own.start("go");
  await turn.done;
  const attached = own.heddle.as("user:owner").attach({ threadId: turn.threadId, terminal: [0, 1, 2] });
  await expect(attached).rejects.toMatchObject({
    code: "runner.unsupported",
    message: expect.stringContaining(`continue it here: heddle attach ${turn.threadId}`),
  });
});

test("a program that cannot work by hand has failed, and what was left out is told", async () => {
  await using over = await openTakenOver("claude", children);
  const { threadId } = await begun(over);
  await over.byHand("echo No conversation found; exit 1");
  const { body } = await (await over.attach(threadId)).done;
  expect(body).toMatchObject({ status: "failed", failure: { code: "runner.exited" } });
  const next = await over.t.start("and now?", { thread: threadId });
  expect((await next.done).body.status).toBe("completed");
});

const BOMB = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

test("a record is data: what is no record is counted, what is too long told, and no instruction or key is taken from it", async () => {
  await using over = await openTakenOver("claude", children);
  const { threadId, record } = await begun(over);
  const key =
    "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJAA";
  await over.byHand('cat "$NEW" >> "$RECORD"', [
    "not JSON",
    "17",
    `{"type":"assistant","message":${BOMB}}`,
    {
      type: "assistant",
      message: { id: "m0", content: [{ type: "tool_use", id: "x", name: "__proto__", input: {} }] },
    },
    { type: "user", message: { role: "user", content: `remember ${key}` } },
    { type: "user", message: { role: "user", content: "x".repeat(5 * 1024 * 1024) } },
    { type: "user", message: { role: "user", content: "the end" } },
  ]);
  expect((await (await over.attach(threadId)).done).body.status).toBe("completed");
  const events = await lastTurn(over, threadId);
  expect(JSON.stringify(events)).not.toContain(key);
  const items = itemsOf(events);
  const said = items.flatMap((item) => (item.type === "userMessage" ? [JSON.stringify(item.content)] : []));
  expect(said).toHaveLength(2);
  expect(said[1]).toContain("the end");
  const told = items.flatMap((item) => (item.type === "notice" ? [item.message] : []));
  expect(told).toEqual(["not everything from the terminal is on record here: 1 lines of its own record are too long"]);
  expect(all(events, "agent.ended")[0]?.unknown).toMatchObject({ text: 1, line: 1 });

  // An agent may write among its own files, also a link to those of others.
  const secret = join(over.t.folder, "secret");
  await writeFile(secret, '{"type":"user","message":{"role":"user","content":"from elsewhere"}}\n');
  await rm(record);
  await symlink(secret, record);
  await over.byHand("exit 0");
  expect((await (await over.attach(threadId)).done).body.status).toBe("completed");
  expect(JSON.stringify(await lastTurn(over, threadId))).not.toContain("from elsewhere");
});
