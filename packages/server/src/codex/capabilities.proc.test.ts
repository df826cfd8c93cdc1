/** W1, W9: nothing is answered before the handshake. What a client says it can do adds to what it hears, and never takes from the stream of threads, turns and items. */
import { CODEX_PARAMS } from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { text, type ChatClient } from "../../test/chat-client.ts";
import { openChatWorld, type ChatWorld } from "../../test/chat-world.ts";

const CAPABILITIES: Readonly<Record<string, unknown>> = {
  absent: undefined,
  null: null,
  empty: {},
  "those of tomorrow": { envelopes: true, someday: { deep: [1] }, requestAttestation: true },
  experiments: { experimentalApi: true, envelopes: true },
  muted: { optOutNotificationMethods: ["item/agentMessage/delta", "nothing/known"] },
};

/** Told only to those who asked for experiments. */
const ADDED = new Set(["thread/settings/updated", "thread/queue/changed"]);

async function follower(world: ChatWorld, capabilities: unknown, threadId: string): Promise<ChatClient> {
  const client = await world.client();
  const given = capabilities === undefined ? {} : { capabilities };
  await client.call("initialize", { clientInfo: { name: "probe", version: "0" }, ...given });
  await client.call("thread/resume", { threadId });
  return client;
}

/** Everything about the thread, without the time it was sent. */
function streamOf({ received }: ChatClient, from: number): readonly unknown[] {
  return received
    .slice(from)
    .filter(({ method }) => method !== undefined && /^(thread|turn|item)\//.test(method) && !ADDED.has(method))
    .map(({ method, params }) => ({ method, params }));
}

/** What a client was told before it is answered has reached it. */
const flush = (client: ChatClient): Promise<unknown> => client.call("thread/loaded/list");

test("W9: a client without capabilities gets the same threads, turns and items as one with all of them", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) =>
      answers === 0
        ? { calls: [{ tool: "exec_command", args: { cmd: "echo hi" } }] }
        : { text: "some words of an answer" },
  });
  const { chatId } = await world.chat();
  const clients = new Map<string, ChatClient>();
  for (const [name, capabilities] of Object.entries(CAPABILITIES)) {
    clients.set(name, await follower(world, capabilities, chatId));
  }
  const joined = new Map<ChatClient, number>();
  for (const client of clients.values()) {
    await flush(client);
    joined.set(client, client.received.length);
  }
  const [first] = clients.values();
  const input = [{ type: "text", text: "go" }];
  const turnId = text(await first?.call("turn/start", { threadId: chatId, input }), "turn.id");
  for (const client of clients.values()) {
    await client.waitFor(({ method }) => method === "turn/completed");
    await flush(client);
  }
  const told = (client: ChatClient) => streamOf(client, joined.get(client) ?? 0);
  const plain = first === undefined ? [] : told(first);
  const methods = plain.map((one) => (one as { readonly method: string }).method);
  for (const method of [
    "turn/started",
    "item/started",
    "item/agentMessage/delta",
    "item/completed",
    "turn/completed",
  ]) {
    expect(methods).toContain(method);
  }
  expect(JSON.stringify(plain.at(-1))).toContain(turnId);
  for (const [name, client] of clients) {
    const isMuted = name === "muted";
    const expected = plain.filter((_, at) => !isMuted || methods[at] !== "item/agentMessage/delta");
    expect([name, told(client)]).toEqual([name, expected]);
  }
});

test("W1: before initialize no method does anything, with whatever params", async () => {
  await using world = await openChatWorld();
  const { chatId } = await world.chat();
  const before = await world.heddle.journal.position();
  const client = await world.client();
  const params = {
    threadId: chatId,
    turnId: "t",
    input: [],
    name: "n",
    path: world.workspace,
    command: ["true"],
    cwds: [],
  };
  const answers = new Map<string, string>();
  for (const method of Object.keys(CODEX_PARAMS)) {
    if (method === "initialize") continue;
    const { error } = await client.ask(method, params);
    answers.set(method, `${error?.code} ${error?.message}`);
  }
  // What cannot be read is refused first, as in the original.
  const others = [...answers].filter(([, said]) => !/^-32600 (Not initialized$|Invalid request: )/.test(said));
  expect(others).toEqual([]);
  expect([...answers.values()].filter((said) => said === "-32600 Not initialized").length).toBeGreaterThan(30);
  expect(await world.heddle.journal.position()).toBe(before);
  expect(client.received.filter(({ method }) => method !== undefined)).toEqual([]);
});
