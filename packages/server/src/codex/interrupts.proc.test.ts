/** F31: a turn is interrupted at every state it can be in. It has one end, soon, and the next turn starts. */
import { describe, expect, test } from "vitest";
import { at, text, type ChatClient } from "../../test/chat-client.ts";
import { openChatWorld, type ChatWorld, type ChatWorldOptions } from "../../test/chat-world.ts";

interface State {
  readonly name: string;
  readonly options: ChatWorldOptions;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Brings a turn there; its id. */
  readonly reach: (world: ChatWorld, client: ChatClient, chatId: string) => Promise<string>;
}

const END_MS = 6_000;
const slow = { tool: "exec_command", args: { cmd: "echo begun; exec sleep 61" } };
const first = (fault: NonNullable<ChatWorldOptions["faults"]>): ChatWorldOptions => ({
  respond: () => ({ text: "some words of an answer" }),
  faults: fault,
});

async function send(client: ChatClient, chatId: string, message: string): Promise<string> {
  return text(await client.call("chat.message.send", { chat_id: chatId, message }), "turn_id");
}

const item = (client: ChatClient, type: string) => client.waitFor(({ params }) => at(params, "item.type") === type);

const STATES: readonly State[] = [
  {
    name: "queued",
    options: { respond: ({ number }) => (number === 0 ? { calls: [slow] } : { text: "ok" }) },
    async reach(_world, client, chatId) {
      await send(client, chatId, "one");
      await item(client, "commandExecution");
      const turnId = await send(client, chatId, "two");
      await client.topic("chat.turn.queued");
      return turnId;
    },
  },
  {
    name: "connecting",
    options: first([{ kind: "stall", at: "before-headers" }]),
    async reach({ model }, client, chatId) {
      const turnId = await send(client, chatId, "one");
      await model.arrived(0);
      return turnId;
    },
  },
  {
    name: "streaming",
    options: first([{ kind: "stall", at: "after-last-delta" }]),
    async reach(_world, client, chatId) {
      const turnId = await send(client, chatId, "one");
      await client.topic("chat.message.delta");
      return turnId;
    },
  },
  {
    name: "tool",
    options: { respond: ({ number }) => (number === 0 ? { calls: [slow] } : { text: "ok" }) },
    async reach(_world, client, chatId) {
      const turnId = await send(client, chatId, "one");
      await client.topic("chat.command.output");
      return turnId;
    },
  },
  {
    name: "approval",
    options: { respond: ({ number }) => (number === 0 ? { calls: [slow] } : { text: "ok" }) },
    settings: { approval_policy: "untrusted" },
    async reach(_world, client, chatId) {
      const turnId = await send(client, chatId, "one");
      await client.topic("chat.approval.required");
      return turnId;
    },
  },
  {
    name: "retry sleep",
    options: first([{ kind: "status", status: 429, headers: { "retry-after": "60" } }]),
    async reach({ heddle }, client, chatId) {
      const turnId = await send(client, chatId, "one");
      const hasRetried = async (): Promise<boolean> =>
        (await heddle.journal.read({ stream: chatId, after: 0 })).some(({ body }) => body.type === "model.retried");
      await expect.poll(hasRetried, { timeout: 60_000 }).toBe(true);
      return turnId;
    },
  },
  {
    name: "compacting",
    options: {
      respond: () => ({ text: `answer ${"d".repeat(20_000)}` }),
      faults: [undefined, undefined, { kind: "stall", at: "after-headers" }],
      settings: { contextTokens: 20_000, compactAtTokens: 1_000_000 },
    },
    async reach(world, client, chatId) {
      for (const words of ["one", "two"]) await client.end(await send(client, chatId, words));
      const program = await world.client();
      await program.call("initialize", { clientInfo: { name: "probe", version: "0" } });
      await program.call("thread/resume", { threadId: chatId });
      await program.call("thread/compact/start", { threadId: chatId });
      await world.model.arrived(2);
      return text(await client.call("chat.thread.read", { chat_id: chatId }), "thread.active_turn_id");
    },
  },
];

describe("F31 an interrupt", () => {
  test.each(STATES)("while $name: one end within six seconds, and the next turn starts", async (state) => {
    await using world = await openChatWorld(state.options);
    const { client, chatId } = await world.chat(state.settings);
    const turnId = await state.reach(world, client, chatId);
    const askedAt = performance.now();
    const cancel = () => client.call("chat.cancel", { chat_id: chatId, turn_id: turnId });
    expect(await cancel()).toEqual({ ok: true, turn_id: turnId, status: "interrupted" });
    await client.end(turnId);
    expect(performance.now() - askedAt).toBeLessThan(END_MS);
    // Told again, it stays what it is.
    expect(await cancel()).toMatchObject({ status: "interrupted" });
    if (state.name === "queued") await client.call("chat.cancel", { chat_id: chatId });
    const next = await send(client, chatId, "go on");
    expect(await client.end(next)).toMatchObject({ params: { status: "completed" } });
    const bodies = (await world.heddle.journal.read({ stream: chatId, after: 0 })).map(({ body }) => body);
    const ends = bodies.flatMap((body) =>
      body.type === "turn.completed" && body.turnId === turnId ? [body.status] : [],
    );
    expect(ends).toEqual(state.name === "queued" ? [] : ["interrupted"]);
    const told = client.events.filter(
      ({ method, params }) => method === "chat.turn.completed" && params?.["turnId"] === turnId,
    );
    expect(told.map(({ params }) => params?.["status"])).toEqual(["interrupted"]);
  });
});
