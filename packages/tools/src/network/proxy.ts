/**
 * The HTTP proxy through which commands reach the hosts of a list: CONNECT, and requests with an absolute http URL. Each request
 * is judged by itself, so a redirect to another host is one more request. Everything that a peer can make large or slow is
 * bounded.
 */
import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import { reasonOf } from "@heddle/protocol";
import { codeOf } from "../attempt.ts";
import { forwardedHeaders, hostsOf, requestHeaders } from "./headers.ts";
import { NO_HOST, type HostPort, type NetworkLog, type RefusalReason } from "./network-log.ts";
import { connectTo, findWay, named, ruleFor, targetOf, type Resolve, type Target } from "./targets.ts";

export interface ProxyOptions {
  readonly rules: readonly string[];
  readonly log: NetworkLog;
  /** Default: the system's. */
  readonly resolve?: Resolve | undefined;
  readonly bounds?: Partial<typeof BOUNDS> | undefined;
}

export const BOUNDS = {
  /** From commands, of one sandbox, at once. A package manager opens some twenty. */
  connections: 128,
  headerBytes: 32 * 1024,
  headersMs: 15_000,
  /** Without a byte in either direction. Models and builds of others keep one waiting for minutes. */
  idleMs: 10 * 60_000,
};

export interface Proxy extends AsyncDisposable {
  /** Gets its socket, or its port, from the caller. */
  readonly server: Server;
}

export function createProxy(options: ProxyOptions): Proxy {
  const bounds = { ...BOUNDS, ...options.bounds };
  const sockets = new Set<Socket>();
  const own = <S extends Socket>(socket: S): S => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
  const within: Within = { ...options, idleMs: bounds.idleMs, headerBytes: bounds.headerBytes, own };
  const server = createServer({
    maxHeaderSize: bounds.headerBytes,
    headersTimeout: bounds.headersMs,
    // A large upload takes its time; one that stands still is idle.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(bounds.headersMs, 5000),
  });
  server.maxConnections = bounds.connections;
  server.setTimeout(bounds.idleMs);
  server.on("connection", own);
  server.on("drop", () => options.log.refuse(NO_HOST, "too-many"));
  const inTurn = oneAtATime(options.log);
  server.on("request", (request, response) => {
    if (inTurn(request, response)) settle(forward(request, response, within), response);
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => undefined);
    if (inTurn(request)) settle(tunnel(request, { client: socket, head }, within), socket);
  });
  server.on("clientError", (error, socket) => {
    // It left, or has its answer already.
    if (codeOf(error) === "ECONNRESET" || !socket.writable) return void socket.destroy();
    options.log.refuse(NO_HOST, "malformed");
    answer(socket, 400, "heddle: this is not a request that a proxy can read");
  });
  return {
    server,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/**
 * Requests that are sent before the last one was answered would each open a connection to their host, without bound. Clients of
 * today send none.
 */
function oneAtATime(log: NetworkLog): (request: IncomingMessage, response?: ServerResponse) => boolean {
  const busy = new WeakSet<Socket>();
  return ({ socket }, response) => {
    if (busy.has(socket)) {
      log.refuse(NO_HOST, "too-many");
      socket.destroy();
      return false;
    }
    busy.add(socket);
    response?.once("close", () => busy.delete(socket));
    return true;
  };
}

interface Within extends ProxyOptions {
  readonly idleMs: number;
  readonly headerBytes: number;
  readonly own: <S extends Socket>(socket: S) => S;
}

/** A fault that was not expected ends the connection. */
function settle(work: Promise<void>, stream: { destroy(): unknown }): void {
  work.catch(() => void stream.destroy());
}

async function tunnel(
  request: IncomingMessage,
  { client, head }: { readonly client: Duplex; readonly head: Buffer },
  within: Within,
): Promise<void> {
  const opened = await open(targetOf(request.url ?? ""), within);
  if (opened.kind === "closed") return answer(client, opened.status, opened.line);
  const { upstream } = opened;
  if (client.destroyed) return void upstream.destroy();
  const endBoth = (error: unknown): void => {
    if (error === undefined || error === null) return;
    client.destroy();
    upstream.destroy();
  };
  upstream.setTimeout(within.idleMs, () => endBoth("idle"));
  client.write("HTTP/1.1 200 Connection established\r\n\r\n");
  if (head.length > 0) upstream.write(head);
  pipeline(client, upstream, endBoth);
  pipeline(upstream, client, endBoth);
}

async function forward(request: IncomingMessage, response: ServerResponse, within: Within): Promise<void> {
  const asked = askedFor(request);
  if (asked.kind === "wrong") {
    within.log.refuse(asked.to, asked.reason);
    return answerRequest(response, asked.status, asked.line);
  }
  const opened = await open(asked.target, within);
  if (opened.kind === "closed") return answerRequest(response, opened.status, opened.line);
  const { upstream } = opened;
  if (response.destroyed) return void upstream.destroy();
  response.once("close", () => upstream.destroy());
  upstream.setTimeout(within.idleMs, () => upstream.destroy());
  const lost = (error: unknown): void => {
    upstream.destroy();
    if (response.headersSent) response.destroy();
    else answerRequest(response, 502, `heddle: ${named(asked.target)} gave no answer: ${reasonOf(error)}`);
  };
  const sent = sendRequest({
    createConnection: () => upstream,
    method: request.method,
    path: asked.path,
    headers: requestHeaders(request, asked.hostHeader),
    maxHeaderSize: within.headerBytes,
  });
  sent.once("error", lost);
  // Nothing was asked to be switched to.
  sent.once("upgrade", () => lost(new Error("it switches protocols")));
  sent.once("response", (received) => {
    received.once("error", lost);
    try {
      response.sendDate = false;
      response.writeHead(received.statusCode ?? 502, received.statusMessage, forwardedHeaders(received.rawHeaders));
    } catch (error) {
      return lost(error);
    }
    pipeline(received, response, (error) => void (error && response.destroy()));
  });
  pipeline(request, sent, () => undefined);
}

type Opened =
  | { readonly kind: "open"; readonly upstream: Socket }
  | { readonly kind: "closed"; readonly status: 400 | 403 | 502; readonly line: string };

/** Judges, counts and connects. */
async function open(target: Target | undefined, { rules, resolve, log, own }: Within): Promise<Opened> {
  if (target === undefined) {
    log.refuse(NO_HOST, "malformed");
    return { kind: "closed", status: 400, line: "heddle: no host and port can be read from this request" };
  }
  const to: HostPort = { host: target.host.text, port: target.port };
  const way = await findWay(target, rules, resolve);
  if (way.kind === "refused") {
    log.refuse(to, way.reason);
    return { kind: "closed", status: 403, line: `heddle: ${way.why} that commands may reach. ${allowing(target)}` };
  }
  log.request(to);
  if (way.kind === "lost") return { kind: "closed", status: 502, line: `heddle: ${way.why}` };
  const upstream = await connectTo(way.addresses, target.port);
  if (upstream === undefined) {
    return { kind: "closed", status: 502, line: `heddle: cannot reach ${named(target)}` };
  }
  log.follow(to, own(upstream));
  return { kind: "open", upstream };
}

function allowing(target: Target): string {
  const rule = ruleFor(target);
  return `The owner allows it with network_hosts = ["${rule}"] under [sandbox_workspace_write] in config.toml, or --network-host ${rule}; for an agent program alone, with hosts under its [runners.NAME].`;
}

type Asked =
  | { readonly kind: "right"; readonly target: Target; readonly path: string; readonly hostHeader: string }
  | {
      readonly kind: "wrong";
      readonly to: HostPort;
      readonly reason: RefusalReason;
      readonly status: 400 | 403;
      readonly line: string;
    };

const HTTP_PORT = 80;

/** The URL says where the request goes; a header that says something else is refused, because servers obey the header. */
function askedFor(request: IncomingMessage): Asked {
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(request.url ?? "") ?? [];
  const target = targetOf(authority, HTTP_PORT);
  if (target === undefined) {
    const line = "heddle: this is Heddle's proxy; send it CONNECT host:port, or a request for http://host/";
    return { kind: "wrong", to: NO_HOST, reason: "malformed", status: 400, line };
  }
  const hosts = hostsOf(request);
  const isSame = hosts.every((text) => {
    const meant = targetOf(text, HTTP_PORT);
    return meant?.host.text === target.host.text && meant.port === target.port;
  });
  if (hosts.length > 1 || !isSame) {
    const line = `heddle: the header Host names another host than the URL, ${named(target)}`;
    const to = { host: target.host.text, port: target.port };
    return { kind: "wrong", to, reason: "host-mismatch", status: 403, line };
  }
  const hostHeader = target.port === HTTP_PORT ? target.host.text : named(target);
  return { kind: "right", target, path: path.startsWith("/") ? path : `/${path}`, hostHeader };
}

/** Closes the connection: what the peer still sends is not read. */
function answerRequest(response: ServerResponse, status: number, line: string): void {
  const headers = { "content-type": "text/plain; charset=utf-8", connection: "close" };
  response.writeHead(status, headers).end(`${line}\n`);
}

const STATUS_TEXTS: Readonly<Record<number, string>> = { 400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway" };

function answer(socket: Duplex, status: number, line: string): void {
  if (socket.destroyed || !socket.writable) return void socket.destroy();
  const body = `${line}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? "Error"}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
