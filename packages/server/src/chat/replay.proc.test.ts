/** C6 and C12: nobody misses an event in silence, whether the connection breaks or the reader is slow. */
import { expect, test } from "vitest";
import { at, list, text, type ChatClient, type Received } from "../../test/chat-client.ts";
import { openChatWorld, type ChatWorld } from "../../test/chat-world.ts";

async function allEvents(client: ChatClient, chatId: string, after = 0): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  for (;;) {
    const page = list(
      await client.call("chat.events.list", { chat_id: chatId, after_seq: after + events.length, limit: 500 }),
      "events",
    );
    if (page.length === 0) return events;
    events.push(...page);
  }
}

const seqOf = (event: unknown): number => Number(at(event, "seq"));
const listed = ({ method, params }: Received): unknown => ({ topic: method, ...params });

/** Turns and renames without pause, until it is told to stop. */
async function keepBusy(world: ChatWorld, chatId: string, signal: AbortSignal): Promise<void> {
  const client = await world.client();
  await client.call("events.subscribe", { topic: "chat.turn.completed" });
  for (let round = 0; !signal.aborted; round += 1) {
    const sent = await client.call("chat.message.send", { chat_id: chatId, message: `round ${round}` });
    for (let more = 0; more < 5; more += 1) {
      await client.call("chat.thread.rename", { chat_id: chatId, title: `t${round}.${more}` });
    }
    await client.end(text(sent, "turn_id"));
  }
}

test(
  "C6 under 200 disconnects what was replayed and what was live are the whole list, each event once",
  { timeout: 240_000 },
  async () => {
    await using world = await openChatWorld({
      respond: () => ({ text: "some words that come in several pieces, one after the other" }),
    });
    const { client, chatId } = await world.chat();
    const stop = new AbortController();
    const busy = keepBusy(world, chatId, stop.signal);
    const collected: unknown[] = [];
    let replayed = 0;
    for (let connection = 0; connection < 200; connection += 1) {
      const reader = await world.client();
      const last = collected.length === 0 ? 0 : seqOf(collected.at(-1));
      await reader.call("events.subscribe", { topic: "chat.*", after: { [chatId]: last } });
      // Some leave at once, some in the middle of what they missed, some after a while of live events.
      if (connection % 4 !== 0)
        await reader.waitFor(({ params }) => Number(params?.["seq"]) >= last + (connection % 7));
      reader.socket.destroy();
      const received = reader.events.map(listed);
      replayed += received.length;
      collected.push(...received);
    }
    stop.abort();
    await busy;
    const rest = await world.client();
    await rest.call("events.subscribe", { topic: "chat.*", after: { [chatId]: seqOf(collected.at(-1)) } });
    const all = await allEvents(client, chatId);
    await rest.waitFor(({ params }) => Number(params?.["seq"]) >= all.length || seqOf(collected.at(-1)) >= all.length);
    collected.push(...rest.events.map(listed));
    expect(replayed).toBeGreaterThan(200);
    expect(collected.map(seqOf)).toEqual(Array.from({ length: collected.length }, (_, index) => index + 1));
    expect(collected.slice(0, all.length)).toEqual(all);
    // Whoever never left has heard the same.
    await client.waitFor(({ params }) => Number(params?.["seq"]) >= all.length);
    expect(client.events.map(listed).slice(0, all.length)).toEqual(all);
    const row = await world.heddle.journal.threads.get(chatId);
    expect(row?.logEntries).toBeGreaterThanOrEqual(all.length);
  },
);

test("C6 a number that is not there yet is refused with how far it goes", async () => {
  await using world = await openChatWorld();
  const { client, chatId } = await world.chat();
  for (const [method, params] of [
    ["chat.events.list", { chat_id: chatId, after_seq: 99 }],
    ["chat.resume", { chat_id: chatId, after_seq: 99 }],
    ["events.subscribe", { topic: "*", after: { [chatId]: 99 } }],
  ] as const) {
    expect(await client.ask(method, params)).toMatchObject({
      error: { data: { code: "cursor.expired", last_seq: 1 } },
    });
  }
  expect(await client.ask("events.subscribe", { topic: "*", after: { nobody: 0 } })).toMatchObject({
    error: { code: -32002 },
  });
});

test(
  "C12 a slow reader keeps its connection, is told how far the chat has come, and gets the rest by asking",
  { timeout: 240_000 },
  async () => {
    await using world = await openChatWorld();
    const { client: fast, chatId } = await world.chat();
    const slow = await world.client();
    await slow.call("events.subscribe", { topic: "chat.*" });
    slow.socket.pause();
    // Twelve megabytes: more than a socket and the server keep for anybody.
    const settings = { note: "x".repeat(60_000) };
    for (let change = 0; change < 200; change += 1)
      await fast.call("chat.settings.update", { chat_id: chatId, settings });
    const total = 201;
    await fast.waitFor(({ params }) => params?.["seq"] === total);
    slow.socket.resume();
    const told = await slow.topic("resync");
    const lastSeq = Number(told.params?.["last_seq"]);
    expect(told.params).toMatchObject({ chat_id: chatId, schema: 1 });
    const received = slow.events.map(({ params }) => Number(params?.["seq"])).filter((seq) => seq <= lastSeq);
    expect(received).toEqual(received.map((_, index) => index + 2));
    expect(received.length).toBeLessThan(total - 1);
    const missed = await allEvents(slow, chatId, received.at(-1));
    expect(missed.map(seqOf)).toEqual(
      Array.from({ length: total - (received.at(-1) ?? 0) }, (_, index) => (received.at(-1) ?? 0) + index + 1),
    );
    // And it is live again.
    await fast.call("chat.thread.rename", { chat_id: chatId, title: "after" });
    expect(await slow.waitFor(({ params }) => params?.["seq"] === total + 1)).toMatchObject({
      params: { title: "after" },
    });
    expect(fast.events.map(({ params }) => params?.["seq"])).toEqual(
      Array.from({ length: total + 1 }, (_, index) => index + 1),
    );
    expect(text(told, "params.reason")).toContain("slow");
  },
);

test("the answer to a call comes before what it sets going", async () => {
  await using world = await openChatWorld({ respond: () => ({ text: "ok" }) });
  const { client, chatId } = await world.chat();
  const sent = await client.call("chat.message.send", { chat_id: chatId, message: "x" });
  await client.end(text(sent, "turn_id"));
  const answer = client.received.findIndex(({ result }) => at(result, "turn_id") !== undefined);
  const began = client.received.findIndex(({ method }) => method === "chat.turn.started");
  expect(answer).toBeLessThan(began);
});
