import type { ItemDelta } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openHttpWorld, type HttpWorld } from "../../../test/http-world.ts";
import { follow, type SseClient } from "../../../test/sse-client.ts";

const seqs = ({ messages }: SseClient): number[] => messages.flatMap(({ id }) => (id === undefined ? [] : [id]));
const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);

const eventsOf = ({ url }: HttpWorld, threadId: string, query = ""): string =>
  `${url}/api/threads/${threadId}/events${query}`;

test("a client gets everything stored, then everything that comes, each once and in order", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  await world.append(threadId, 99);
  using client = await follow(eventsOf(world, threadId), world.tokens.viewer);
  expect((await client.waitFor(({ event }) => event === "caughtUp")).data).toEqual({ after: 100 });
  for (let count = 0; count < 20; count += 1) await world.append(threadId, 5);
  await client.waitFor(({ id }) => id === 200);
  expect(seqs(client)).toEqual(upTo(200));
  expect(client.messages[0]?.data).toMatchObject({
    threadId,
    seq: 1,
    author: "user:owner",
    body: { type: "thread.created" },
  });
  expect(client.response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
});

test("F16 C6: replay and live together are the whole list, each once, under random disconnects", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const total = 3_000;
  const writing = (async () => {
    for (let count = 0; count < total; count += 10) {
      await world.append(threadId, 10);
      await new Promise((resolve) => void setImmediate(resolve));
    }
  })();
  const readers = Array.from({ length: 5 }, async (_, reader) => {
    const seen: number[] = [];
    let cuts = 0;
    while (seen.at(-1) !== total + 1) {
      const last = seen.at(-1);
      // Both ways to say where to go on.
      const useHeader = (reader + cuts) % 2 === 0;
      const query = useHeader || last === undefined ? "?after=0" : `?after=${last}`;
      const headers = useHeader && last !== undefined ? { "last-event-id": String(last) } : undefined;
      using client = await follow(eventsOf(world, threadId, query), world.tokens.viewer, headers);
      // As many messages as chance says, then gone in the middle of whatever comes.
      const wanted = 1 + Math.floor(Math.random() * 200);
      await client.waitFor(({ id }) => client.messages.length > wanted || id === total + 1);
      seen.push(...seqs(client));
      cuts += 1;
    }
    return { seen, cuts };
  });
  await writing;
  const results = await Promise.all(readers);
  for (const { seen } of results) expect(seen).toEqual(upTo(total + 1));
  expect(results.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(20);
});

test("the stream of all threads goes on from the journal's position, past threads that were deleted", async () => {
  await using world = await openHttpWorld();
  const [first, second] = [await world.newThread(), await world.newThread()];
  await world.append(first, 3);
  await world.heddle.as("user:owner").deleteThread({ threadId: first });
  await world.append(second, 2);
  using all = await follow(`${world.url}/api/events`, world.tokens.viewer);
  await all.waitFor(({ event }) => event === "caughtUp");
  const told = all.messages.filter(({ id }) => id !== undefined);
  expect(told.map(({ data }) => [data["threadId"], data["seq"]])).toEqual([
    [second, 1],
    [first, 5],
    [second, 2],
    [second, 3],
  ]);
  using rest = await follow(`${world.url}/api/events?after=${told[1]?.id}`, world.tokens.viewer);
  await world.append(second, 1);
  await rest.waitFor(({ data }) => data["seq"] === 4);
  expect(seqs(rest)).toHaveLength(3);
});

test("G6: a cursor of another store, or of a deleted thread, is refused as expired", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const refused = { status: 410, json: { error: { code: "cursor.expired" } } };
  expect(await world.ask(`/api/threads/${threadId}/events?after=2`)).toMatchObject(refused);
  expect(await world.ask("/api/events?after=999")).toMatchObject(refused);
  expect(await world.ask("/api/events", { headers: { "last-event-id": "abc" } })).toMatchObject(refused);
  using client = await follow(eventsOf(world, threadId), world.tokens.viewer);
  await client.waitFor(({ event }) => event === "caughtUp");
  await world.heddle.as("user:owner").deleteThread({ threadId });
  expect((await client.waitFor(({ event }) => event === "end")).data).toEqual({ after: 2, reason: "deleted" });
  expect(await world.ask(`/api/threads/${threadId}/events?after=1`)).toMatchObject(refused);
});

test("deltas come on request, between the start and the end of their item, and concatenate", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const listeners = new Set<(delta: ItemDelta) => void>();
  const heddle = Object.assign(Object.create(world.heddle) as typeof world.heddle, {
    journal: world.heddle.journal,
    onDelta(_id: string, listener: (delta: ItemDelta) => void) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  });
  await using other = await openHttpWorld({ heddle });
  using client = await follow(eventsOf(other, threadId, "?deltas=true"), other.tokens.viewer);
  using plain = await follow(eventsOf(other, threadId), other.tokens.viewer);
  await Promise.all([client, plain].map((one) => one.waitFor(({ event }) => event === "caughtUp")));
  const publish = (delta: string): void => {
    for (const listener of listeners) listener({ threadId, turnId: "t", itemId: "i", channel: "text", delta });
  };
  const item = { type: "agentMessage", id: "i", text: "" } as const;
  const write = (type: "item.started" | "item.completed", text: string) =>
    world.heddle.journal.append({
      stream: threadId,
      author: "user:owner",
      events: [{ type, v: 1, turnId: "t", item: { ...item, text } }],
    });
  // Before anybody has read the start, as it happens when the model is fast.
  const started = write("item.started", "");
  publish("one ");
  await started;
  publish("two ");
  publish("three");
  await write("item.completed", "one two three");
  await Promise.all([client, plain].map((one) => one.waitFor(({ id }) => id === 3)));
  const kinds = client.messages.filter(({ event }) => event !== "caughtUp").map(({ event, id }) => id ?? event);
  expect(kinds).toEqual([1, 2, "delta", "delta", "delta", 3]);
  const deltas = client.messages.filter(({ event }) => event === "delta").map(({ data }) => data["delta"]);
  expect(deltas.join("")).toBe("one two three");
  expect(plain.messages.some(({ event }) => event === "delta")).toBe(false);
});

test("a reader that is slow, not stopped, misses nothing", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  using client = await follow(eventsOf(world, threadId), world.tokens.viewer);
  await client.waitFor(({ event }) => event === "caughtUp");
  client.response.pause();
  for (let count = 0; count < 200; count += 1) await world.append(threadId, 1, 100_000);
  client.response.resume();
  await client.waitFor(({ id }) => id === 201);
  expect(seqs(client)).toEqual(upTo(201));
});

test("heartbeats come while nothing else does, and a stopping server says so", async () => {
  const world = await openHttpWorld({ heartbeatMs: 20 });
  const threadId = await world.newThread();
  using client = await follow(eventsOf(world, threadId), world.tokens.viewer);
  let beats = 0;
  client.response.on("data", (part: string) => {
    if (part.includes(":\n\n")) beats += 1;
  });
  await expect.poll(() => beats).toBeGreaterThan(2);
  await world[Symbol.asyncDispose]();
  await client.ended;
  expect(client.messages.at(-1)).toMatchObject({ event: "end", data: { after: 1, reason: "stopping" } });
});
