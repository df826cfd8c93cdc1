/** Conversations of other programs as threads: their records are written by hand, the journal and the files are real. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFile, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { examine } from "@heddle/journal/verification";
import { expect, test } from "vitest";
import { importsOf, itemsOf, openFixture } from "../../../test/kept-conversations.ts";
import { createContext } from "../../context/context.ts";
import { purgeThread } from "../../threads/threads.ts";
import { importedAs, listConversations } from "./conversations.ts";

const CODEX_ID = "0199f3a2-7c11-7000-8000-000000000001";
const CLAUDE_ID = "aaaaaaaa-7c11-4000-8000-000000000002";
const SECRET = `ghp_${"a1B2".repeat(9)}`;

const CODEX_FILE = `.codex/sessions/2026/11/19/rollout-2026-11-19T10-00-00-${CODEX_ID}.jsonl`;
const at = (second: number): string => `2026-11-19T10:00:${String(second).padStart(2, "0")}.000Z`;
const codex = (second: number, type: string, payload: object): object => ({ timestamp: at(second), type, payload });
const spoken = (second: number, text: string): object =>
  codex(second, "event_msg", { type: "agent_message", message: text });
const codexLines = (work: string): readonly object[] => [
  codex(0, "session_meta", { id: CODEX_ID, cwd: work, cli_version: "0.166.0", instructions: "x".repeat(50_000) }),
  codex(1, "turn_context", { model: "gpt-5.5", cwd: work }),
  codex(1, "event_msg", { type: "user_message", message: "why does\nthe test fail?" }),
  codex(2, "response_item", {
    type: "function_call",
    call_id: "call_1",
    name: "exec_command",
    arguments: JSON.stringify({ cmd: `echo ${SECRET}` }),
  }),
  codex(3, "response_item", {
    type: "function_call_output",
    call_id: "call_1",
    output: "Process exited with code 1\nno",
  }),
  spoken(4, "a port is taken, a-known-secret-value"),
  codex(5, "event_msg", {
    type: "token_count",
    info: {
      last_token_usage: { input_tokens: 100, cached_input_tokens: 40, output_tokens: 9, reasoning_output_tokens: 2 },
    },
  }),
];

test("a conversation of Codex is listed, and imported once with who said what, when, and from which file", async () => {
  await using t = await openFixture();
  const file = await t.file(CODEX_FILE, codexLines(t.work));
  const before = await stat(file);
  const listed = await listConversations(t.programs, { from: undefined, limit: 10 });
  expect(listed).toEqual({
    conversations: [
      {
        from: "codex",
        handle: CODEX_ID,
        file,
        updatedAt: Math.trunc(before.mtimeMs),
        folder: t.work,
        title: "why does the test fail?",
      },
    ],
    total: 1,
  });
  const imported = await t.take(CODEX_ID.slice(0, 13));
  expect(imported).toEqual({ threadId: imported.threadId, from: "codex", handle: CODEX_ID, items: 3 });
  const events = await t.events(imported.threadId);
  expect(itemsOf(events).map(({ item, said, saidAt, line }) => [item.type, said, saidAt, line])).toEqual([
    ["userMessage", "user", Date.parse(at(1)), 3],
    ["commandExecution", "agent", Date.parse(at(3)), 5],
    ["agentMessage", "agent", Date.parse(at(4)), 6],
  ]);
  const bytes = await readFile(file);
  expect(importsOf(events)).toEqual([
    {
      type: "thread.imported",
      v: 1,
      from: "codex",
      handle: CODEX_ID,
      file,
      bytes: bytes.length,
      lines: 7,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      items: 3,
      usage: {
        inputTokens: 100,
        cachedInputTokens: 40,
        cacheWriteInputTokens: 0,
        outputTokens: 9,
        reasoningOutputTokens: 2,
      },
      model: "gpt-5.5",
      unknown: { session_meta: 1 },
    },
  ]);
  expect(events[0]).toMatchObject({
    author: "user:owner",
    body: { workspace: t.work, origin: `import:codex:${CODEX_ID}`, title: "why does the test fail?" },
  });
  const stored = JSON.stringify(events);
  expect(stored).not.toContain(SECRET);
  expect(stored).not.toContain("a-known-secret-value");
  expect(await t.take(CODEX_ID)).toEqual({ ...imported, items: 0 });
  expect(await t.events(imported.threadId)).toEqual(events);
  const { mtimeMs, ctimeMs, size } = await stat(file);
  expect([mtimeMs, ctimeMs, size]).toEqual([before.mtimeMs, before.ctimeMs, before.size]);
  expect((await importedAs(t.journal))({ from: "codex", handle: CODEX_ID })).toBe(imported.threadId);
  // What was paid there is in no ledger here.
  expect(await t.journal.usage.rows({ by: ["model"], limit: 10 })).toEqual([]);
  const examined = await examine(t.journal, { home: path.join(path.dirname(t.home), "heddle"), level: 5 });
  expect(examined.findings).toEqual([]);
});

test("what an imported agent said is evidence that is marked, and passes for nothing that was done here", async () => {
  await using t = await openFixture();
  await t.file(CODEX_FILE, codexLines(t.work));
  const { threadId } = await t.take(CODEX_ID);
  const { entries } = await t.journal.evidence.query({ origin: "imported" });
  expect(entries.map(({ claim, tags, subject }) => [claim, tags, subject.type])).toEqual([
    ["conclusion", ["imported"], "thread"],
    ["step", ["failed", "imported"], "tool"],
    ["goal", ["imported"], "thread"],
  ]);
  expect(entries[0]?.refs.map(({ type }) => type)).toEqual(["file", "origin"]);
  const local = await t.journal.evidence.query({ thread: threadId, origin: "local" });
  expect(local.entries.map(({ type }) => type)).toEqual(["thread.imported"]);
});

test("the model of the next turn is given what was said, and a later import adds only what came after", async () => {
  await using t = await openFixture();
  const file = await t.file(CODEX_FILE, codexLines(t.work));
  const { threadId } = await t.take(CODEX_ID);
  const said = async (): Promise<string> =>
    JSON.stringify(createContext((await t.events(threadId)).map(({ body }) => body)).input);
  expect(await said()).toMatch(/why does\\nthe test fail\?.*a port is taken/);
  // The last line is still being written.
  const [whole, torn] = [JSON.stringify(spoken(8, "it is port 80")), JSON.stringify(spoken(9, "and more"))];
  await appendFile(file, `${whole}\n${torn.slice(0, 20)}`);
  expect(await t.take(CODEX_ID)).toMatchObject({ threadId, items: 1 });
  await appendFile(file, `${torn.slice(20)}\n`);
  expect(await t.take(CODEX_ID)).toMatchObject({ threadId, items: 1 });
  const lines = itemsOf(await t.events(threadId)).map(({ line, item }) => [line, item.type]);
  expect(lines.slice(-2)).toEqual([
    [8, "agentMessage"],
    [9, "agentMessage"],
  ]);
  expect(importsOf(await t.events(threadId)).at(-1)?.bytes).toBe((await stat(file)).size);
  expect(await said()).toMatch(/a port is taken.*port 80.*and more/);
});

test("a record that was rewritten is refused with what to do, and a deleted thread is imported anew", async () => {
  await using t = await openFixture();
  const file = await t.file(CODEX_FILE, codexLines(t.work));
  const { threadId } = await t.take(CODEX_ID);
  await writeFile(file, (await readFile(file, "utf8")).replace("why does", "why DOES"));
  await expect(t.take(CODEX_ID)).rejects.toMatchObject({
    code: "store.id-conflict",
    message: expect.stringContaining("heddle threads delete"),
  });
  await writeFile(file, "");
  await expect(t.take(CODEX_ID)).rejects.toMatchObject({ code: "store.id-conflict" });
  await t.file(CODEX_FILE, codexLines(t.work));
  await purgeThread(t.journal, { threadId, by: "user:owner" });
  const again = await t.take(CODEX_ID);
  expect(again).toMatchObject({ items: 3 });
  expect(again.threadId).not.toBe(threadId);
});

test("imports of one conversation at the same time store everything once", async () => {
  await using t = await openFixture();
  await t.file(CODEX_FILE, codexLines(t.work));
  const all = await Promise.all([t.take(CODEX_ID), t.take(CODEX_ID), t.take(CODEX_ID)]);
  expect(new Set(all.map(({ threadId }) => threadId)).size).toBe(1);
  expect(all.map(({ items }) => items).toSorted((a, b) => a - b)).toEqual([0, 0, 3]);
  expect(itemsOf(await t.events(all[0]?.threadId ?? ""))).toHaveLength(3);
});

test("Claude Code: blocks of one answer, a result, a helper of its own and lines about the program", async () => {
  await using t = await openFixture();
  const line = (type: string, more: object): object => ({
    type,
    cwd: t.work,
    sessionId: CLAUDE_ID,
    timestamp: at(1),
    ...more,
  });
  const answer = (content: readonly object[]): object =>
    line("assistant", {
      message: {
        id: "msg_1",
        role: "assistant",
        model: "opus",
        content,
        stop_reason: "tool_use",
        usage: { input_tokens: 5, output_tokens: 3 },
      },
    });
  await t.file(`.claude/projects/-work/${CLAUDE_ID}.jsonl`, [
    { type: "file-history-snapshot", messageId: "m", snapshot: {} },
    line("user", { isMeta: true, message: { role: "user", content: "Caveat: from the program" } }),
    line("user", { message: { role: "user", content: "list the files" } }),
    answer([{ type: "text", text: "I will look." }]),
    answer([{ type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } }]),
    line("user", {
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "a.ts" }] },
    }),
    line("assistant", {
      isSidechain: true,
      message: { id: "x", role: "assistant", content: [{ type: "text", text: "helper" }] },
    }),
  ]);
  // No conversation of a person.
  await t.file(`.claude/projects/-work/agent-1.jsonl`, []);
  const { conversations } = await listConversations(t.programs, { from: "claude", limit: 10 });
  expect(conversations).toMatchObject([{ handle: CLAUDE_ID, folder: t.work, title: "list the files" }]);
  const { threadId } = await t.take(CLAUDE_ID);
  const items = itemsOf(await t.events(threadId)).map(({ item, said }) => ({ ...item, id: said }));
  expect(items).toMatchObject([
    { type: "userMessage", id: "user", content: [{ text: "list the files" }] },
    { type: "agentMessage", id: "agent", text: "I will look." },
    { type: "commandExecution", command: "ls", output: "a.ts", status: "completed" },
  ]);
});

test("hostile: links, pipes, nesting, junk and floods of kinds change nothing but what is counted", async () => {
  await using t = await openFixture();
  const deep = `{"type":"response_item","payload":{"type":"function_call","call_id":"c","name":"x","arguments":${"[".repeat(100_000)}`;
  const kinds = Array.from({ length: 200 }, (_, index) => codex(1, "event_msg", { type: `kind ${index}` }));
  const file = await t.file(CODEX_FILE, [
    "\u0000\u0001 not json",
    deep,
    ...kinds,
    codex(2, "event_msg", { type: "user_message", message: "\u001b[2J\u202eevil\u0000" }),
    { ...codex(2, "event_msg", { type: "agent_message", message: "y".repeat(300_000) }), timestamp: "never" },
    codex(3, "event_msg", { type: "agent_message", message: "z".repeat(5 * 1024 * 1024) }),
    codex(3, "event_msg", { type: "user_message", message: { not: "text" } }),
  ]);
  const other = path.join(path.dirname(file), `rollout-2026-11-19T10-00-00-${CLAUDE_ID}.jsonl`);
  await symlink("/etc/passwd", other);
  // Reading either would wait for ever, or show a login.
  execFileSync("mkfifo", [
    path.join(t.home, ".codex/auth.json"),
    path.join(t.home, ".codex/sessions/2026/rollout-x-00000000-0000-4000-8000-000000000009.jsonl"),
  ]);
  expect(
    (await listConversations(t.programs, { from: "codex", limit: 10 })).conversations.map(({ handle }) => handle),
  ).toEqual([CODEX_ID]);
  await expect(t.take(CLAUDE_ID)).rejects.toMatchObject({ code: "thread.not-found" });
  await expect(t.take("../../../etc")).rejects.toMatchObject({ code: "usage.invalid" });
  await expect(t.take(CODEX_ID, "embedded")).rejects.toMatchObject({ code: "runner.unsupported" });
  const { threadId, items } = await t.take(CODEX_ID);
  expect(items).toBe(2);
  const events = await t.events(threadId);
  const [{ unknown = {} } = {}] = importsOf(events);
  expect(Object.keys(unknown)).toHaveLength(51);
  expect(unknown).toMatchObject({ text: 1, "too deep": 1, others: expect.any(Number) });
  const [, long] = itemsOf(events);
  expect(long?.item.type === "agentMessage" && long.item.text.length).toBeLessThan(263_000);
  expect(JSON.stringify(long?.item).slice(-60)).toContain("characters are left out");
  // The folder is what its record claims, and there was none.
  expect((await t.journal.threads.get(threadId))?.workspace).toBe(path.dirname(t.home));
});

test("a record of more than is read at once is imported in parts, each stored whole, up to the limit of one import", async () => {
  await using t = await openFixture();
  const lines = Array.from({ length: 5_200 }, (_, index) => spoken(1, `message ${index}`));
  await t.file(CODEX_FILE, lines);
  const first = await t.take(CODEX_ID);
  expect(first).toMatchObject({ items: 5000, left: expect.stringContaining("import it again") });
  const second = await t.take(CODEX_ID);
  expect(second).toMatchObject({ threadId: first.threadId, items: 200 });
  expect(second.left).toBeUndefined();
  const events = await t.events(first.threadId);
  const texts = itemsOf(events).map(({ item }) => (item.type === "agentMessage" ? item.text : ""));
  expect(texts).toEqual(Array.from({ length: 5_200 }, (_, index) => `message ${index}`));
  expect(importsOf(events).map(({ items }) => items)).toEqual([...Array.from({ length: 10 }, () => 500), 0, 200]);
});
