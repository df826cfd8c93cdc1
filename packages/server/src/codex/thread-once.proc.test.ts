/** F17 for threads: the same client id is the same thread at every door, and with other content it is a conflict. */
import { expect, test } from "vitest";
import type { ChatClient } from "../../test/chat-client.ts";
import { openChatWorld } from "../../test/chat-world.ts";
import { openHttpWorld } from "../../test/http-world.ts";

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}

test("F17 POST /api/threads: fifty requests at once with one client id make one thread, other words a conflict", async () => {
  await using world = await openHttpWorld();
  const create = (body: unknown) => world.ask("/api/threads", { method: "POST", body });
  const asked = { clientId: "mine-1", name: "The one" };
  const answers = await Promise.all(Array.from({ length: 50 }, () => create(asked)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(answers.map(({ json }) => field(json, "id"))).size).toBe(1);
  const id = String(field(answers[0]?.json, "id"));
  expect(await world.heddle.journal.threads.list({ limit: 10 })).toHaveLength(1);
  expect((await world.heddle.journal.threads.get(id))?.name).toBe("The one");
  const other = await create({ ...asked, name: "Another" });
  expect(other).toMatchObject({ status: 409, json: { error: { code: "store.id-conflict" } } });
  // What happened to it since is not undone by asking again.
  await world.heddle.as("user:owner").nameThread({ threadId: id, name: "Renamed" });
  expect(await create(asked)).toMatchObject({ status: 201, json: { id, name: "Renamed" } });
  await world.heddle.as("user:owner").deleteThread({ threadId: id, reason: "test" });
  expect(await create(asked)).toMatchObject({ status: 409 });
  expect(await create({ name: "x".repeat(300) })).toMatchObject({ status: 400 });
  expect(await world.heddle.journal.threads.list({ limit: 10 })).toEqual([]);
});

test("F17 chat.create: the same client_chat_id again is the same chat, with its settings, also for another client", async () => {
  await using world = await openChatWorld();
  const [one, two]: readonly ChatClient[] = [await world.client(), await world.client()];
  if (one === undefined || two === undefined) throw new Error("two clients");
  const params = { client_chat_id: "c-1", title: "Plan", settings: { model: "m-1" } };
  const first = await one.call("chat.create", params);
  expect(await two.call("chat.create", params)).toEqual(first);
  const row = await world.heddle.journal.threads.get(String(field(first, "chat_id")));
  expect(row).toMatchObject({ title: "Plan", settings: { model: "m-1" } });
  const { error } = await one.ask("chat.create", { ...params, settings: { model: "m-2" } });
  expect(error).toMatchObject({ data: { code: "store.id-conflict" } });
  expect(await one.call("chat.create", { ...params, client_chat_id: "c-2" })).not.toEqual(first);
});
