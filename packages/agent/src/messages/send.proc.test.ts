/** Kills between sending and delivering: what was sent is delivered exactly once, or its end is on record. */
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { KEEPS, openMessageStore, type MessageStore } from "../../test/message-store.ts";
import { recoverMessages } from "./recover-messages.ts";

function sendInChild(store: MessageStore, args: readonly string[], failpoint: string) {
  const env = { PATH: process.env["PATH"], TMPDIR: tmpdir(), HEDDLE_FAILPOINT: failpoint };
  const file = join(inject("children"), "message-in-child.mjs");
  return spawnSync(process.execPath, [file, store.home, ...args], { env, timeout: 60_000, encoding: "utf8" });
}

async function typesOf(store: MessageStore, threadId: string): Promise<readonly string[]> {
  return (await store.bodies(threadId)).map(({ type }) => type).filter((type) => type.startsWith("message."));
}

test.each(["message.after-sent", "message.after-received"] as const)(
  "a sender killed at %s has sent once: whoever opens next delivers what was not, and the same again is the same",
  async (failpoint) => {
    await using store = await openMessageStore();
    const [from, to] = [await store.thread(), await store.thread()];
    expect(sendInChild(store, [from, to, "m-1"], `${failpoint}=kill`).signal).toBe("SIGKILL");
    for (let times = 0; times < 2; times += 1) await recoverMessages(store.journal, KEEPS);
    const again = sendInChild(store, [from, to, "m-1"], "");
    expect([again.status, JSON.parse(again.stdout)]).toEqual([0, { messageId: "m-1", threadId: to, how: "waits" }]);
    expect(await typesOf(store, from)).toEqual(["message.sent"]);
    expect(await typesOf(store, to)).toEqual(["message.received"]);
    expect((await store.journal.replay()).findings).toEqual([]);
  },
);

test("a receiver that was archived meanwhile: the end of the message is on record with its sender", async () => {
  await using store = await openMessageStore();
  const [from, to] = [await store.thread(), await store.thread()];
  sendInChild(store, [from, to, "m-1"], "message.after-sent=kill");
  const events = [{ type: "thread.archived", v: 1, isArchived: true }] as const;
  await store.journal.append({ stream: to, author: "user:owner", events });
  await recoverMessages(store.journal, KEEPS);
  expect(await typesOf(store, to)).toEqual([]);
  expect((await store.bodies(from)).at(-1)).toMatchObject({
    type: "message.settled",
    outcome: "refused",
    failure: { code: "agent.gone" },
  });
  expect(await store.journal.messages.loose({ limit: 10 })).toEqual([]);
});
