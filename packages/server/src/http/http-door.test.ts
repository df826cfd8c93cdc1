import { chmod, readFile, stat } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { thisHolder } from "@heddle/agent";
import { TaskSpec } from "@heddle/protocol/tasks";
import { FACTS, openHttpWorld, type HttpWorld } from "../../test/http-world.ts";
import { follow } from "../../test/sse-client.ts";
import { addToken, ensureOwnerToken, listTokens, revokeToken } from "./tokens.ts";

/** Writes bytes as they are and reads until the server closes. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(text));
    let received = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      received += part;
    });
    // What was said before the server hung up counts.
    socket.on("error", () => undefined).on("close", () => resolve(received));
  });
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

async function upgrade({ port, tokens }: HttpWorld, headers: Readonly<Record<string, string>>): Promise<number> {
  const lines = {
    host: `127.0.0.1:${port}`,
    authorization: `Bearer ${tokens.owner}`,
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return statusOf(await raw(port, `GET / HTTP/1.1\r\n${head.join("")}\r\n`));
}

test("S03: a name that is not the server's own is refused on every kind of route", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const foreign = [
    "evil.test",
    `evil.test:${world.port}`,
    "127.0.0.1",
    "localhost:1",
    `127.0.0.1.evil.test:${world.port}`,
  ];
  for (const host of foreign) {
    for (const path of ["/healthz", "/api/threads", `/api/threads/${threadId}/events`, "/nothing"]) {
      const answer = await world.ask(path, { headers: { host } });
      expect([host, path, answer.status]).toEqual([host, path, 421]);
    }
    expect(await upgrade(world, { host })).toBe(421);
  }
  const own = `host: 127.0.0.1:${world.port}`;
  const others = `authorization: Bearer ${world.tokens.owner}\r\nconnection: close`;
  for (const twice of [`${own}\r\nhost: evil.test`, `host: evil.test\r\n${own}`, `${own}\r\n${own}`]) {
    // 12.15: whoever reads the other one would send it elsewhere.
    const lines = `${twice}\r\n${others}`;
    expect(statusOf(await raw(world.port, `GET /healthz HTTP/1.1\r\n${lines}\r\n\r\n`))).toBe(400);
    expect(statusOf(await raw(world.port, `GET /api/threads HTTP/1.1\r\n${lines}\r\n\r\n`))).toBe(400);
  }
  expect(await upgrade(world, { host: `127.0.0.1:${world.port}\r\nhost: evil.test` })).toBe(400);
  for (const host of [`127.0.0.1:${world.port}`, `LOCALHOST:${world.port}`]) {
    expect((await world.ask("/api/threads", { headers: { host } })).status).toBe(200);
  }
});

test("S04 S06 S07: pages of other origins get nothing, also by asking first or by embedding", async () => {
  await using world = await openHttpWorld();
  const origins = [
    "http://evil.test",
    "null",
    "http://localhost:9999",
    "http://127.0.0.1.evil.test",
    `https://127.0.0.1:${world.port}`,
  ];
  for (const origin of origins) {
    const answer = await world.ask("/api/threads", { headers: { origin } });
    expect([origin, answer.status]).toEqual([origin, 403]);
    expect(await upgrade(world, { origin })).toBe(403);
    const first = await world.ask("/api/threads", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    expect(first.status).toBe(403);
    expect(Object.keys(first.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  }
  for (const site of ["cross-site", "same-site"]) {
    expect((await world.ask("/api/threads", { headers: { "sec-fetch-site": site } })).status).toBe(403);
  }
  const own = await world.ask("/api/threads", {
    headers: { origin: `http://127.0.0.1:${world.port}`, "sec-fetch-site": "same-origin" },
  });
  expect(own.status).toBe(200);
  expect(own.headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  });
});

test("S05: a body that is not called JSON is refused before it is read", async () => {
  await using world = await openHttpWorld();
  const types = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""];
  for (const type of types) {
    const answer = await world.ask("/api/threads", { method: "POST", raw: "{}", headers: { "content-type": type } });
    expect([type, answer.status]).toEqual([type, 415]);
  }
  const none = await raw(
    world.port,
    `POST /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${world.port}\r\nauthorization: Bearer ${world.tokens.owner}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`,
  );
  expect(statusOf(none)).toBe(415);
  expect(await world.heddle.journal.threads.list({ limit: 1 })).toEqual([]);
});

test("S02: wrong tokens are refused, after twenty with a pause, and harm nobody who has a right one", async () => {
  await using world = await openHttpWorld();
  const statuses: number[] = [];
  for (let tries = 0; tries < 30; tries += 1) {
    statuses.push((await world.ask("/api/threads", { token: `wrong-${tries}` })).status);
  }
  expect(statuses).toEqual([...Array<number>(20).fill(401), ...Array<number>(10).fill(429)]);
  expect((await world.ask("/api/threads")).status).toBe(200);
  // A token in the address would end up in logs and histories.
  expect((await world.ask(`/api/threads?token=${world.tokens.owner}`, { token: "" })).status).toBe(401);
});

test("S11: contradictory lengths and endless headers are refused", async () => {
  await using world = await openHttpWorld();
  const head = `POST /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${world.port}\r\nauthorization: Bearer ${world.tokens.owner}\r\ncontent-type: application/json\r\n`;
  expect(statusOf(await raw(world.port, `${head}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`))).toBe(400);
  expect(statusOf(await raw(world.port, `${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}`))).toBe(400);
  expect(statusOf(await raw(world.port, `${head}x-long: ${"x".repeat(100_000)}\r\n\r\n`))).toBe(431);
  expect((await world.ask(`/api/threads?search=${"x".repeat(9_000)}`)).status).toBe(400);
});

test("S12: an endless body is cut at its cap, and the server continues", async () => {
  await using world = await openHttpWorld();
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port: world.port,
        path: "/api/threads",
        method: "POST",
        headers: { authorization: `Bearer ${world.tokens.owner}`, "content-type": "application/json" },
      },
      (response) => {
        resolve(response.statusCode ?? 0);
        response.resume();
        sent.destroy();
      },
    );
    sent.on("error", reject);
    const part = Buffer.alloc(64 * 1024, 0x20);
    const pour = (): void => {
      while (!sent.destroyed && sent.write(part));
      if (!sent.destroyed) sent.once("drain", pour);
    };
    pour();
  });
  expect(status).toBe(413);
  const declared = await world.ask("/api/threads", {
    method: "POST",
    raw: "{}",
    headers: { "content-length": 1024 ** 3, "content-type": "application/json" },
  });
  expect(declared.status).toBe(413);
  expect((await world.ask("/api/threads")).status).toBe(200);
});

test("S13 S14: deep nesting and names of prototypes do no harm", async () => {
  await using world = await openHttpWorld();
  const deep = `{"workspace":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const post = (text: string) => world.ask("/api/threads", { method: "POST", raw: text });
  expect(await post(deep)).toMatchObject({
    status: 400,
    json: { error: { message: expect.stringContaining("deeper") } },
  });
  expect((await post('{"__proto__":{"polluted":true}}')).status).toBe(400);
  expect((await post('{"constructor":{"prototype":{"polluted":true}}}')).status).toBe(400);
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  expect(await post("{nonsense")).toMatchObject({ status: 400, json: { error: { message: "the body is not JSON" } } });
});

test("S10: a token file that others can read is refused; a revoked token is out at once and its streams end", async () => {
  await using world = await openHttpWorld({ heartbeatMs: 50 });
  const { home } = world;
  const token = await addToken(home, { name: "guest", role: "viewer" });
  expect(JSON.stringify(await listTokens(home))).not.toContain(token);
  expect((await stat(join(home, "tokens", "guest.json"))).mode & 0o777).toBe(0o600);
  await expect.poll(async () => (await world.ask("/api/threads", { token })).status).toBe(200);
  using stream = await follow(`${world.url}/api/events`, token);
  await stream.waitFor(({ event }) => event === "caughtUp");
  expect(await revokeToken(home, { name: "guest", role: "viewer" })).toBe(true);
  expect((await stream.waitFor(({ event }) => event === "end")).data).toMatchObject({ reason: "revoked" });
  await expect.poll(async () => (await world.ask("/api/threads", { token })).status).toBe(401);
  const path = join(home, "serve.token");
  const { token: owner } = await ensureOwnerToken(home);
  expect((await readFile(path, "utf8")).trim()).toBe(owner);
  await chmod(path, 0o644);
  await expect(ensureOwnerToken(home)).rejects.toMatchObject({ code: "credentials.unsafe" });
});

test("two that add the same name at once get one token", async () => {
  await using world = await openHttpWorld();
  const added = await Promise.allSettled(
    Array.from({ length: 10 }, () => addToken(world.home, { name: "twin", role: "user" })),
  );
  expect(added.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  await expect(addToken(world.home, { name: "../up", role: "user" })).rejects.toMatchObject({ code: "usage.invalid" });
  await expect(addToken(world.home, { name: "owner", role: "user" })).rejects.toMatchObject({ code: "usage.invalid" });
});

test("probes need no token and tell no names; a WebSocket needs one", async () => {
  await using world = await openHttpWorld();
  for (const path of ["/livez", "/healthz"])
    expect(await world.ask(path, { token: "" })).toMatchObject({ status: 200, text: '{"ok":true}\n' });
  expect(await world.ask("/readyz", { token: "" })).toMatchObject({
    status: 200,
    text: '{"ok":true,"reasons":[],"sandbox":"namespaces","redaction":"patterns"}\n',
  });
  world.heddle.journal.redactor.learn(["a-key-that-only-this-process-knows"]);
  expect((await world.ask("/readyz", { token: "" })).json).toMatchObject({ redaction: "values" });
  expect(await upgrade(world, { authorization: `Bearer ${world.tokens.viewer}` })).toBe(404);
  expect(await upgrade(world, { authorization: "Bearer nobody" })).toBe(401);
});

test("/readyz names every reason by its code, and /livez answers to the end", async () => {
  const bare = (isNeeded: boolean) => ({
    ...FACTS,
    sandbox: () => Promise.resolve({ level: "none" as const, backends: [], isNeeded }),
  });
  await using open = await openHttpWorld({ facts: bare(false) });
  expect(await open.ask("/readyz", { token: "" })).toMatchObject({ status: 200, json: { sandbox: "none" } });
  await using world = await openHttpWorld({ facts: bare(true) });
  const reasons = async (): Promise<unknown> => {
    const { status, json } = await world.ask("/readyz", { token: "" });
    expect(status).toBe(503);
    return json;
  };
  const sandbox = { code: "sandbox.unavailable", message: "the kernel gives no sandbox: heddle doctor" };
  expect(await reasons()).toEqual({
    error: { code: "door.overloaded", message: sandbox.message },
    ok: false,
    reasons: [sandbox],
    sandbox: "none",
    redaction: "patterns",
  });
  await world.door.endRuns();
  const draining = { code: "draining", message: "the server is stopping" };
  expect(await reasons()).toMatchObject({ reasons: [draining, sandbox] });
  expect((await world.ask("/livez", { token: "" })).status).toBe(200);
  expect((await world.ask("/api/threads")).status).toBe(503);
});

test("14: a server whose tasks wait for space in the store says that it is not ready", async () => {
  await using world = await openHttpWorld();
  const spec = TaskSpec.parse({ name: "fix", goal: "fix it", workspace: world.home });
  const failure = { code: "store.full", message: "no space left" };
  const notBefore = Date.now() + 60_000;
  await world.heddle.journal.append({
    stream: "task_1",
    author: "system",
    events: [
      { type: "task.created", v: 1, spec, source: { kind: "cli" } },
      { type: "task.taken", v: 1, attempt: 1, holder: thisHolder() },
      { type: "task.retried", v: 1, attempt: 1, failure, notBefore, reason: "store.full: no space left" },
    ],
  });
  const { status, text } = await world.ask("/readyz", { token: "" });
  expect([status, text]).toEqual([503, expect.stringContaining("tasks wait until the store can be written")]);
});

test("a WebSocket whose token is revoked is closed", async () => {
  const closed = Promise.withResolvers<string>();
  await using world = await openHttpWorld({
    heartbeatMs: 20,
    websockets: {
      "/":
        ({ name }) =>
        (channel) => {
          const listener = {
            onMessage() {},
            onTooLong() {},
            onDrain() {},
            onEnd() {},
            onClose: () => closed.resolve(name),
          };
          channel.open(listener);
          channel.send("welcome");
        },
    },
  });
  const token = await addToken(world.home, { name: "guest", role: "user" });
  await expect.poll(async () => (await world.ask("/api/threads", { token })).status).toBe(200);
  const socket = new WebSocket(`ws://127.0.0.1:${world.port}/?token=${token}`);
  await new Promise((resolve) => {
    socket.addEventListener("message", resolve);
  });
  await revokeToken(world.home, { name: "guest", role: "user" });
  expect(await closed.promise).toBe("guest");
});

test("S11: a client that sends its headers byte by byte is cut off, and idle ones keep nobody out", async () => {
  await using world = await openHttpWorld({ headersMs: 200 });
  const idle = Array.from({ length: 300 }, () => connect(world.port, "127.0.0.1").on("error", () => undefined));
  expect((await world.ask("/api/threads")).status).toBe(200);
  const slow = raw(world.port, `GET /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${world.port}\r\nx: `);
  expect(statusOf(await slow)).toBe(408);
  for (const socket of idle) socket.destroy();
});

test("S10: while the list of tokens cannot be trusted, the owner alone is let in", async () => {
  await using world = await openHttpWorld();
  await chmod(join(world.home, "tokens", "vic.json"), 0o644);
  const statuses = async () => [
    (await world.ask("/api/threads", { token: world.tokens.user })).status,
    (await world.ask("/api/threads")).status,
  ];
  await expect.poll(statuses).toEqual([401, 200]);
});

test("what the owner did in no thread is not among the events of threads", async () => {
  await using world = await openHttpWorld();
  const act = { kind: "mcpTool", server: "s", tool: "t", arguments: "private words" } as const;
  const events = [{ type: "client.intended", v: 1, actId: "act_1", client: "c", act }] as const;
  await world.heddle.journal.append({ stream: "host", author: "user:owner", events });
  const threadId = await world.newThread();
  const token = world.tokens.viewer;
  const { status, text } = await world.ask("/api/events?follow=false", { token });
  expect(status).toBe(200);
  expect(text).toContain(threadId);
  expect(text).not.toContain("private words");
  expect(await world.ask("/api/threads/host/events?follow=false", { token })).toMatchObject({ status: 400 });
  expect(await world.ask("/api/threads/host", { token })).toMatchObject({ status: 400 });
});
