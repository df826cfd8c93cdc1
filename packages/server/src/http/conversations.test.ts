/** Conversations that agent programs keep on the machine of a server, over HTTP. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { ConversationList, ImportedConversation } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import { openHttpWorld } from "../../test/http-world.ts";

const HANDLE = "aaaaaaaa-7c11-4000-8000-000000000002";

test("a conversation is listed and imported by the owner, once, and read as a thread", async () => {
  await using world = await openHttpWorld();
  const folder = path.join(world.home, ".claude/projects/-work");
  await mkdir(folder, { recursive: true });
  const line = {
    type: "user",
    cwd: world.home,
    timestamp: "2026-11-19T10:00:00Z",
    message: { role: "user", content: "hello there" },
  };
  await writeFile(path.join(folder, `${HANDLE}.jsonl`), `${JSON.stringify(line)}\n`);
  const list = async () => ConversationList.parse((await world.ask("/api/conversations?limit=5")).json);
  expect(await list()).toMatchObject({ data: [{ from: "claude", handle: HANDLE, title: "hello there" }], total: 1 });
  const body = { handle: HANDLE.slice(0, 8), from: "claude" };
  const take = async () =>
    ImportedConversation.parse((await world.ask("/api/conversations/import", { method: "POST", body })).json);
  const imported = await take();
  expect(imported).toMatchObject({ from: "claude", handle: HANDLE, items: 1 });
  expect(await take()).toEqual({ ...imported, items: 0 });
  expect((await list()).data).toMatchObject([{ threadId: imported.threadId }]);
  expect((await world.ask(`/api/threads/${imported.threadId}`)).json).toMatchObject({
    origin: `import:claude:${HANDLE}`,
    title: "hello there",
    turnCount: 0,
  });
  const missing = await world.ask("/api/conversations/import", { method: "POST", body: { handle: "ffffffff" } });
  expect(missing).toMatchObject({ status: 404, json: { error: { code: "thread.not-found" } } });
});
