/** C1, C3, C4, C13, C15: every method with good and bad params, for everybody, over a real socket. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { CHAT_METHODS, chatSchema, type ChatMethod } from "@heddle/dialects/chat";
import { describe, expect, test } from "vitest";
import { at, list, text, type ChatClient } from "../../test/chat-client.ts";
import { openChatWorld, type ChatWorld } from "../../test/chat-world.ts";
import { ROLES, scopeAllows } from "../access/principals.ts";
import { CHAT_TABLE } from "./methods.ts";

const METHODS = Object.keys(CHAT_METHODS) as ChatMethod[];
const schema = chatSchema();

interface Prepared {
  readonly client: ChatClient;
  readonly chatId: string;
  readonly approvalId: string;
  readonly turnId: string;
  readonly subscriptionId: string;
}

/** A chat with a turn that has ended and one that waits for an answer. */
async function prepare(world: ChatWorld): Promise<Prepared> {
  const { client, chatId } = await world.chat({ approval_policy: "untrusted" });
  await writeFile(path.join(world.workspace, "needle.txt"), "x");
  await mkdir(path.join(world.workspace, ".agents/skills/fix"), { recursive: true });
  const skill = "---\nname: fix\ndescription: Fixes things\n---\nFix it.\n";
  await writeFile(path.join(world.workspace, ".agents/skills/fix/SKILL.md"), skill);
  const turnId = text(await client.call("chat.message.send", { chat_id: chatId, message: "one" }), "turn_id");
  await client.end(turnId);
  await client.call("chat.message.send", { chat_id: chatId, message: "two" });
  const approvalId = text(await client.topic("chat.approval.required"), "params.request_id");
  const subscriptionId = text(await client.call("events.subscribe", { topic: "chat.list" }), "subscription_id");
  return { client, chatId, approvalId, turnId, subscriptionId };
}

const open = (): Promise<ChatWorld> =>
  openChatWorld({
    background: {},
    respond: ({ body }) =>
      JSON.stringify(body).includes('"two"')
        ? { calls: [{ tool: "exec_command", args: { cmd: "touch x" } }] }
        : { text: "ok" },
  });

/** Params that every method takes, in the order in which they can be called. */
function good({ chatId, approvalId, turnId, subscriptionId }: Prepared): Readonly<Record<ChatMethod, unknown>> {
  const chat = { chat_id: chatId };
  return {
    hello: { protocol: { min: 1, max: 3 }, client_id: "t" },
    "chat.create": { title: "Titled", settings: { model: "gpt-5.5" } },
    "chat.resume": { ...chat, after_seq: 1 },
    "chat.list": { limit: 10 },
    "chat.thread.list": {},
    "chat.thread.read": { ...chat, include_turns: true, limit: 1 },
    "chat.thread.rename": { ...chat, title: "New name" },
    "chat.settings.update": { ...chat, settings: { effort: "low" } },
    "chat.files.search": { ...chat, query: "needle" },
    "chat.skills.list": chat,
    "chat.skills.config.write": { name: "fix", enabled: true },
    "chat.model.list": {},
    "chat.tools.list": { channel: "web", ...chat },
    "chat.collaboration.mode.list": {},
    "chat.account.read": {},
    "chat.account.list": {},
    "chat.account.login.start": { provider: "openai", method: "api_key", api_key: "sk-test-of-nobody-000000" },
    "chat.account.login.poll": { login_id: "key_1" },
    "chat.account.login.cancel": { login_id: "none" },
    "chat.account.refresh": { provider: "openai" },
    "chat.account.logout": { provider: "openai" },
    "chat.events.list": { ...chat, after_seq: 0, limit: 3 },
    "events.subscribe": { topic: "chat.turn.*", after: { [chatId]: 0 } },
    "events.unsubscribe": { subscription_id: subscriptionId },
    "chat.thread.fork": { ...chat, at_turn: turnId },
    "chat.message.send": { ...chat, message: [{ type: "text", text: "three" }], client_message_id: "m" },
    "chat.approval.respond": { request_id: approvalId, decision: "decline" },
    "chat.cancel": { ...chat, turn_id: turnId },
    "chat.thread.summarize": chat,
    "chat.thread.archive": chat,
    "chat.thread.unarchive": chat,
    "chat.thread.delete": chat,
  };
}

/** Of these the good params meet a refusal with a code of its own: there is no such login, and a turn still runs. */
const REFUSED: Readonly<Record<string, number>> = {
  "chat.account.login.cancel": -32002,
  "chat.account.refresh": -32000,
  "chat.thread.delete": -32000,
};

test("C1 every method answers good params as its schema says", async () => {
  await using world = await open();
  const prepared = await prepare(world);
  for (const [method, params] of Object.entries(good(prepared))) {
    const { result, error } = await prepared.client.ask(method, params);
    if (REFUSED[method] !== undefined) {
      expect([method, error?.code]).toEqual([method, REFUSED[method]]);
      continue;
    }
    const parsed = CHAT_METHODS[method as ChatMethod].result.safeParse(result);
    expect([method, error, parsed.error?.issues]).toEqual([method, undefined, undefined]);
  }
  const found = await prepared.client.call("chat.files.search", { chat_id: prepared.chatId, query: "NEEDLE" });
  expect(at(found, "files.0")).toMatchObject({ relative_path: "needle.txt", type: "file" });
  const outside = { chat_id: prepared.chatId, query: "x", base_path: "/etc" };
  expect(await prepared.client.ask("chat.files.search", outside)).toMatchObject({ error: { code: -32602 } });
});

test("C1 what is missing or of the wrong kind is named, and nothing happens", async () => {
  await using world = await open();
  const prepared = await prepare(world);
  const before = await world.heddle.journal.position();
  let looked = 0;
  for (const [method, params] of Object.entries(good(prepared))) {
    const shape = at(schema, `methods.${method}`) ?? new Map(Object.entries(at(schema, "methods") ?? {})).get(method);
    const properties = Object.keys((at(shape, "params.properties") as object | undefined) ?? {});
    const required = (at(shape, "params.required") as string[] | undefined) ?? [];
    for (const field of required) {
      const { [field]: _left, ...rest } = params as Record<string, unknown>;
      const { error } = await prepared.client.ask(method, rest);
      expect([method, error?.code, at(error, "data.field")]).toEqual([method, -32602, field]);
      looked += 1;
    }
    for (const field of properties) {
      const { error } = await prepared.client.ask(method, { ...(params as object), [field]: [[Number.MAX_VALUE]] });
      expect([method, field, error?.code]).toEqual([method, field, -32602]);
      expect(text(error, "data.field").split(".")[0]).toBe(field);
      expect(text(error, "message")).toContain(field);
      looked += 1;
    }
  }
  expect(looked).toBeGreaterThan(60);
  expect(await world.heddle.journal.position()).toBe(before);
});

test("C3 older names work on the wire, and their listeners hear older topics", async () => {
  await using world = await openChatWorld({ script: [{ text: "one" }] });
  const client = await world.client();
  await client.call("agent.chat.event.subscribe", { topic: "agent.chat.*" });
  const chatId = text(await client.call("agent.codex.create"), "chat_id");
  await client.call("agent.chat.message.send", { chatId, message: "x" });
  await client.topic("agent.chat.turn.completed");
  expect(client.topics().some((topic) => topic.startsWith("chat."))).toBe(false);
  expect(at(await client.call("agent.chat.list"), "chats.0.chat_id")).toBe(chatId);
});

describe("C13 roles", () => {
  test("every method has a scope, and whoever has it not is told so before anything else", async () => {
    await using world = await openChatWorld();
    for (const role of ROLES) {
      const client = await world.client(role);
      for (const method of METHODS) {
        const [scope] = CHAT_TABLE[method];
        // Whatever the params are: who may not ask learns nothing about them.
        const { error } = await client.ask(method, { nothing: "of use", protocol: 1 });
        expect([role, method, error?.code === -32001]).toEqual([role, method, !scopeAllows(role, scope)]);
      }
    }
  });

  test("a viewer reads and changes nothing; a user works and reaches no accounts", () => {
    const of = (scope: string): string[] => METHODS.filter((method) => CHAT_TABLE[method][0] === scope);
    expect(
      of("read").filter((method) =>
        /send|create|cancel|respond|archive|delete|fork|rename|update|login|logout/.test(method),
      ),
    ).toEqual([]);
    expect(of("admin").sort()).toEqual([
      "chat.account.login.cancel",
      "chat.account.login.poll",
      "chat.account.login.start",
      "chat.account.logout",
      "chat.account.refresh",
      "chat.skills.config.write",
      "chat.thread.delete",
    ]);
    expect(of("read").length + of("write").length + of("admin").length).toBe(METHODS.length);
  });
});

test("C15 both sides speak the highest version they share, or part", async () => {
  await using world = await openChatWorld();
  const client = await world.client("viewer");
  expect(await client.call("hello", { protocol: { min: 0, max: 7 } })).toMatchObject({
    type: "hello",
    protocol_version: 1,
    identity: { role: "viewer" },
  });
  expect(await client.ask("hello", { protocol: { min: 2, max: 7 } })).toMatchObject({
    error: { code: -32600, data: { code: "version_mismatch", min: 1, max: 1 } },
  });
  expect(await client.ask("hello", { protocol: { min: 3, max: 1 } })).toMatchObject({ error: { code: -32602 } });
  expect(await client.ask("chat.nothing")).toMatchObject({ error: { code: -32601 } });
  expect(await client.ask("initialize", {})).toMatchObject({ error: { code: -32601 } });
});

test(
  "C4 ten thousand random params never bring down the server, and never find a fault nobody foresaw",
  { timeout: 240_000 },
  async () => {
    await using world = await openChatWorld({ respond: () => ({ text: "ok" }) });
    const { client, chatId } = await world.chat();
    const random = mulberry(20_261_115);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const fields = METHODS.map((method) => {
      const shape = new Map(Object.entries(at(schema, "methods") ?? {})).get(method);
      return [method, Object.keys((at(shape, "params.properties") as object | undefined) ?? {})] as const;
    });
    const value = (depth = 0): unknown => {
      const kinds = [
        () => chatId,
        () =>
          pick([
            "",
            "x",
            "low",
            "accept",
            "chat.*",
            "\u0000\u{1F600}\uD800",
            "../../etc",
            "a".repeat(5_000),
            "__proto__",
          ]),
        () => pick([0, -1, 1.5, 1e308, 3, 200, Number.MAX_SAFE_INTEGER]),
        () => pick([null, true, false]),
        () => (depth > 3 ? [] : Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1))),
        () =>
          depth > 3
            ? {}
            : Object.fromEntries(
                [pick(["model", "type", "text", "min", "mode", "constructor", chatId])].map((key) => [
                  key,
                  value(depth + 1),
                ]),
              ),
      ];
      return pick(kinds)();
    };
    const codes = new Map<number | "result", number>();
    for (let done = 0; done < 10_000; done += 250) {
      const answers = await Promise.all(
        Array.from({ length: 250 }, () => {
          const [method, names] = pick(fields);
          const params =
            random() < 0.1
              ? value()
              : Object.fromEntries(names.filter(() => random() < 0.7).map((name) => [name, value()]));
          return client.ask(method, params).then((answer) => ({ method, params, answer }));
        }),
      );
      for (const { method, params, answer } of answers) {
        const code = answer.error?.code ?? "result";
        if (code === -32603)
          throw new Error(`${method} ${JSON.stringify(params).slice(0, 500)}: ${answer.error?.message}`);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    }
    expect([...codes.values()].reduce((all, count) => all + count)).toBe(10_000);
    expect(codes.get("result")).toBeGreaterThan(500);
    expect(codes.get(-32602)).toBeGreaterThan(1_000);
    expect(list(await client.call("chat.list"), "chats").length).toBeGreaterThan(0);
  },
);

/** The same numbers in every run. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
