/**
 * A socket in the file system that only its owner may open. Clients speak lines of JSON, or WebSocket after the usual
 * upgrade: the first byte tells them apart. The socket of a server that was killed is taken over; that of a living one is
 * not.
 */
import { chmod, lstat, unlink } from "node:fs/promises";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { isAnswered } from "@heddle/agent";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { lineChannel } from "./line-channel.ts";
import type { Listener, OnChannel } from "./server.ts";
import { websocketServer, type WebsocketOptions, type WebsocketServer } from "./websocket.ts";

const OWNER_ONLY = 0o600;
/** A connection that says nothing at all is nobody's. */
const FIRST_BYTE_MS = 30_000;
/** The kernel keeps no longer names. */
const MAX_PATH_BYTES = 107;

export interface UnixOptions {
  /** For those who speak HTTP; absent: WebSocket and nothing else. */
  readonly http?: WebsocketServer;
  readonly isReady?: WebsocketOptions["isReady"];
}

export async function listenUnix(
  path: string,
  onChannel: OnChannel,
  { http, isReady }: UnixOptions = {},
): Promise<Listener> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new HeddleError("usage.invalid", `the socket path ${path} is longer than ${MAX_PATH_BYTES} bytes`);
  }
  const forHttp = http ?? websocketServer({ isAllowed: () => true, hosts: undefined, onChannel, isReady });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
    route(socket, forHttp.server, onChannel);
  });
  await removeStale(path);
  await listen(server, path);
  return {
    address: `unix://${path}`,
    async [Symbol.asyncDispose]() {
      // Node removes the socket's file with the server.
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await forHttp[Symbol.asyncDispose]();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function route(socket: Socket, http: HttpServer, onChannel: OnChannel): void {
  const silent = setTimeout(() => socket.destroy(), FIRST_BYTE_MS);
  silent.unref();
  socket.on("close", () => clearTimeout(silent));
  socket.once("data", (first: Buffer) => {
    clearTimeout(silent);
    socket.pause();
    socket.unshift(first);
    // "GET / HTTP/1.1", "POST …"; a message in JSON begins otherwise.
    if (isCapital(first[0] ?? 0)) http.emit("connection", socket);
    else onChannel(lineChannel({ name: "unix", input: socket, output: socket, destroy: () => socket.destroy() }));
    socket.resume();
  });
}

function isCapital(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

async function listen(server: Server, path: string): Promise<void> {
  // From its first moment on nobody else may open it; the mode is set again in case the mask is not honoured.
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(path, resolve);
    });
  } catch (cause) {
    throw new HeddleError("usage.invalid", `cannot listen on ${path}: ${reasonOf(cause)}`, { cause });
  } finally {
    process.umask(mask);
  }
  await chmod(path, OWNER_ONLY);
}

async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket())
    throw new HeddleError("usage.invalid", `${path} exists and is not a socket; name another path`);
  if (await isAnswered(path)) throw new HeddleError("usage.invalid", `another server listens on ${path}`);
  await unlink(path).catch(() => undefined);
}
