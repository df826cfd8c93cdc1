/**
 * Where a request may go. A name is looked up once, here, and only addresses that were checked are connected to, so that a
 * second answer of DNS changes nothing.
 */
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout } from "node:timers/promises";
import { hostRuleFor, isHostAllowed, parseHost, type Host } from "@heddle/protocol/hosts";
import { reachOf } from "@heddle/protocol/ip-address";
import type { RefusalReason } from "./network-log.ts";

export interface Target {
  readonly host: Host;
  readonly port: number;
}

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export type Way =
  | { readonly kind: "open"; readonly addresses: readonly string[] }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly why: string }
  | { readonly kind: "lost"; readonly why: string };

const LOOKUP_MS = 10_000;
/** The system's lookups hold threads of the process, four in all, that reading files needs too. */
const MAX_LOOKUPS = 2;
const MAX_ADDRESSES = 4;
const CONNECT_MS = 10_000;

/** `host:port` of CONNECT and of the header Host; the port may be missing where there is a default. */
export function targetOf(authority: string, defaultPort?: number): Target | undefined {
  const [, text = "", digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const host = parseHost(text);
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

export async function findWay(target: Target, rules: readonly string[], resolve: Resolve = lookUp): Promise<Way> {
  const { host, port } = target;
  if (!isHostAllowed(rules, host.text, port)) {
    return { kind: "refused", reason: "not-listed", why: `${named(target)} is not among the hosts` };
  }
  if (host.kind === "address") return { kind: "open", addresses: [bare(host.text)] };
  let found: readonly string[];
  try {
    found = host.text === "localhost" ? ["127.0.0.1", "::1"] : await resolve(host.text);
  } catch {
    return { kind: "lost", why: `${host.text} has no address` };
  }
  const addresses = found.filter((address) => mayConnect(address, target, rules)).slice(0, MAX_ADDRESSES);
  if (addresses.length > 0) return { kind: "open", addresses };
  if (found.length === 0) return { kind: "lost", why: `${host.text} has no address` };
  const why = `${named(target)} leads to ${found[0]}, an address of this machine, of a private network or of no network at all, which is not among the hosts`;
  return { kind: "refused", reason: "address-not-listed", why };
}

export function named({ host, port }: Target): string {
  return `${host.text}:${port}`;
}

/** What an owner writes to allow it. */
export function ruleFor({ host, port }: Target): string {
  return hostRuleFor(host, port);
}

function mayConnect(address: string, { host, port }: Target, rules: readonly string[]): boolean {
  const reach = reachOf(address);
  if (reach === "global" && !isOfThisMachine(address)) return true;
  return (reach === "loopback" && host.text === "localhost") || isHostAllowed(rules, address, port);
}

/** A public address of this machine leads to what listens here, past what guards it from outside. */
function isOfThisMachine(address: string): boolean {
  const wanted = parseHost(address)?.text;
  return Object.values(networkInterfaces()).some((own) =>
    own?.some((each) => parseHost(each.address)?.text === wanted),
  );
}

let lookups = 0;
const waiting: (() => void)[] = [];

async function lookUp(name: string): Promise<readonly string[]> {
  while (lookups >= MAX_LOOKUPS) await new Promise<void>((go) => void waiting.push(go));
  lookups += 1;
  // Whoever gave up waiting leaves its thread held, so the place is given back only when the system has answered.
  const answer = lookup(name, { all: true, verbatim: true }).finally(() => {
    lookups -= 1;
    waiting.shift()?.();
  });
  answer.catch(() => undefined);
  const timeout = new AbortController();
  const late = setTimeout(LOOKUP_MS, undefined, { signal: timeout.signal, ref: false });
  late.catch(() => undefined);
  const found = await Promise.race([answer, late.then(() => undefined)]).finally(() => timeout.abort());
  if (found === undefined) throw new Error("no answer in time");
  return found.map(({ address }) => address);
}

/** Tries the addresses in their order. undefined: none of them answers. */
export async function connectTo(addresses: readonly string[], port: number): Promise<Socket | undefined> {
  for (const address of addresses) {
    const socket = await connectOnce(address, port);
    if (socket !== undefined) return socket;
  }
  return undefined;
}

function connectOnce(address: string, port: number): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  const fail = (): void => {
    socket.destroy();
    resolve(undefined);
  };
  // Stays: an error may come before somebody else listens.
  socket.on("error", fail);
  socket.setTimeout(CONNECT_MS);
  socket.once("timeout", fail);
  socket.once("connect", () => {
    socket.removeListener("timeout", fail);
    socket.setTimeout(0);
    resolve(socket);
  });
  return promise;
}

function bare(address: string): string {
  return address.replace(/^\[|\]$/g, "");
}
