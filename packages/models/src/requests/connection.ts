/**
 * Connections to providers. They are kept between requests, and one can be opened ahead: a connection takes a round trip,
 * with TLS two more, while a turn is still being prepared.
 */
import type http from "node:http";
import type https from "node:https";
import type { Agent, ClientRequest } from "node:http";
import { isIP, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { urlToHttpOptions } from "node:url";

/** A connection without a request is closed after this time. */
const AHEAD_MS = 10_000;

const agents: Record<string, Agent> = {};
/** Opened for a future request, by address. */
const ahead = new Map<string, Socket>();
/** Opened so, and used by a request since. */
const openedAhead = new WeakSet<Duplex>();

/**
 * Most runs need only one of the two, and https loads TLS. Not `import`: that would load all exports of node:http, its
 * WebSocket among them, and so a second HTTP client.
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
  agent.createConnection = (options, ...rest) => takeAhead(addressOf(url, options)) ?? connect(options, ...rest);
  return agent;
}

interface Address {
  readonly host?: string | null | undefined;
  readonly port?: string | number | null | undefined;
}

function addressOf({ protocol }: URL, { host, port }: Address): string {
  return `${protocol}//${host}:${port}`;
}

/** Opens the connection of the next request, unless there is one. That request reports what is wrong with it. */
export function connectAhead(url: URL): void {
  const agent = agentOf(url);
  const { hostname, port = url.protocol === "https:" ? 443 : 80 } = urlToHttpOptions(url);
  const host = hostname ?? "";
  const address = addressOf(url, { host, port });
  if (ahead.has(address) || Object.keys(agent.freeSockets).some((name) => name.startsWith(`${host}:${port}:`))) return;
  const options = { keepAlive: true, noDelay: true, host, port, servername: isIP(host) === 0 ? host : "" };
  const socket = agent.createConnection(options);
  if (!(socket instanceof Socket)) return;
  const leave = (): void => {
    if (ahead.get(address) === socket) ahead.delete(address);
  };
  // Never removed: one that breaks before it is used is not an error, and the next request opens its own.
  socket.on("error", leave).once("close", leave).unref();
  setTimeout(() => ahead.get(address) === socket && socket.destroy(), AHEAD_MS).unref();
  ahead.set(address, socket);
}

function takeAhead(address: string): Socket | undefined {
  const socket = ahead.get(address);
  ahead.delete(address);
  if (socket === undefined || !socket.writable) return undefined;
  openedAhead.add(socket);
  return socket.ref();
}

/** It is older than its request: a server may have closed it at the moment it was used. */
export function usesOldConnection(request: ClientRequest): boolean {
  return request.reusedSocket || (request.socket !== null && openedAhead.has(request.socket));
}
