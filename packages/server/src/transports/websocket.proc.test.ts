import { once } from "node:events";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { ensureTokenFile, tokenCheck } from "../auth.ts";
import { Peer } from "../peer.ts";
import { listenUnix } from "./unix.ts";
import { listenWebsocket } from "./websocket.ts";
import type { Channel } from "../channel.ts";

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

test("nobody else is: no token, a wrong one, a page in a browser, another name", async () => {
  await using door = await openDoor();
  const headers = { authorization: `Bearer ${door.token}` };
  expect(await refusal(door.url)).toBe(401);
  expect(await refusal(`${door.url}/?token=${door.token}x`)).toBe(401);
  expect(await refusal(door.url, { headers, origin: "http://127.0.0.1" })).toBe(403);
  expect(await refusal(door.url, { headers: { ...headers, host: "evil.example" } })).toBe(403);
});

test("/readyz and /healthz need no token, but no browser gets them", async () => {
  await using door = await openDoor();
  const status = async (place: string, headers: Record<string, string> = {}): Promise<number | undefined> => {
    const asked = request(`${door.url.replace("ws:", "http:")}${place}`, { headers }).end();
    const [response]: { statusCode?: number; resume(): void }[] = (await once(asked, "response")) as never;
    response?.resume();
    return response?.statusCode;
  };
  expect(await status("/readyz")).toBe(200);
  expect(await status("/healthz")).toBe(200);
  expect(await status("/other")).toBe(404);
  expect(await status("/readyz", { origin: "http://x" })).toBe(403);
});

test("a message that is too long ends the connection", async () => {
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
    const socket = new WebSocket(`ws+unix://${file}:/`);
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
