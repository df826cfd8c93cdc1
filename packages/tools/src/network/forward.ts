/**
 * Listed ports of the host's loopback at the sandbox's own: each is one connection there for one here. So the loopback itself
 * stays the sandbox's, and programs that know no proxy reach the server that is listed.
 */
import type { Server, Socket } from "node:net";
import { pipeline } from "node:stream";
import { isHostAllowed } from "@heddle/protocol/hosts";
import type { NetworkLog } from "./network-log.ts";
import { connectTo } from "./targets.ts";

/** A port inside. */
export interface Inside {
  readonly address: "127.0.0.1" | "::1";
  readonly port: number;
}

export interface Forward extends Inside {
  /** As it is listed. */
  readonly host: string;
  readonly addresses: readonly string[];
}

/** Each is a socket, for as long as the sandbox is open. More go through the proxy. */
const MAX_FORWARDS = 32;

const LOOPBACK = [
  { host: "127.0.0.1", addresses: ["127.0.0.1"], inside: ["127.0.0.1"] },
  { host: "[::1]", addresses: ["::1"], inside: ["::1"] },
  { host: "localhost", addresses: ["127.0.0.1", "::1"], inside: ["127.0.0.1", "::1"] },
] as const;

/** One for each port and address inside; a rule for an address counts before one for `localhost`. */
export function forwardsFor(rules: readonly string[]): readonly Forward[] {
  const found = LOOPBACK.flatMap(({ host, addresses, inside }) =>
    portsOf(rules, host).flatMap((port) => inside.map((address): Forward => ({ host, addresses, address, port }))),
  );
  const first = new Map(found.toReversed().map((one) => [`${one.address} ${one.port}`, one]));
  return [...first.values()].slice(0, MAX_FORWARDS);
}

/** Hosts of the loopback of which a port is listed that is reached by nothing else than the proxy. */
export function proxiedHosts(rules: readonly string[], made: readonly Forward[]): readonly string[] {
  return LOOPBACK.flatMap(({ host, inside: [first] }) => {
    const isMade = (port: number): boolean => made.some((one) => one.address === first && one.port === port);
    return portsOf(rules, host).every(isMade) ? [] : [host.replace(/^\[|\]$/g, "")];
  });
}

function portsOf(rules: readonly string[], host: string): readonly number[] {
  const ports = new Set(rules.flatMap((rule) => Number(/:(\d+)$/.exec(rule)?.[1] ?? 0) || [80, 443]));
  return [...ports].filter((port) => isHostAllowed(rules, host, port));
}

export interface ForwardOptions {
  readonly log: NetworkLog;
  readonly bounds: { readonly connections: number; readonly idleMs: number };
}

/** `server` listens inside. */
export function openForward(
  server: Server,
  { host, port, addresses }: Forward,
  { log, bounds }: ForwardOptions,
): AsyncDisposable {
  const to = { host, port };
  const sockets = new Set<Socket>();
  const own = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.setTimeout(bounds.idleMs, () => socket.destroy());
  };

  async function pass(client: Socket): Promise<void> {
    log.request(to);
    const upstream = await connectTo(addresses, port);
    if (upstream === undefined) return void client.resetAndDestroy();
    own(upstream);
    log.follow(to, upstream);
    if (client.destroyed) return void upstream.destroy();
    const endBoth = (error: unknown): void => {
      if (error === undefined || error === null) return;
      client.destroy();
      upstream.destroy();
    };
    pipeline(client, upstream, endBoth);
    pipeline(upstream, client, endBoth);
  }

  server.maxConnections = bounds.connections;
  server.on("drop", () => log.refuse(to, "too-many"));
  server.on("connection", (client) => {
    client.allowHalfOpen = true;
    client.on("error", () => undefined);
    own(client);
    pass(client).catch(() => void client.destroy());
  });
  return {
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
