/** Conversations of OpenCode as it keeps them, in a database and in files, imported as threads. */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { importsOf, itemsOf, openFixture } from "../../../test/kept-conversations.ts";
import { listConversations } from "./conversations.ts";
import { programOf } from "./find-program.ts";
import { linesSince, markRecord } from "./own-record.ts";

const OPENCODE_ID = "ses_4b1d6f0e2ffeAbCdEfGh";
const CREATED = Date.parse("2026-11-19T10:00:01Z");

const message = (id: string, role: string, more: object = {}): readonly [string, object] => [
  id,
  { role, time: { created: CREATED, completed: CREATED + 1000 }, modelID: "gpt", ...more },
];
const OPENCODE_MESSAGES = [
  {
    message: message("msg_1", "user"),
    parts: [
      { type: "text", text: "say hello" },
      { type: "text", text: "hidden", synthetic: true },
    ],
  },
  {
    message: message("msg_2", "assistant"),
    parts: [
      { type: "step-start" },
      {
        type: "tool",
        tool: "bash",
        callID: "call_1",
        state: { status: "completed", input: { command: "echo hello" }, output: "hello", metadata: { exit: 0 } },
      },
      { type: "text", text: "hello" },
      {
        type: "step-finish",
        reason: "stop",
        tokens: { input: 10, output: 4, reasoning: 0, cache: { read: 5, write: 0 } },
        cost: 0,
      },
    ],
  },
];

function openCodeDatabase(file: string, work: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT)`);
  const session = database.prepare("INSERT INTO session VALUES (?, 'p', ?, ?, ?, 1, ?)");
  session.run(OPENCODE_ID, null, work, "Hello there", 5000);
  session.run("ses_child", OPENCODE_ID, work, "a child", 6000);
  for (const one of OPENCODE_MESSAGES) addMessage(database, one);
  return database;
}

function addMessage(database: DatabaseSync, { message: [id, data], parts }: (typeof OPENCODE_MESSAGES)[number]): void {
  database
    .prepare("INSERT OR REPLACE INTO message VALUES (?, ?, ?, 1, ?)")
    .run(id, OPENCODE_ID, Number(id.slice(4)), JSON.stringify(data));
  const part = database.prepare("INSERT OR REPLACE INTO part VALUES (?, ?, ?, 1, 1, ?)");
  for (const [index, one] of parts.entries()) part.run(`prt_${id}_${index}`, id, OPENCODE_ID, JSON.stringify(one));
}

const SHOWN = [
  { type: "userMessage", content: [{ text: "say hello" }] },
  { type: "commandExecution", command: "echo hello", output: "hello", exitCode: 0 },
  { type: "agentMessage", text: "hello" },
];

test("OpenCode: its database is read while it is open there, and nothing appears beside it", async () => {
  await using t = await openFixture();
  const folder = path.join(t.home, ".local/share/opencode");
  await mkdir(folder, { recursive: true });
  const database = openCodeDatabase(path.join(folder, "opencode.db"), t.work);
  try {
    const { conversations, total } = await listConversations(t.programs, { from: "opencode", limit: 10 });
    expect({ conversations, total }).toMatchObject({
      conversations: [{ handle: OPENCODE_ID, folder: t.work, title: "Hello there", updatedAt: 5000 }],
      total: 1,
    });
    const { threadId } = await t.take(OPENCODE_ID);
    const items = async () => itemsOf(await t.events(threadId)).map(({ item }) => item);
    expect(await items()).toMatchObject(SHOWN);
    expect(importsOf(await t.events(threadId))[0]?.usage).toMatchObject({ inputTokens: 15, outputTokens: 4 });
    // An answer that has not ended is left for later, and what is changed about old messages means nothing.
    const open = {
      message: message("msg_3", "assistant", { time: { created: 1 } }),
      parts: [{ type: "text", text: "on" }],
    };
    addMessage(database, open);
    database.exec(`UPDATE message SET data = json_set(data, '$.summary', 'x') WHERE id = 'msg_1'`);
    expect(await t.take(OPENCODE_ID)).toMatchObject({ items: 0, left: "its last answer has not ended" });
    addMessage(database, { message: message("msg_3", "assistant"), parts: [{ type: "text", text: "on and on" }] });
    expect(await t.take(OPENCODE_ID)).toMatchObject({ threadId, items: 1 });
    expect(await items()).toMatchObject([...SHOWN, { text: "on and on" }]);
  } finally {
    database.close();
  }
});

test("OpenCode: the files it kept before its database are read the same", async () => {
  await using t = await openFixture();
  const storage = ".local/share/opencode/storage";
  const session = { id: OPENCODE_ID, directory: t.work, title: "Hello there", time: { updated: 5000 } };
  await t.file(`${storage}/session/global/${OPENCODE_ID}.json`, [session]);
  for (const {
    message: [id, info],
    parts,
  } of OPENCODE_MESSAGES) {
    await t.file(`${storage}/message/${OPENCODE_ID}/${id}.json`, [{ id, sessionID: OPENCODE_ID, ...info }]);
    for (const [index, part] of parts.entries()) {
      const own = { id: `prt_${id}_${index}`, messageID: id, sessionID: OPENCODE_ID };
      await t.file(`${storage}/part/${id}/${own.id}.json`, [{ ...own, ...part }]);
    }
  }
  const { threadId } = await t.take(OPENCODE_ID.slice(0, 10));
  expect(itemsOf(await t.events(threadId)).map(({ item }) => item)).toMatchObject(SHOWN);
});

test("hostile: a database that is none, or whose tables are views, is refused by name", async () => {
  await using t = await openFixture();
  const file = await t.file(".local/share/opencode/opencode.db", ["no database"]);
  await expect(listConversations(t.programs, { from: "opencode", limit: 1 })).rejects.toMatchObject({
    code: "usage.invalid",
    message: expect.stringContaining(file),
  });
  await rm(file);
  const database = new DatabaseSync(file);
  database.exec(`CREATE TABLE session (id TEXT); CREATE TABLE part (id TEXT);
    CREATE VIEW message AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n`);
  database.close();
  await expect(listConversations(t.programs, { from: "opencode", limit: 1 })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  expect((await listConversations(t.programs, { from: "codex", limit: 1 })).total).toBe(0);
});

test("what comes to a conversation of OpenCode while a person has it is read afterwards, and nothing else", async () => {
  await using t = await openFixture();
  const folder = path.join(t.home, ".local/share/opencode");
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, "opencode.db");
  const database = openCodeDatabase(file, t.work);
  try {
    const program = programOf("opencode", {}, t.programs.env);
    const mark = await markRecord(program, OPENCODE_ID);
    if (mark === undefined) throw new Error("there is no mark");
    const after = async (): Promise<readonly unknown[]> => {
      const found: unknown[] = [];
      for await (const line of linesSince(mark)) found.push(line.kind === "line" ? JSON.parse(line.text) : line.kind);
      return found;
    };
    expect(await after()).toEqual([]);
    addMessage(database, { message: message("msg_3", "user"), parts: [{ type: "text", text: "and now?" }] });
    addMessage(database, { message: message("msg_4", "assistant"), parts: [{ type: "text", text: "now this" }] });
    expect(await after()).toMatchObject([
      { id: "msg_3", role: "user", parts: [{ text: "and now?" }] },
      { id: "msg_4", role: "assistant", parts: [{ text: "now this" }] },
    ]);
    expect(await markRecord(program, "ses_of-nothing")).toBeUndefined();
    await rm(file);
    expect(await after()).toEqual([]);
    await rm(`${file}-wal`);
    await t.file(".local/share/opencode/opencode.db", ["no database"]);
    expect([await after(), await markRecord(program, OPENCODE_ID)]).toEqual([[], undefined]);
  } finally {
    database.close();
  }
});
