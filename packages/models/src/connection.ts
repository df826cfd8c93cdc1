/**
 * Connections to providers. They are kept between requests, and one can be begun before there is anything to send: to connect
 * takes a round trip, with TLS two more, and a turn has much to get ready meanwhile.
 */
import type http from "node:http";
import type https from "node:https";
import type { Agent, ClientRequest } from "node:http";
import { isIP, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { urlToHttpOptions } from "node:url";

/** A turn asks its model long before; a connection that nothing was asked over is closed then. */
const AHEAD_MS = 10_000;

const agents: Record<string, Agent> = {};
/** Begun for a request that is not there yet, by where they lead to. */
const ahead = new Map<string, Socket>();
/** Begun so, and taken by a request since. */
const begunAhead = new WeakSet<Duplex>();

/**
 * Only one of the two is ever needed in most runs, and https brings TLS with it. Not `import`: that would ask node:http for
 * all it exports, its WebSocket among them, and so load a second HTTP client.
 */
export function transportOf({ protocol }: URL): typeof http | typeof https {
  return protocol === "https:" ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");
}

/** Keeps connections between requests; an idle one does not keep the process alive. */
export function agentOf(url: URL): Agent {
  return (agents[url.protocol] ??= openAgent(url));
}

function openAgent(url: URL): Agent {
  const agent = new (transportOf(url).Agent)({ keepAlive: true });
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, ...rest) => takeAhead(placeOf(url, options)) ?? connect(options, ...rest);
  return agent;
}

interface Address {
  readonly host?: string | null | undefined;
  readonly port?: string | number | null | undefined;
}

function placeOf({ protocol }: URL, { host, port }: Address): string {
  return `${protocol}//${host}:${port}`;
}

/** Begins the connection that the next request will use, unless one is there. Whoever sends that request meets what is wrong. */
export function connectAhead(url: URL): void {
  const agent = agentOf(url);
  const { hostname, port = url.protocol === "https:" ? 443 : 80 } = urlToHttpOptions(url);
  const host = hostname ?? "";
  const place = placeOf(url, { host, port });
  if (ahead.has(place) || Object.keys(agent.freeSockets).some((name) => name.startsWith(`${host}:${port}:`))) return;
  const options = { keepAlive: true, noDelay: true, host, port, servername: isIP(host) === 0 ? host : "" };
  const socket = agent.createConnection(options);
  if (!(socket instanceof Socket)) return;
  const leave = (): void => {
    if (ahead.get(place) === socket) ahead.delete(place);
  };
  // Kept for good: one that breaks before it is taken is nobody's failure, and the next request makes its own.
  socket.on("error", leave).once("close", leave).unref();
  setTimeout(() => ahead.get(place) === socket && socket.destroy(), AHEAD_MS).unref();
  ahead.set(place, socket);
}

function takeAhead(place: string): Socket | undefined {
  const socket = ahead.get(place);
  ahead.delete(place);
  if (socket === undefined || !socket.writable) return undefined;
  begunAhead.add(socket);
  return socket.ref();
}

/** It was there before its request: a server may have closed it at the very moment it was used. */
export function usesOldConnection(request: ClientRequest): boolean {
  return request.reusedSocket || (request.socket !== null && begunAhead.has(request.socket));
}
