import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { ensureTokenFile, tokenCheck } from "../access/auth.ts";
import { Peer } from "../rpc/peer.ts";
import { listenUnix } from "./unix.ts";
import { listenWebsocket } from "./websocket.ts";
import type { Channel } from "../rpc/channel.ts";

/** Says back what it is asked. */
function echo(channel: Channel): void {
  void new Peer(channel, {
    request: (method, params) => Promise.resolve({ result: { method, params } }),
    notification: () => undefined,
    closed: () => undefined,
    log: () => undefined,
  });
}

async function openDoor() {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-ws-"));
  const file = path.join(folder, "token");
  const check = tokenCheck(await ensureTokenFile(file));
  const listener = await listenWebsocket(
    { host: "127.0.0.1", port: 0 },
    { isAllowed: (incoming) => check.isAllowed(incoming), onChannel: echo },
  );
  return {
    file,
    token: (await readFile(file, "utf8")).trim(),
    url: listener.address,
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

async function answerOf(socket: WebSocket, message: unknown): Promise<unknown> {
  socket.send(JSON.stringify(message));
  const [data]: unknown[] = await once(socket, "message");
  return JSON.parse(String(data));
}

async function refusal(url: string, options: object = {}): Promise<number | undefined> {
  const socket = new WebSocket(url, options);
  socket.on("error", () => undefined);
  const [, response]: [unknown, { statusCode?: number }] = (await once(socket, "unexpected-response")) as never;
  socket.terminate();
  return response.statusCode;
}

test("a client with the token is served, by header or in the address", async () => {
  await using door = await openDoor();
  expect(((await stat(door.file)).mode & 0o777).toString(8)).toBe("600");
  const ways: readonly (() => WebSocket)[] = [
    () => new WebSocket(door.url, { headers: { authorization: `Bearer ${door.token}` } }),
    () => new WebSocket(`${door.url}/?token=${door.token}`),
  ];
  for (const connect of ways) {
    const socket = connect();
    await once(socket, "open");
    expect(socket.extensions).toBe("");
    expect(await answerOf(socket, { id: 1, method: "x", params: {} })).toEqual({
      id: 1,
      result: { method: "x", params: {} },
    });
    socket.close();
    await once(socket, "close");
  }
});

test("S01 S03 S04: nobody else is: no token, a wrong one, a page in a browser, another name", async () => {
  await using door = await openDoor();
  const headers = { authorization: `Bearer ${door.token}` };
  expect(await refusal(door.url)).toBe(401);
  expect(await refusal(`${door.url}/?token=${door.token}x`)).toBe(401);
  for (const origin of ["http://127.0.0.1", "null", "http://localhost:9999", "http://127.0.0.1.evil.test"]) {
    expect([origin, await refusal(door.url, { headers, origin })]).toEqual([origin, 403]);
  }
  for (const host of ["evil.example", "127.0.0.1.evil.test", "localhost.evil.test:80", "2130706433", "0"]) {
    expect([host, await refusal(door.url, { headers: { ...headers, host } })]).toEqual([host, 403]);
  }
});

test("/livez, /readyz and /healthz need no token, but no browser gets them", async () => {
  await using door = await openDoor();
  const status = async (target: string, headers: Record<string, string> = {}): Promise<number | undefined> => {
    const asked = request(`${door.url.replace("ws:", "http:")}${target}`, { headers }).end();
    const [response]: { statusCode?: number; resume(): void }[] = (await once(asked, "response")) as never;
    response?.resume();
    return response?.statusCode;
  };
  expect(await status("/readyz")).toBe(200);
  expect(await status("/healthz")).toBe(200);
  expect(await status("/livez")).toBe(200);
  expect(await status("/other")).toBe(404);
  expect(await status("/readyz", { origin: "http://x" })).toBe(403);
});

test("S42: a message that is too long ends the connection", async () => {
  await using door = await openDoor();
  const socket = new WebSocket(door.url, { headers: { authorization: `Bearer ${door.token}` } });
  await once(socket, "open");
  socket.send("x".repeat(16 * 1024 * 1024 + 1));
  const [code]: unknown[] = await once(socket, "close");
  expect(code).toBe(1009);
});

test("a unix socket takes lines and WebSocket alike", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-unix-"));
  const file = path.join(folder, "s");
  try {
    await using _listener = await listenUnix(file, echo);
    const socket = new WebSocket("ws://localhost/", { createConnection: () => connect(file) });
    await once(socket, "open");
    expect(await answerOf(socket, { id: 2, method: "y", params: [] })).toEqual({
      id: 2,
      result: { method: "y", params: [] },
    });
    socket.terminate();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("S11: an address that is none is refused, with and without an upgrade, and the server lives on", async () => {
  await using door = await openDoor();
  const port = Number(new URL(door.url).port);
  const upgrade =
    "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n";
  for (const target of ["//", "//:x", "///%", "http://[", "*", "/?token=%zz"]) {
    for (const more of ["", upgrade]) {
      const received = await said(port, `GET ${target} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${more}\r\n`);
      expect([target, received.slice(0, 10)]).toEqual([target, expect.stringMatching(/^HTTP\/1.1 4/)]);
    }
  }
  const socket = new WebSocket(door.url, { headers: { authorization: `Bearer ${door.token}` } });
  await once(socket, "open");
  socket.terminate();
});

/** Writes bytes as they are and reads until the server closes. */
function said(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(text));
    let received = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      received += part;
    });
    socket.on("error", () => undefined).on("close", () => resolve(received));
  });
}

test("S02: after twenty wrong tokens from one address there is a pause, and a right one is let in all the same", async () => {
  await using door = await openDoor();
  const statuses: unknown[] = [];
  for (let tries = 0; tries < 25; tries += 1) statuses.push(await refusal(`${door.url}/?token=wrong-${tries}`));
  expect(statuses).toEqual([...Array<number>(20).fill(401), ...Array<number>(5).fill(429)]);
  const socket = new WebSocket(door.url, { headers: { authorization: `Bearer ${door.token}` } });
  await once(socket, "open");
  socket.terminate();
});

test("S10: a token file that others can read, is refused with the way to fix it", async () => {
  await using door = await openDoor();
  await chmod(door.file, 0o644);
  await expect(ensureTokenFile(door.file)).rejects.toMatchObject({
    code: "credentials.unsafe",
    message: expect.stringContaining(`chmod 600 ${door.file}`),
  });
});

test("F15: a connection behind which nobody answers any more is given up", async () => {
  const ended = Promise.withResolvers<void>();
  const onChannel = (channel: Channel): void => {
    const listener = { onMessage() {}, onTooLong() {}, onDrain() {}, onEnd() {}, onClose: () => ended.resolve() };
    channel.open(listener);
  };
  await using listener = await listenWebsocket(
    { host: "127.0.0.1", port: 0 },
    { isAllowed: () => true, onChannel, heartbeatMs: 100 },
  );
  // It answers what it is asked, so it stays as long as it likes.
  const lively = new WebSocket(listener.address);
  await once(lively, "open");
  // Its network takes everything and brings nothing back.
  const silent = new WebSocket(listener.address, { autoPong: false });
  await once(silent, "open");
  await once(silent, "close");
  expect(lively.readyState).toBe(WebSocket.OPEN);
  lively.terminate();
  await ended.promise;
});

test("S09: a private socket is its owner's alone, from its first moment and whatever the mask says", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-unix-"));
  const file = path.join(folder, "s");
  const mask = process.umask(0);
  try {
    await using _listener = await listenUnix(file, echo);
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
    // The folder lets everybody through, so that the socket itself has to refuse.
    await chmod(folder, 0o755);
    if (process.getuid?.() === 0) expect(await connectAs(65_534, file)).toBe("EACCES");
    expect(await connectAs(process.getuid?.() ?? 0, file)).toBe("open");
  } finally {
    process.umask(mask);
    await rm(folder, { recursive: true });
  }
});

test("a socket whose server is stopped and takes no more connections is not taken over", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-unix-"));
  const file = path.join(folder, "s");
  const script = `const net = require("node:net"); net.createServer().listen({ path: process.argv[1], backlog: 1 }, () => console.log("open"));`;
  const server = spawn(process.execPath, ["-e", script, file], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(server, "exit");
  const waiting: Socket[] = [];
  try {
    await once(server.stdout, "data");
    server.kill("SIGSTOP");
    await untilFull(file, waiting);
    await expect(listenUnix(file, echo)).rejects.toThrow(`another server listens on ${file}`);
    expect((await stat(file)).isSocket()).toBe(true);
  } finally {
    for (const socket of waiting) socket.destroy();
    server.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true });
  }
});

/** Connects until the kernel has no room for one more that waits to be taken. */
async function untilFull(file: string, waiting: Socket[]): Promise<void> {
  for (let more = true; more && waiting.length < 100;) {
    const socket = connect(file);
    waiting.push(socket);
    more = await new Promise((resolve) =>
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false)),
    );
  }
}

/** What another user of the machine gets: `open`, or the code of the error. */
async function connectAs(uid: number, file: string): Promise<string> {
  const script = `process.setuid(${uid}); const say = (word) => { console.log(word); process.exit(); };
    require("node:net").connect(process.argv[1], () => say("open")).on("error", ({ code }) => say(code));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", script, file]);
  return stdout.trim();
}
