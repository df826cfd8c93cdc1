/**
 * WebSocket over TCP or over another server's sockets. A page in a browser is nobody's client here: whatever carries an
 * Origin is refused, and a name that is not the server's own (DNS rebinding) too. Every TCP connection needs the token.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { CLOSE_GRACE_MS, MAX_MESSAGE_BYTES, type Channel, type ChannelListener } from "../rpc/channel.ts";
import {
  createDoorServer,
  listenTcp,
  repeatedHeader,
  urlOf,
  type DoorServer,
  type Listener,
  type OnChannel,
  type TlsPair,
  type TcpAddress,
} from "./server.ts";
import { Strangers } from "./strangers.ts";
import { WrongTokens } from "../access/wrong-tokens.ts";

export interface WebsocketOptions {
  /** Whether the request shows who it is. */
  isAllowed(request: IncomingMessage): boolean;
  /** Names under which clients may call; undefined: any. */
  readonly hosts: readonly string[] | undefined;
  readonly onChannel: OnChannel;
  /** What `/readyz` answers; absent: that it is. */
  readonly isReady?: (() => Promise<boolean>) | undefined;
  /** Absent: in the clear. */
  readonly tls?: TlsPair | undefined;
  /** How often a client is asked whether it is still there. */
  readonly heartbeatMs?: number;
}

/** More than this without being sent, and the reader is behind. */
const HIGH_WATER_BYTES = 256 * 1024;
/** How often a reader that is behind is looked at again. */
const DRAIN_LOOK_MS = 20;
const MAX_CONNECTIONS = 512;
const HEARTBEAT_MS = 15_000;
/** A client that left so many heartbeats unanswered is gone, though its network still takes what is sent. */
const MAX_UNANSWERED = 2;
const HEADERS_TIMEOUT_MS = 10_000;

export async function listenWebsocket(
  { host, port }: TcpAddress,
  options: Omit<WebsocketOptions, "hosts">,
): Promise<Listener> {
  const http = websocketServer({ ...options, hosts: hostNames(host) });
  const boundPort = await listenTcp(http.server, { host, port });
  return {
    address: `${options.tls === undefined ? "ws" : "wss"}://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

export interface WebsocketServer extends AsyncDisposable {
  /** Not listening yet. */
  readonly server: DoorServer;
}

export interface WebsocketUpgrade extends Disposable {
  /** For requests that have been looked at already. */
  handle(request: IncomingMessage, socket: Duplex, head: Buffer, onChannel: OnChannel): void;
}

/** WebSocket for a server that decides by itself who may come in. */
export function websocketUpgrade(): WebsocketUpgrade {
  const sockets = newSockets();
  return {
    handle(request, socket, head, onChannel) {
      if (sockets.clients.size >= MAX_CONNECTIONS) return refuse(socket, "503 Service Unavailable");
      sockets.handleUpgrade(request, socket, head, (client) => onChannel(websocketChannel(client)));
    },
    [Symbol.dispose]() {
      for (const client of sockets.clients) client.terminate();
    },
  };
}

function newSockets(): WebSocketServer {
  return new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES });
}

export function websocketServer(options: WebsocketOptions): WebsocketServer {
  const sockets = newSockets();
  const wrong = new WrongTokens();
  const server = createDoorServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: HEADERS_TIMEOUT_MS / 5,
    },
    options.tls,
    (request, response) => {
      const answer = (status: number): void => {
        response.writeHead(status, { "content-type": "text/plain", connection: "close" }).end();
      };
      const status = request.headers.origin === undefined ? statusOf(request) : 403;
      if (status !== 200 || options.isReady === undefined || urlOf(request)?.pathname !== "/readyz") answer(status);
      else
        options.isReady().then(
          (isReady) => answer(isReady ? 200 : 503),
          () => answer(503),
        );
    },
  );
  const strangers = new Strangers();
  // Over a private socket there are none.
  if (options.hosts !== undefined) strangers.watch(server);
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const refusal = refusalOf(request, options, { wrong, connected: sockets.clients.size });
    if (refusal !== undefined) return refuse(socket, refusal);
    strangers.know(request.socket);
    sockets.handleUpgrade(request, socket, head, (client) =>
      options.onChannel(websocketChannel(client, options.heartbeatMs)),
    );
  });
  return {
    server,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      if (server.listening) await closed;
    },
  };
}

const PROBES: ReadonlySet<string> = new Set(["/livez", "/healthz", "/readyz"]);

/** Whoever watches over the server may ask whether it is there, without any secret. */
function statusOf(request: IncomingMessage): number {
  const pathname = urlOf(request)?.pathname;
  if (pathname === undefined || !PROBES.has(pathname)) return pathname === "/" ? 426 : 404;
  return request.method === "GET" || request.method === "HEAD" ? 200 : 405;
}

interface Seen {
  readonly wrong: WrongTokens;
  readonly connected: number;
}

function refusalOf(
  request: IncomingMessage,
  options: WebsocketOptions,
  { wrong, connected }: Seen,
): string | undefined {
  if (repeatedHeader(request) !== undefined) return "400 Bad Request";
  if (request.headers.origin !== undefined) return "403 Forbidden";
  if (options.hosts !== undefined && !options.hosts.includes(hostOf(request))) return "403 Forbidden";
  if (!options.isAllowed(request)) {
    return wrong.count(request.socket.remoteAddress) ? "429 Too Many Requests" : "401 Unauthorized";
  }
  return connected < MAX_CONNECTIONS ? undefined : "503 Service Unavailable";
}

function hostOf({ headers: { host = "" } }: IncomingMessage): string {
  return host.replace(/:\d+$/, "").toLowerCase();
}

function hostNames(host: string): readonly string[] {
  return ["localhost", "127.0.0.1", "[::1]", host.includes(":") ? `[${host}]` : host];
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

function websocketChannel(client: WebSocket, heartbeatMs = HEARTBEAT_MS): Channel {
  closeWhenSilent(client, heartbeatMs);
  let looking: NodeJS.Timeout | undefined;

  function watchForRoom(listener: ChannelListener): void {
    looking ??= setInterval(() => {
      if (client.bufferedAmount > HIGH_WATER_BYTES) return;
      clearInterval(looking);
      looking = undefined;
      listener.onDrain();
    }, DRAIN_LOOK_MS);
  }

  let opened: ChannelListener | undefined;
  return {
    name: "websocket",
    open(listener) {
      opened = listener;
      client.on("message", (data, isBinary) => {
        // The library joins the pieces of a message into one buffer unless told otherwise.
        if (!isBinary && Buffer.isBuffer(data)) listener.onMessage(data.toString("utf8"));
      });
      client.on("error", (error: Error & { code?: string }) => {
        if (error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") listener.onTooLong();
      });
      client.on("close", () => {
        clearInterval(looking);
        listener.onClose();
      });
    },
    send(text) {
      if (client.readyState !== client.OPEN) return true;
      client.send(text);
      if (client.bufferedAmount <= HIGH_WATER_BYTES || opened === undefined) return true;
      watchForRoom(opened);
      return false;
    },
    close() {
      client.close(1000);
      const overdue = setTimeout(() => client.terminate(), CLOSE_GRACE_MS);
      overdue.unref();
    },
  };
}

function closeWhenSilent(client: WebSocket, heartbeatMs: number): void {
  let unanswered = 0;
  const beating = setInterval(() => {
    if (unanswered >= MAX_UNANSWERED) return client.terminate();
    unanswered += 1;
    client.ping();
  }, heartbeatMs);
  beating.unref();
  const isThere = (): void => {
    unanswered = 0;
  };
  client
    .on("pong", isThere)
    .on("message", isThere)
    .on("close", () => clearInterval(beating));
}
