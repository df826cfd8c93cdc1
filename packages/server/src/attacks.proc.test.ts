/**
 * What a client of the JSON-RPC doors can try: S13 to S15, S29, S42 to S44 of the list in docs/inside/doors-attacks.md. One
 * real server, its clients on real sockets.
 */
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { CHAT_METHODS, type ChatMethod } from "@heddle/dialects/chat";
import { CODEX_METHODS, CODEX_PARAMS } from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { at, list, text, type ChatClient, type Received } from "../test/chat-client.ts";
import { codexClient as codex, openChatWorld } from "../test/chat-world.ts";
import { CHAT_TABLE } from "./chat/methods.ts";
import { ROUTES } from "./http/routes.ts";

/** Bytes as they are, and the answer to the id they carry. */
async function raw(client: ChatClient, id: number, bytes: string | Buffer): Promise<Received> {
  client.socket.write(Buffer.concat([Buffer.from(bytes), Buffer.from("\n")]));
  return client.waitFor((received) => received.id === id);
}

const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

test("S13: a message nested deeper than anything of use is refused by its id, in both dialects, and the connection lives", async () => {
  await using world = await openChatWorld();
  const { client, chatId } = await world.chat();
  const mode = (depth: number): string => `{"collaboration_mode":{"mode":"plan","settings":{"x":${nested(depth)}}}}`;
  for (const depth of [65, 100_000, 3_000_000]) {
    const params = `{"chat_id":"${chatId}","settings":${mode(depth)}}`;
    const answer = await raw(client, depth, `{"id":${depth},"method":"chat.settings.update","params":${params}}`);
    expect(answer.error).toMatchObject({ code: -32600, message: expect.stringContaining("deeper than 64") });
  }
  const good = `{"id":900,"method":"chat.settings.update","params":{"chat_id":"${chatId}","settings":${mode(50)}}}`;
  expect(await raw(client, 900, good)).toMatchObject({ result: { ok: true } });
  const program = await codex(world);
  const deep = `{"id":901,"method":"thread/start","params":{"config":{"x":${nested(100_000)}}}}`;
  expect(await raw(program, 901, deep)).toMatchObject({ error: { code: -32600 } });
  expect(await program.call("thread/loaded/list")).toMatchObject({ data: [] });
});

test("S14: names of prototypes in any params reach no prototype, and bring no setting with them", async () => {
  await using world = await openChatWorld({ respond: () => ({ text: "ok" }) });
  const { client, chatId } = await world.chat();
  const program = await codex(world);
  const json = '{"polluted":true,"sandbox":"danger-full-access","sandbox_mode":"danger-full-access"}';
  const evil = `"__proto__":${json},"constructor":{"prototype":${json}},"prototype":${json}`;
  let id = 5_000;
  for (const [speaker, methods] of [
    [client, Object.keys(CHAT_METHODS)],
    [program, Object.keys(CODEX_PARAMS)],
  ] as const) {
    for (const method of methods) {
      const inner = `{${evil},"chat_id":"${chatId}","settings":{${evil}},"config":{${evil}},"metadata":{${evil}},"env":{${evil}}}`;
      id += 1;
      await raw(speaker, id, `{"id":${id},"method":"${method}","params":${inner}}`);
      expect([method, Object.hasOwn(Object.prototype, "polluted")]).toEqual([method, false]);
    }
  }
  const fresh = await world.chat();
  const merge = `{"id":7001,"method":"chat.settings.update","params":{"chat_id":"${fresh.chatId}","settings":{"effort":"low",${evil}}}}`;
  await raw(fresh.client, 7001, merge);
  const sent = await fresh.client.call("chat.message.send", { chat_id: fresh.chatId, message: "go" });
  await fresh.client.end(text(sent, "turn_id"));
  expect(await world.heddle.lastSettings(fresh.chatId)).toMatchObject({ sandboxMode: "workspace-write" });
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test("S15: every method of codex app-server is refused to users and viewers, whichever comes first", async () => {
  await using world = await openChatWorld();
  const before = await world.heddle.journal.position();
  expect(CODEX_METHODS.size).toBeGreaterThan(100);
  for (const method of Object.keys(CODEX_PARAMS)) expect(CODEX_METHODS.has(method)).toBe(true);
  for (const role of ["user", "viewer"] as const) {
    const client = await world.client(role);
    for (const method of CODEX_METHODS.keys()) {
      // Whoever reads agents and evidence over JSON-RPC begins like everybody.
      if (method === "initialize") continue;
      const { error } = await client.ask(method, {});
      expect([role, method, error?.code, at(error, "data.code")]).toEqual([role, method, -32600, "door.forbidden"]);
    }
    // Whoever begins as a chat stays one.
    const chatting = await world.client(role);
    await chatting.call("chat.list");
    for (const method of Object.keys(CODEX_PARAMS)) {
      expect([method, (await chatting.ask(method, {})).error?.code]).toEqual([method, -32601]);
    }
  }
  expect(await world.heddle.journal.position()).toBe(before);
});

/** The same act at two doors. */
const SAME_ACTS: Readonly<Record<string, ChatMethod>> = {
  createThread: "chat.create",
  patchThread: "chat.thread.rename",
  archiveThread: "chat.thread.archive",
  unarchiveThread: "chat.thread.unarchive",
  deleteThread: "chat.thread.delete",
  forkThread: "chat.thread.fork",
  startTurn: "chat.message.send",
  interruptTurn: "chat.cancel",
  answerApproval: "chat.approval.respond",
  listThreads: "chat.list",
  readThread: "chat.thread.read",
  listModels: "chat.model.list",
};

test("S15: what one door refuses to a role, another does not allow", () => {
  for (const [route, method] of Object.entries(SAME_ACTS)) {
    const { scope } = ROUTES.find(({ name }) => name === route) ?? {};
    expect([route, scope]).toEqual([route, CHAT_TABLE[method][0]]);
  }
});

test("S15: a user points an agent at no folder outside of the server's, and an owner does", async () => {
  await using world = await openChatWorld();
  const [ssh, inside] = [path.join(world.root, ".ssh"), path.join(world.workspace, "inside")];
  for (const folder of [ssh, inside]) await mkdir(folder);
  await symlink(ssh, path.join(world.workspace, "way"));
  const user = await world.client("user");
  for (const cwd of [ssh, "/", "..", "../workspace/../.ssh", "way", `${world.workspace}x/..`, world.root]) {
    const { error } = await user.ask("chat.create", { cwd });
    expect([cwd, error?.code === -32001 || at(error, "data.code") === "workspace.missing"]).toEqual([cwd, true]);
  }
  for (const cwd of [world.workspace, ".", "inside", inside]) {
    expect(await user.call("chat.create", { cwd })).toMatchObject({ chat_id: expect.any(String) });
  }
  expect(await (await world.client()).call("chat.create", { cwd: ssh })).toMatchObject({ chat_id: expect.any(String) });
});

test("S17: a user lets no call out of its wall, its own turn's included, and an owner does", async () => {
  const outside = { cmd: "echo out", sandbox_permissions: "require_escalated", justification: "it must" };
  await using world = await openChatWorld({
    script: [{ calls: [{ tool: "exec_command", args: outside }] }, { text: "ok" }],
  });
  const { client: owner, chatId } = await world.chat({ approval_policy: "on-request" });
  const user = await world.client("user");
  const turnId = text(await user.call("chat.message.send", { chat_id: chatId, message: "go" }), "turn_id");
  const request_id = text(await owner.topic("chat.approval.required"), "params.request_id");
  for (const decision of ["accept", "accept_for_session"]) {
    const { error } = await user.ask("chat.approval.respond", { request_id, decision });
    expect([decision, error?.code, at(error, "data.code")]).toEqual([decision, -32001, "door.forbidden"]);
  }
  expect(await owner.call("chat.approval.respond", { request_id, decision: "accept" })).toEqual({ ok: true });
  expect(await owner.end(turnId)).toMatchObject({ params: { status: "completed" } });
});

test("S16: a user neither opens the walls of a chat for others nor speaks into a turn that has none", async () => {
  const slow = { tool: "exec_command", args: { cmd: "sleep 61" } };
  await using world = await openChatWorld({ script: [{ calls: [slow] }] });
  const { client: owner, chatId } = await world.chat();
  const user = await world.client("user");
  const settings = { sandbox: "danger-full-access" };
  const forbidden = { error: { code: -32001, data: { code: "door.forbidden" } } };
  expect(await user.ask("chat.settings.update", { chat_id: chatId, settings })).toMatchObject(forbidden);
  expect(await user.ask("chat.create", { settings })).toMatchObject(forbidden);
  await owner.call("chat.settings.update", { chat_id: chatId, settings });
  await owner.call("chat.message.send", { chat_id: chatId, message: "go" });
  await owner.waitFor(({ params }) => at(params, "item.type") === "commandExecution");
  const inject = { chat_id: chatId, message: "and this", inject: true };
  expect(await user.ask("chat.message.send", inject)).toMatchObject(forbidden);
  expect(await owner.call("chat.message.send", inject)).toMatchObject({ queued: true });
  await user.call("chat.cancel", { chat_id: chatId });
});

test("S29: a path that is no path, or leads to what is no file, is refused by every fs method and stalls nothing", async () => {
  await using world = await openChatWorld();
  const ws = world.workspace;
  const outside = path.join(world.root, "outside");
  await mkdir(outside);
  await writeFile(path.join(outside, "kept"), "as it was");
  execFileSync("mkfifo", [path.join(ws, "pipe")]);
  await symlink("/dev/zero", path.join(ws, "zero"));
  await symlink(outside, path.join(ws, "way"));
  const client = await codex(world);
  const paths = [
    `${ws}/../outside/kept\0.txt`,
    `${ws}/a\0b`,
    "~/.bashrc",
    `file://${outside}/kept`,
    "..\\outside\\kept",
    "C:\\kept",
    "",
    `/${"x".repeat(5_000)}`,
    `/proc/self/root${outside}/kept`,
    `/proc/${process.pid}/root${outside}/kept`,
    "/dev/stdin",
    "/dev/zero",
    `${ws}/zero`,
    `${ws}/pipe`,
    `${ws}/pipe/x`,
    `${ws}/way/new`,
    `${ws}/./way/../way/new`,
    `${ws}/%2e%2e/outside/kept`,
  ];
  for (const where of paths) {
    const calls: readonly (readonly [method: string, params: unknown])[] = [
      ["fs/readFile", { path: where }],
      ["fs/copy", { sourcePath: where, destinationPath: `${ws}/stolen` }],
      ["fs/copy", { sourcePath: where, destinationPath: `${ws}/stolen`, recursive: true }],
    ];
    for (const [method, params] of calls) {
      const { error } = await client.ask(method, params);
      expect([where.slice(0, 60), method, error === undefined]).toEqual([where.slice(0, 60), method, false]);
    }
    for (const method of ["fs/writeFile", "fs/createDirectory", "fs/remove"]) {
      await client.ask(method, { path: where, dataBase64: "b29wcw==", force: true });
    }
  }
  expect(await readdir(outside)).toEqual(["kept"]);
  expect(await readFile(path.join(outside, "kept"), "utf8")).toBe("as it was");
  expect(await readdir(ws)).not.toContain("stolen");
});

test("S29: a picture that is a pipe or a device is refused, and holds up nobody", async () => {
  await using world = await openChatWorld({ script: [{ text: "ok" }] });
  execFileSync("mkfifo", [path.join(world.workspace, "pipe")]);
  const { chatId } = await world.chat();
  const user = await world.client("user");
  // More than the threads that the process reads files with.
  const paths = [...Array<string>(8).fill("pipe"), "/dev/zero", "../home", "no\0where"];
  const answers = await Promise.all(
    paths.map((image) =>
      user.ask("chat.message.send", { chat_id: chatId, message: [{ type: "localImage", path: image }] }),
    ),
  );
  for (const [index, { error }] of answers.entries())
    expect([paths[index], error?.code]).toEqual([paths[index], -32602]);
});

test("S29: Heddle's home is not looked into for files of a chat, as its folder or as an attachment", async () => {
  await using world = await openChatWorld();
  const home = path.join(world.root, "home");
  await mkdir(path.join(home, "tokens"), { recursive: true });
  await writeFile(path.join(home, "tokens", "una.json"), "{}");
  await symlink(home, path.join(world.workspace, "way"));
  const [owner, user] = [await world.client(), await world.client("user")];
  const names = async (chat_id: string, more: object = {}): Promise<unknown> => {
    const { result, error } = await user.ask("chat.files.search", { chat_id, query: "", ...more });
    return error?.code ?? list(result, "files").map((file) => at(file, "name"));
  };
  for (const folder of [home, path.join(home, "tokens"), path.join(world.workspace, "way")]) {
    const inside = text(await owner.call("chat.create", { cwd: folder }), "chat_id");
    expect([folder, await names(inside)]).toEqual([folder, -32602]);
    const attached = text(await user.call("chat.create", { settings: { attachments: { folder } } }), "chat_id");
    expect([folder, await names(attached, { base_path: folder })]).toEqual([folder, -32602]);
  }
  const above = text(await owner.call("chat.create", { cwd: world.root }), "chat_id");
  expect(await names(above)).not.toContain("una.json");
});

test("S42: a line that is too long is refused and passed over, the next one is answered; one without an end is cut off", async () => {
  await using world = await openChatWorld();
  const client = await world.client();
  const piece = Buffer.alloc(1024 * 1024, 0x78);
  for (let sent = 0; sent < 17; sent += 1) client.socket.write(piece);
  client.socket.write("\n");
  expect(await client.waitFor(({ error }) => error !== undefined)).toMatchObject({ error: { code: -32600 } });
  expect(await client.call("chat.list")).toMatchObject({ chats: [] });
  expect(client.received.filter(({ error }) => error !== undefined)).toHaveLength(1);
  const before = process.memoryUsage().rss;
  const closed = new Promise<void>((resolve) => {
    client.socket.once("close", () => resolve());
  });
  const pour = (): void => {
    while (!client.socket.destroyed && client.socket.write(piece));
    if (!client.socket.destroyed) client.socket.once("drain", pour);
  };
  pour();
  await closed;
  expect(process.memoryUsage().rss - before).toBeLessThan(128 * 1024 * 1024);
});

test("S43: bytes that are no text, lone surrogates, NUL, CRLF, a mark of the byte order and U+2028 are taken as what they are", async () => {
  await using world = await openChatWorld({ script: [{ text: "ok" }] });
  const { client, chatId } = await world.chat();
  const rename = (id: number, title: string): string =>
    `{"id":${id},"method":"chat.thread.rename","params":{"chat_id":"${chatId}","title":${title}}}`;
  const broken = Buffer.concat([
    Buffer.from(`{"id":1001,"method":"chat.thread.rename","params":{"chat_id":"${chatId}","title":"a`),
    Buffer.from([0xff, 0xc3]),
    Buffer.from('b"}}'),
  ]);
  expect(await raw(client, 1001, broken)).toMatchObject({ result: { title: "a\uFFFD\uFFFDb" } });
  expect(await raw(client, 1002, rename(1002, '"a\\ud800b"'))).toMatchObject({ error: { code: -32602 } });
  expect(await raw(client, 1003, rename(1003, '"a\\u0000b"'))).toMatchObject({ error: { code: -32602 } });
  expect(await raw(client, 1004, `${rename(1004, '"four"')}\r`)).toMatchObject({ result: { title: "four" } });
  expect(await raw(client, 1005, `\uFEFF${rename(1005, '"five"')}`)).toMatchObject({ result: { title: "five" } });
  expect(await raw(client, 1006, rename(1006, '"a\u2028b"'))).toMatchObject({ error: { code: -32602 } });
  // What a person may say, the journal keeps so that its chain still verifies; half a character is no text, and is kept as such.
  const said =
    '{"id":1007,"method":"chat.message.send","params":{"chat_id":"CHAT","message":"a\\ud800\\u0000\u2028\uFEFFb"}}';
  await client.end(text(await raw(client, 1007, said.replace("CHAT", chatId)), "result.turn_id"));
  expect((await world.heddle.journal.verify(chatId)).damage).toEqual([]);
  const view = await client.call("chat.thread.read", { chat_id: chatId, include_turns: true });
  expect(at(view, "thread.turns.0.items.0.content.0.text")).toBe("a\uFFFD\0\u2028\uFEFFb");
});

test("S44: odd ids, batches and floods are answered as they are or not at all, and the connection lives", async () => {
  await using world = await openChatWorld();
  const client = await world.client();
  for (const id of [1.5, -7, 1e300, 9_007_199_254_740_991, 0]) {
    expect(await raw(client, id, `{"id":${id},"method":"chat.list"}`)).toMatchObject({ id, result: {} });
  }
  // The same id twice at once is two calls, and two answers.
  client.socket.write('{"id":42,"method":"chat.list"}\n{"id":42,"method":"chat.list"}\n');
  await expect.poll(() => client.received.filter(({ id }) => id === 42).length).toBe(2);
  const received = client.received.length;
  client.socket.write(
    '{"id":{"a":1},"method":"chat.list"}\n{"id":[1],"method":"chat.list"}\n{"id":null,"method":"chat.list"}\n',
  );
  client.socket.write(`[${Array<string>(10_000).fill('{"id":1,"method":"chat.list"}').join(",")}]\n`);
  for (let count = 0; count < 50_000; count += 1) client.socket.write('{"method":"chat.list"}\n');
  expect(await client.call("chat.list")).toMatchObject({ chats: [] });
  expect(client.received.length).toBe(received + 1);
  // What was passed over is told in a few lines, however often it comes.
  for (let count = 0; count < 5_000; count += 1) client.socket.write("nonsense\n");
  expect(await client.call("chat.list")).toMatchObject({ chats: [] });
  expect(world.logged.length).toBeLessThan(100);
});
