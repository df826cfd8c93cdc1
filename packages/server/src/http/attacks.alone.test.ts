/** What a client of the HTTP door can try besides what `http-door.test.ts` shows: S11, S12, S14, S15, S29, headers. */
import { connect, type Socket } from "node:net";
import { newApprovalId, newTurnId, type ApprovalQuestion, type EventBody, type TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openHttpWorld, SETTINGS, type HttpWorld } from "../../test/http-world.ts";
import type { OnChannel } from "../transports/server.ts";
import { ROUTES } from "./routes.ts";

function head({ port, tokens }: HttpWorld, line: string, more: readonly string[] = []): string {
  const lines = [line, `host: 127.0.0.1:${port}`, `authorization: Bearer ${tokens.owner}`, ...more];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Writes bytes as they are and reads until the server closes, or the answer is whole. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(text, "latin1"));
    let received = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      received += part;
      if (/\r\n\r\n.*\n$/s.test(received)) socket.destroy();
    });
    socket.on("error", () => undefined).on("close", () => resolve(received));
  });
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

test("S11: a body that comes byte by byte, or never, is cut off, and its client gets no turn for it", async () => {
  await using world = await openHttpWorld({ headersMs: 100 });
  const slow = head(world, "POST /api/threads HTTP/1.1", ["content-type: application/json", "content-length: 1000"]);
  expect(statusOf(await raw(world.port, `${slow}{`))).toBe(408);
  const endless = head(world, "POST /api/threads HTTP/1.1", [
    "content-type: application/json",
    "transfer-encoding: chunked",
  ]);
  expect(statusOf(await raw(world.port, `${endless}1\r\n{\r\n`))).toBe(408);
  expect(await world.heddle.journal.threads.list({ limit: 1 })).toEqual([]);
});

test("S11: five hundred idle connections delay nobody", async () => {
  await using world = await openHttpWorld();
  const idle: Socket[] = [];
  for (let count = 0; count < 500; count += 1) {
    idle.push(connect(world.port, "127.0.0.1").on("error", () => undefined));
  }
  const took: number[] = [];
  for (let count = 0; count < 100; count += 1) {
    const startedAt = performance.now();
    expect((await world.ask("/api/threads")).status).toBe(200);
    took.push(performance.now() - startedAt);
  }
  for (const socket of idle) socket.destroy();
  expect(took.toSorted((a, b) => a - b)[94]).toBeLessThan(100);
});

test("12.15 S11: five thousand connections without a word keep nobody out, and whoever is known stays", async () => {
  await using world = await openHttpWorld();
  const follower = connect(world.port, "127.0.0.1", () => void follower.write(head(world, "GET /api/events HTTP/1.1")));
  let isFollowing = true;
  follower.on("error", () => undefined).on("close", () => (isFollowing = false));
  await new Promise((resolve) => follower.once("data", resolve));
  const idle = new Set<Socket>();
  const open = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(world.port, "127.0.0.1", resolve);
      socket.on("error", () => resolve()).on("close", () => idle.delete(socket));
      idle.add(socket);
    });
  let slowest = 0;
  for (let count = 0; count < 5000; count += 100) {
    await Promise.all(Array.from({ length: 100 }, open));
    if (count % 1000 !== 0 && count !== 4900) continue;
    const startedAt = performance.now();
    const answer = await raw(world.port, head(world, "GET /api/threads HTTP/1.1", ["connection: close"]));
    expect(statusOf(answer)).toBe(200);
    slowest = Math.max(slowest, performance.now() - startedAt);
  }
  expect(slowest).toBeLessThan(1000);
  expect([isFollowing, idle.size <= 600]).toEqual([true, true]);
  for (const socket of [...idle, follower]) socket.destroy();
}, 30_000);

test("S12: a body of a gigabyte costs the server next to nothing", async () => {
  await using world = await openHttpWorld();
  const before = process.memoryUsage().rss;
  const begin = head(world, "POST /api/threads HTTP/1.1", [
    "content-type: application/json",
    "transfer-encoding: chunked",
  ]);
  const socket = connect(world.port, "127.0.0.1");
  let received = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    received += part;
  });
  const closed = new Promise<void>((resolve) => {
    socket.on("error", () => undefined).on("close", () => resolve());
  });
  socket.write(begin);
  const part = Buffer.from(`10000\r\n${" ".repeat(0x1_0000)}\r\n`);
  let poured = 0;
  const pour = (): void => {
    while (!socket.destroyed && poured < 1024 ** 3) {
      poured += part.length;
      if (!socket.write(part)) return void socket.once("drain", pour);
    }
    socket.end();
  };
  pour();
  await closed;
  expect(statusOf(received)).toBe(413);
  expect(poured).toBeLessThan(64 * 1024 * 1024);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
});

test("12.11 S12: a body of millions of tiny values is refused before it is read", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  for (const unit of ["[],", "{},", "1,"]) {
    const raw = `{"input":"x","outputSchema":{"enum":[${unit.repeat(Math.floor(8_380_000 / unit.length))}1]}}`;
    const { status, json } = await world.ask(`/api/threads/${threadId}/turns`, { method: "POST", raw });
    expect([status, json]).toMatchObject([400, { error: { message: "the body holds more than 100000 values" } }]);
  }
});

test("S14: names of prototypes in the body of any route, at any depth, are refused or of no effect", async () => {
  await using world = await openHttpWorld({
    settings: { resolve: () => Promise.resolve({ ...SETTINGS, provider: "nobody" }) },
  });
  const json = '{"polluted":true,"sandboxMode":"danger-full-access"}';
  const evil = `"__proto__":${json},"constructor":{"prototype":${json}}`;
  const bodies = [`{${evil}}`, `{"input":"x",${evil}}`, `{"input":"x","outputSchema":{${evil}},"limits":{${evil}}}`];
  let tried = 0;
  for (const route of ROUTES.filter(({ method }) => method === "POST" || method === "PATCH")) {
    const threadId = await world.newThread();
    const path = route.path.replace("{threadId}", threadId).replace(/\{\w+\}/, "x");
    for (const text of bodies) {
      const { status } = await world.ask(path, { method: route.method, raw: text });
      expect([route.name, status >= 400 && status < 500]).toEqual([route.name, true]);
      tried += 1;
    }
  }
  expect(tried).toBeGreaterThan(20);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test("S29: no way of writing a path leads to anything but a route, and none breaks the server", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const targets = [
    "/serve.token",
    "/../serve.token",
    "/api/../serve.token",
    "/api/threads/..%2f..%2fserve.token",
    "/api/threads/%2e%2e%2fserve.token",
    "/api/threads/..%5c..%5cserve.token",
    "/api/threads/%00",
    `/api/threads/${threadId}%00`,
    "/api/threads/%zz",
    "/api/threads/%ff%fe",
    "//api/threads",
    "/api//threads",
    "/api/threads/",
    "/%61pi/threads",
    `/api/threads/${threadId}/events/..`,
    `/api/threads/__proto__`,
    `/api/threads/constructor/turns/toString`,
    "\\api\\threads",
    "http://evil.test/api/threads",
    "*",
  ];
  for (const target of targets) {
    const status = statusOf(await raw(world.port, head(world, `GET ${target} HTTP/1.1`, ["connection: close"])));
    expect([target, [400, 404, 405].includes(status)]).toEqual([target, true]);
  }
  // Dots that a client should have resolved by itself are resolved, and what comes of it needs the token as ever.
  const dotted = `GET /x/../api/threads HTTP/1.1\r\nhost: 127.0.0.1:${world.port}\r\nconnection: close\r\n\r\n`;
  expect(statusOf(await raw(world.port, dotted))).toBe(401);
});

test("headers: nothing that a client sends becomes a header of the answer, or a line of a stream", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const evil = "a\r\nx-evil: 1\r\n\r\n";
  const encoded = encodeURIComponent(evil);
  for (const target of [`/api/threads/${encoded}`, `/api/threads?search=${encoded}`, `/${encoded}`]) {
    const answer = await raw(world.port, head(world, `GET ${target} HTTP/1.1`, ["connection: close"]));
    expect([target, statusOf(answer) > 0, /^x-evil/im.test(answer)]).toEqual([target, true, false]);
  }
  const named = await world.ask(`/api/threads/${threadId}`, { method: "PATCH", body: { name: evil } });
  expect([named.status, named.headers["x-evil"]]).toEqual([400, undefined]);
  await world.append(threadId, 1);
  const words = "one\n\nid: 99\nevent: end\ndata: {}\n\n";
  const turnId = newTurnId();
  const said: EventBody = {
    type: "item.completed",
    v: 1,
    turnId,
    item: { type: "agentMessage", id: "item_1", text: words },
  };
  await world.heddle.journal.append({ stream: threadId, author: "user:owner", events: [said], durability: "relaxed" });
  const stream = await world.ask(`/api/threads/${threadId}/events?follow=false`);
  expect(stream.text.match(/^id: \d+$/gm)).toEqual(["id: 1", "id: 2", "id: 3"]);
  expect(stream.text.match(/^event: \w+$/gm)).toEqual(["event: caughtUp", "event: end"]);
  for (const last of ["-1", "1e9", "99999999999999999999", "abc", "0x10", "1;DROP", "\u00ff"]) {
    const { status } = await world.ask(`/api/threads/${threadId}/events?follow=false`, {
      headers: { "last-event-id": last },
    });
    expect([last, status >= 400 && status < 500]).toEqual([last, true]);
  }
});

test("S15: the turn and the question of one thread are not found under the name of another", async () => {
  await using world = await openHttpWorld();
  const [mine, other] = [await world.newThread(), await world.newThread()];
  const [turnId, approvalId] = [newTurnId(), newApprovalId()];
  const holder = { pid: process.pid, startTicks: "1", bootId: "b", pidNamespace: "p" };
  const input = [{ type: "text" as const, text: "go" }];
  const question = { kind: "command" as const, callId: "c", itemId: "i", command: "ls", cwd: world.home };
  const events: EventBody[] = [
    { type: "turn.admitted", v: 1, turnId, input, settings: SETTINGS, holder },
    { type: "approval.requested", v: 1, turnId, approvalId, question },
  ];
  await world.heddle.journal.append({ stream: other, author: "user:owner", events, durability: "relaxed" });
  const under = (threadId: string) => ({
    turn: () => world.ask(`/api/threads/${threadId}/turns/${turnId}`),
    items: () => world.ask(`/api/threads/${threadId}/items?turnId=${turnId}`),
    steer: () => post(`/api/threads/${threadId}/turns/${turnId}/steer`, { input: "more" }),
    interrupt: () => post(`/api/threads/${threadId}/turns/${turnId}/interrupt`, {}),
    answer: () => post(`/api/threads/${threadId}/approvals/${approvalId}`, { decision: "accept" }),
  });
  const post = (path: string, body: unknown) => world.ask(path, { method: "POST", body });
  const before = await world.heddle.journal.position();
  const wrong = under(mine);
  for (const name of ["turn", "steer", "interrupt", "answer"] as const) {
    expect([name, (await wrong[name]()).status]).toEqual([name, 404]);
  }
  expect((await wrong.items()).json).toMatchObject({ data: [] });
  expect(await world.heddle.journal.position()).toBe(before);
  expect((await under(other).turn()).status).toBe(200);
  expect((await under(other).answer()).status).toBe(200);
});

test("S15: a user points an agent at no folder outside of the server's, by any route that names one", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const bodies = [
    ["/api/threads", { workspace: "/etc" }],
    [`/api/threads/${threadId}/fork`, { workspace: "/etc" }],
    [`/api/threads/${threadId}/turns`, { input: "go", workspace: "/etc" }],
  ] as const;
  for (const [path, body] of bodies) {
    const asked = await world.ask(path, { method: "POST", body, token: world.tokens.user });
    expect([path, asked.status]).toEqual([path, 403]);
  }
  expect((await world.ask("/api/threads", { method: "POST", body: {}, token: world.tokens.user })).status).toBe(201);
  expect((await world.ask("/api/threads", { method: "POST", body: { workspace: "/etc" } })).status).toBe(201);
});

test("S16 S17: a user neither speaks into a turn without walls, nor lets a call out of its own", async () => {
  await using world = await openHttpWorld();
  const ask = (path: string, body: unknown, token: string) => world.ask(path, { method: "POST", body, token });
  const { user, owner } = world.tokens;
  const at = { callId: "c", itemId: "i" };
  const permissions = { read: [], write: ["/x"], network: false };
  const running = { kind: "command", ...at, command: "ls", cwd: "/w" } as const;
  const questions: readonly [TurnSettings["sandboxMode"], ApprovalQuestion][] = [
    ["danger-full-access", running],
    ["workspace-write", { ...running, wish: { kind: "outside" } }],
    ["workspace-write", { kind: "fileChange", ...at, paths: ["/x/a"], wish: { kind: "wider", permissions } }],
    ["workspace-write", { kind: "permissions", ...at, cwd: "/w", permissions }],
  ];
  for (const [sandboxMode, question] of questions) {
    const [threadId, turnId, approvalId] = [await world.newThread(), newTurnId(), newApprovalId()];
    const holder = { pid: process.pid, startTicks: "1", bootId: "b", pidNamespace: "p" };
    const input = [{ type: "text" as const, text: "go" }];
    const events: EventBody[] = [
      { type: "turn.admitted", v: 1, turnId, input, settings: { ...SETTINGS, sandboxMode }, holder },
      { type: "approval.requested", v: 1, turnId, approvalId, question },
    ];
    await world.heddle.journal.append({ stream: threadId, author: "user:owner", events, durability: "relaxed" });
    const steer = `/api/threads/${threadId}/turns/${turnId}/steer`;
    const answer = `/api/threads/${threadId}/approvals/${approvalId}`;
    const isOpen = sandboxMode === "danger-full-access";
    expect([sandboxMode, (await ask(steer, { input: "more" }, user)).status]).toEqual([
      sandboxMode,
      isOpen ? 403 : 202,
    ]);
    expect((await ask(steer, { input: "more" }, owner)).status).toBe(202);
    for (const decision of ["accept", "acceptForThread"]) {
      expect([sandboxMode, (await ask(answer, { decision }, user)).status]).toEqual([sandboxMode, 403]);
    }
    expect((await ask(answer, { decision: isOpen ? "decline" : "accept" }, isOpen ? user : owner)).status).toBe(200);
  }
});

test("S11: one token does not take the connections of all", async () => {
  const served = (): OnChannel => (channel) => {
    channel.open({ onMessage() {}, onTooLong() {}, onDrain() {}, onEnd() {}, onClose() {} });
  };
  await using world = await openHttpWorld({ websockets: { "/": served } });
  const viewer = world.tokens.viewer;
  const upgrade = [
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const get = (path: string, token: string, more: readonly string[] = []): Promise<number> =>
    new Promise((resolve, reject) => {
      const lines = [
        `GET ${path} HTTP/1.1`,
        `host: 127.0.0.1:${world.port}`,
        `authorization: Bearer ${token}`,
        ...more,
      ];
      const socket = connect(world.port, "127.0.0.1", () => void socket.write(`${lines.join("\r\n")}\r\n\r\n`));
      socket.once("data", (part: Buffer) => resolve(statusOf(part.toString("latin1")))).on("error", reject);
      sockets.push(socket);
    });
  const sockets: Socket[] = [];
  const many = async (count: number, one: () => Promise<number>): Promise<readonly number[]> => [
    ...new Set(await Promise.all(Array.from({ length: count }, one))),
  ];
  expect(await many(128, () => get("/", viewer, upgrade))).toEqual([101]);
  expect(await get("/", viewer, upgrade)).toBe(503);
  expect(await get("/", world.tokens.user, upgrade)).toBe(101);
  expect(await many(500, () => get("/api/events", viewer))).toEqual([200]);
  expect(await get("/api/events", viewer)).toBe(503);
  expect(await get("/api/events", world.tokens.user)).toBe(200);
  for (const socket of sockets) socket.destroy();
});
