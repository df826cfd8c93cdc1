/** Records of Copilot, Gemini CLI and Qwen Code, and what Codex has put away: written by hand as these programs write them. */
import { appendFile, rename, mkdir } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { importsOf, itemsOf, openFixture, type Fixture } from "../../../test/kept-conversations.ts";
import { copilotLines, geminiLines, qwenLines } from "../../../test/other-records.ts";
import { listConversations } from "./conversations.ts";

const ID = "380191ed-3ff1-4bf3-904a-acb808839d68";

const CASES = {
  copilot: { file: `.copilot/session-state/${ID}/events.jsonl`, lines: copilotLines },
  gemini: { file: `.gemini/tmp/work/chats/session-2026-11-19T23-46-${ID.slice(0, 8)}.jsonl`, lines: geminiLines },
  qwen: { file: `.qwen/projects/-tmp-work/chats/${ID}.jsonl`, lines: qwenLines },
};

const listed = async (t: Fixture) =>
  (await listConversations(t.programs, { from: undefined, limit: 10 })).conversations;

test.each(Object.entries(CASES))("a conversation of %s is listed and imported, each thing once", async (from, of) => {
  await using t = await openFixture();
  const file = await t.file(of.file, of.lines(ID, t.work));
  if (from === "gemini") await t.file(".gemini/tmp/work/.project_root", [t.work]);
  expect(await listed(t)).toEqual([
    { from, handle: ID, file, updatedAt: expect.any(Number), folder: t.work, title: "please look" },
  ]);
  const { threadId, items, left } = await t.take(ID.slice(0, 13));
  const events = await t.events(threadId);
  const told = itemsOf(events).map(({ item, said }) => ({ ...item, said }));
  expect(told).toMatchObject([
    { type: "userMessage", said: "user", content: [{ type: "text", text: "please look" }] },
    ...(from === "qwen" ? [{ type: "reasoning", text: "where could it be" }] : []),
    { type: "agentMessage", said: "agent", text: "I look." },
    {
      type: "commandExecution",
      said: "agent",
      command: "ls; exit 3",
      cwd: t.work,
      status: "failed",
      exitCode: 3,
      output: expect.stringContaining("a.txt"),
    },
    from === "copilot"
      ? {
          type: "fileChange",
          status: "completed",
          changes: [{ path: `${t.work}/b.txt`, kind: "add", diff: expect.stringContaining("+b") }],
        }
      : { type: "toolCall", tool: "write_file", status: "completed", output: "It is written." },
    { type: "agentMessage", said: "agent", text: "There it is." },
  ]);
  expect([told.length, left]).toEqual([items, undefined]);
  expect(importsOf(events)).toMatchObject([
    { from, file, usage: { inputTokens: 30, cachedInputTokens: 4, outputTokens: 9 }, model: "model-1" },
  ]);
  expect(importsOf(events)[0]?.unknown).toBeUndefined();
  expect(await t.take(ID)).toMatchObject({ threadId, items: 0 });
});

test("a message of Gemini that is told once more after an import is not imported twice", async () => {
  await using t = await openFixture();
  const lines = geminiLines(ID, t.work);
  const file = await t.file(CASES.gemini.file, lines.slice(0, 4));
  const { threadId } = await t.take(ID);
  await appendFile(
    file,
    lines
      .slice(4)
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(""),
  );
  await t.take(ID);
  expect(itemsOf(await t.events(threadId)).map(({ item }) => item.type)).toEqual([
    "userMessage",
    "agentMessage",
    "commandExecution",
    "toolCall",
    "agentMessage",
  ]);
});

test("what Codex has put away is listed as archived, and its thread goes on where an import of it ended", async () => {
  await using t = await openFixture();
  const name = `rollout-2026-11-19T10-00-00-${ID}.jsonl`;
  const said = (message: string) => ({ timestamp: "t", type: "event_msg", payload: { type: "user_message", message } });
  const file = await t.file(`.codex/sessions/2026/11/19/${name}`, [said("first")]);
  const { threadId } = await t.take(ID);
  await appendFile(file, `${JSON.stringify(said("second"))}\n`);
  const away = path.join(t.home, ".codex/archived_sessions", name);
  await mkdir(path.dirname(away));
  await rename(file, away);
  expect(await listed(t)).toMatchObject([{ from: "codex", handle: ID, file: away, isArchived: true, title: "first" }]);
  expect(await t.take(ID)).toMatchObject({ threadId, items: 1 });
  // Of both, as when a copy was put back, the one in use counts.
  await t.file(`.codex/sessions/2026/11/19/${name}`, [said("first")]);
  expect(await listed(t)).toMatchObject([{ file, title: "first" }]);
  expect((await listed(t))[0]).not.toHaveProperty("isArchived");
});

test("hostile: a record that names another conversation, lines of no shape and helpers of an agent are no items", async () => {
  await using t = await openFixture();
  const other = `${ID.slice(0, 8)}-0000-4000-8000-000000000000`;
  await t.file(CASES.gemini.file, geminiLines("99999999-0000-4000-8000-000000000000", t.work));
  await expect(t.take(ID)).rejects.toMatchObject({ code: "thread.not-found" });
  await t.file(`.copilot/session-state/${other}/events.jsonl`, [
    "no JSON",
    { type: "user.message", data: { content: 17 } },
    { type: "user.message", data: { content: "hidden", source: "skill-pdf" } },
    { type: "assistant.message", agentId: "helper", data: { messageId: "m", content: "of a helper" } },
    { type: "tool.execution_complete", data: { toolCallId: "never begun", success: true } },
    { type: "made.up", data: {} },
  ]);
  const { threadId, items } = await t.take(other, "copilot");
  expect(items).toBe(0);
  expect(importsOf(await t.events(threadId))).toMatchObject([
    { unknown: { text: 1, "user.message": 1, "tool.execution_complete": 1, "made.up": 1 } },
  ]);
});
