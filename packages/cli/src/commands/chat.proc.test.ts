/** The chat dialect through the real program: every transport, kill −9, what waits, titles, the example. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  connectTo,
  KEY,
  list,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  text,
  type Client,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

const sh = (cmd: string) => ({ tool: "exec_command", args: { cmd } });
const isTitle = (body: unknown): boolean => JSON.stringify(body).includes("You give conversations a title");

async function open(options: ModelServerOptions): Promise<AsyncDisposable & { readonly world: World }> {
  const world = await openWorld();
  const model = await startModelServer(options);
  await pointAt(world, model.url);
  return {
    world,
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const ends = (client: Client, turnId: string, from = 0): Promise<Wire> =>
  client.waitFor((wire) => wire.method === "chat.turn.completed" && at(wire, "params.turnId") === turnId, from);

/** Asks until the answer fits; the server decides when that is. */
async function until(ask: () => Promise<unknown>, fits: (answer: unknown) => boolean): Promise<unknown> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const answer = await ask();
    if (fits(answer)) return answer;
    if (performance.now() > deadline) throw new Error(`it did not come to that: ${JSON.stringify(answer)}`);
  }
}

test("C10 killed in mid-turn: the turn is interrupted with its partial items, the question can still be answered, nothing told is lost, what waits runs", async () => {
  await using opened = await open({
    respond: ({ body }) => {
      const said = JSON.stringify(body);
      if (isTitle(body)) return { text: "Title" };
      if (said.includes("function_call_output")) return { text: "asked" };
      if (said.includes("ask me")) return { calls: [sh("touch asked")] };
      return said.includes("later")
        ? { text: "after the restart" }
        : { text: "words that came before the end ".repeat(20) };
    },
    faults: ({ body }) =>
      JSON.stringify(body).includes("break off") && !JSON.stringify(body).includes("later")
        ? { kind: "stall", at: "after-last-delta" }
        : undefined,
  });
  const { world } = opened;
  const first = await serveOnSocket(world);
  using one = await connectTo(first.socket);
  await one.client.call("events.subscribe", { topic: "chat.*" });
  const create = (settings: unknown) => one.client.call("chat.create", { settings });
  const cut = text(await create({}), "chat_id");
  const asked = text(await create({ approval_policy: "untrusted" }), "chat_id");
  const cutTurn = text(await one.client.call("chat.message.send", { chat_id: cut, message: "break off" }), "turn_id");
  const waiting = { chat_id: cut, message: "later", client_message_id: "later-1" };
  const queued = await one.client.call("chat.message.send", waiting);
  expect(queued).toMatchObject({ queued: true });
  const askTurn = text(await one.client.call("chat.message.send", { chat_id: asked, message: "ask me" }), "turn_id");
  await one.client.note("chat.approval.required");
  const read = () => one.client.call("chat.thread.read", { chat_id: cut, include_turns: true });
  const words = (view: unknown): string =>
    list(view, "thread.turns.0.items")
      .map((item) => (at(item, "type") === "agentMessage" ? text(item, "text") : ""))
      .join("");
  await until(read, (view) => words(view).includes("words that came"));
  const received = one.client.received.filter(
    ({ method, params }) => method?.startsWith("chat.") === true && at(params, "live") !== true,
  );

  const gone = first.running.ended;
  first.running.child.kill("SIGKILL");
  await gone;
  await using second = await serveOnSocket(world);
  using two = await connectTo(second.socket);
  const client = two.client;
  await client.call("events.subscribe", { topic: "chat.*", after: { [cut]: 0, [asked]: 0 } });
  expect(await ends(client, text(queued, "turn_id"))).toMatchObject({ params: { status: "completed" } });
  expect(await client.call("chat.message.send", waiting)).toMatchObject({
    duplicate: true,
    turn_id: text(queued, "turn_id"),
  });

  const view = await client.call("chat.thread.read", { chat_id: cut, include_turns: true });
  expect(list(view, "thread.turns").map((turn) => [at(turn, "id"), at(turn, "status")])).toEqual([
    [cutTurn, "interrupted"],
    [text(queued, "turn_id"), "completed"],
  ]);
  expect(at(view, "thread.turns.0.error.code")).toBe("turn.abandoned");
  expect(words(view)).toContain("words that came before the end");
  // The question still waits, and its answer lets the same turn go on.
  const still = await client.call("chat.thread.read", { chat_id: asked });
  expect(at(still, "thread")).toMatchObject({
    pending_approvals: [{ kind: "command", command: "touch asked" }],
    active_turn_id: askTurn,
  });
  const answer = { request_id: text(still, "thread.pending_approvals.0.request_id"), decision: "accept" };
  expect(await client.call("chat.approval.respond", answer)).toEqual({ ok: true });
  expect(await client.call("chat.approval.respond", answer)).toEqual({ ok: true, already: true });
  expect(await client.waitFor((wire) => wire.method === "chat.approval.resolved")).toMatchObject({
    params: { decision: "accept", by: "user:owner", chat_id: asked },
  });
  expect(await ends(client, askTurn)).toMatchObject({ params: { status: "completed" } });
  // Everything that was told before is there, under the same number and in the same words.
  for (const chatId of [cut, asked]) {
    const kept = list(await client.call("chat.events.list", { chat_id: chatId, after_seq: 0, limit: 1000 }), "events");
    const before = received.filter(({ params }) => at(params, "chat_id") === chatId);
    expect(before.length).toBeGreaterThan(3);
    expect(kept.slice(0, before.length)).toEqual(
      before.map(({ method, params }) => ({ topic: method, ...(params as object) })),
    );
  }
});

test("both dialects live on one server: a thread of Codex's is a chat, and the other way round", async () => {
  await using opened = await open({ respond: () => ({ text: "said" }) });
  await using server = await serveOnSocket(opened.world);
  using codex = await connectTo(server.socket);
  using chat = await connectTo(server.socket);
  await codex.client.initialize();
  await chat.client.call("events.subscribe", { topic: "chat.*" });
  const threadId = text(await codex.client.call("thread/start", {}), "thread.id");
  const ran = await runTurn(codex.client, threadId, "hello");
  expect(await ends(chat.client, ran.turnId)).toMatchObject({ params: { chat_id: threadId, status: "completed" } });
  const sent = await chat.client.call("chat.message.send", { chat_id: threadId, message: "and more" });
  const end = await codex.client.waitFor(
    (wire) => wire.method === "turn/completed" && at(wire, "params.turn.id") === text(sent, "turn_id"),
  );
  expect(at(end, "params.turn.status")).toBe("completed");
  expect(await chat.client.ask("thread/start", {})).toMatchObject({ error: { code: -32601 } });
  expect(await codex.client.ask("chat.list", {})).toMatchObject({ error: { code: -32600 } });
});

test("standard streams: a chat from its beginning to its title; with background.model = off there is none", async () => {
  await using opened = await open({
    respond: ({ body }) => (isTitle(body) ? { text: "A good title" } : { text: "said" }),
  });
  for (const args of [[], ["-c", "background.model=off"]]) {
    await using served = serve(args, { world: opened.world, env: KEY });
    const { client } = served;
    await client.call("events.subscribe", { topic: "chat.*" });
    const chatId = text(await client.call("chat.create", {}), "chat_id");
    await ends(client, text(await client.call("chat.message.send", { chat_id: chatId, message: "a word" }), "turn_id"));
    if (args.length === 0) await client.waitFor((wire) => at(wire, "params.title") === "A good title");
    const view = await client.call("chat.thread.read", { chat_id: chatId });
    expect(at(view, "thread")).toMatchObject(
      args.length === 0 ? { title: "A good title", title_source: "auto" } : { title: "a word", title_source: "auto" },
    );
    expect(list(await client.call("chat.account.list"), "providers").length).toBeGreaterThan(1);
    client.end();
    expect(await served.running.ended).toMatchObject({ code: 0 });
  }
});

test("a server that is told to stop ends its chats' turns, and their clients hear of it", async () => {
  await using opened = await open({ respond: () => ({ calls: [sh("sleep 60")] }) });
  await using server = await serveOnSocket(opened.world);
  using connected = await connectTo(server.socket);
  const { client } = connected;
  await client.call("events.subscribe", { topic: "chat.*" });
  const chatId = text(await client.call("chat.create", {}), "chat_id");
  const turnId = text(await client.call("chat.message.send", { chat_id: chatId, message: "x" }), "turn_id");
  await client.waitFor((wire) => at(wire, "params.item.type") === "commandExecution");
  server.running.child.kill("SIGTERM");
  expect(await ends(client, turnId)).toMatchObject({ params: { status: "interrupted" } });
  expect((await server.running.ended).signal).toBeNull();
});

test("the example of the documentation runs over WebSocket, goes on with a chat, and is short", async () => {
  await using opened = await open({
    respond: ({ body }) => (isTitle(body) ? { text: "T" } : { text: "hello from the chat" }),
  });
  await using _served = await startServe(opened.world);
  const example = path.join(import.meta.dirname, "../../../../examples/chat-client.mjs");
  const ran = await run(["say hello"], { world: opened.world, launcher: example });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const [, chatId = ""] = /^hello from the chat\ncompleted \(chat ([0-9a-f-]{36})\)\n$/.exec(ran.stdout) ?? [];
  expect(chatId).not.toBe("");
  const again = await run(["and again", chatId], { world: opened.world, launcher: example });
  expect(again.stdout).toBe(`hello from the chat\ncompleted (chat ${chatId})\n`);
  expect((await readFile(example, "utf8")).trimEnd().split("\n").length).toBeLessThanOrEqual(60);
});

test("over WebSocket a token decides: a viewer follows the owner's chat and changes nothing", async () => {
  await using opened = await open({ respond: ({ body }) => (isTitle(body) ? { text: "T" } : { text: "said" }) });
  const { world } = opened;
  await using served = await startServe(world);
  const made = await run(["token", "add", "viewer", "eve"], { world });
  const token = made.stdout.trim();
  using owner = await dial(served.url, served.token);
  using viewer = await dial(served.url, token);
  expect(at(await viewer.ask("hello", { protocol: { min: 1, max: 1 } }), "result.identity")).toEqual({
    name: "eve",
    role: "viewer",
  });
  await viewer.ask("events.subscribe", { topic: "chat.turn.*" });
  const chatId = text(await owner.ask("chat.create", {}), "result.chat_id");
  for (const [method, params] of [
    ["chat.message.send", { chat_id: chatId, message: "x" }],
    ["chat.thread.delete", { chat_id: chatId }],
    ["chat.account.logout", { provider: "openai" }],
  ] as const) {
    expect(at(await viewer.ask(method, params), "error.code")).toBe(-32001);
  }
  const sent = await owner.ask("chat.message.send", { chat_id: chatId, message: "x" });
  const end = await viewer.waitFor(({ method }) => method === "chat.turn.completed");
  expect(end.params).toMatchObject({ turnId: text(sent, "result.turn_id"), status: "completed" });
  expect(at(await viewer.ask("chat.list"), "result.chats.0.chat_id")).toBe(chatId);
});

interface Dialled extends Disposable {
  ask(method: string, params?: unknown): Promise<Wire>;
  waitFor(fits: (wire: Wire) => boolean): Promise<Wire>;
}

async function dial(url: string, token: string): Promise<Dialled> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/?token=${token}`);
  const received: Wire[] = [];
  const waiting = new Set<() => void>();
  socket.addEventListener("message", ({ data }) => {
    received.push(JSON.parse(String(data)) as Wire);
    for (const wake of waiting) wake();
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("error", () => reject(new Error(`nobody answers at ${url}`)));
  });
  const waitFor = async (fits: (wire: Wire) => boolean): Promise<Wire> => {
    for (;;) {
      const found = received.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
  };
  let next = 1;
  return {
    waitFor,
    ask(method, params = {}) {
      const id = next++;
      socket.send(JSON.stringify({ id, method, params }));
      return waitFor((wire) => wire.id === id);
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
