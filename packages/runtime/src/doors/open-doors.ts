/**
 * The doors of one engine, whatever else its process does: HTTP with server-sent events and JSON-RPC over WebSocket share
 * a port, both are on a private socket too, and a file in the home says where. In three steps, because each can refuse:
 * what is asked for (nothing is touched), the claim on the home (before the engine opens), the doors themselves.
 */
import path from "node:path";
import { claimStore } from "@heddle/agent";
import { defined, HeddleError, isHeddleError, reasonOf, visibleText } from "@heddle/protocol";
import { AppServer, listenUnix, LOCAL_OWNER, type Listener, type Principal, type TlsPair } from "@heddle/server";
import {
  ensureOwnerToken,
  HttpDoor,
  listTokens,
  openTokenBook,
  ownerTokenPath,
  type TaskDoorOptions,
} from "@heddle/server/http";
import { refuseOpenDoor } from "./address.ts";
import { addressOf, lastPort, rememberAddresses, urlOf } from "./address-file.ts";
import { hostFacts } from "./host-facts.ts";
import { limitOptions } from "../settings/extensions.ts";
import type { ConfigFile } from "../config/schema.ts";
import type { Serving } from "../serving/open-serving.ts";
import { chosenBindings, type ServeAt } from "./address.ts";
import { readTls, type TlsFiles } from "./address.ts";

/** Turns have six seconds to end, clients a moment to receive that; then the process ends, whatever hangs. */
const STOP_MS = 9_500;

export interface DoorPlan {
  /** A process with doors has this long for its end. */
  readonly stopMs: number;
  /** Of the doors, outside the home; what runs behind the doors must not see them. */
  readonly sockets: readonly string[];
  /** Throws `store.owned`, with the address of the server that owns the home. Released with `ends`. */
  claim(ends: AsyncDisposableStack, home: string): Promise<ClaimedDoors>;
}

export interface ClaimedDoors {
  /** Everything that is opened is closed with `ends`. */
  open(ends: AsyncDisposableStack, behind: BehindDoors): Promise<Doors>;
}

export interface BehindDoors extends Serving {
  readonly cwd: string;
  readonly version: string;
  readonly taskDoor: TaskDoorOptions;
  /** What begins turns in this process besides clients. */
  readonly harness: AsyncDisposable | undefined;
  readonly config: ConfigFile;
  readonly configWarnings: readonly string[];
}

export interface Doors {
  readonly addresses: readonly string[];
  readonly url: string | undefined;
  readonly tokenFile: string;
  /** How to come in, in lines for people; with the owner's token when it is new. */
  readonly how: string;
  /** Nothing new is begun; resolves when what runs has ended, or when the signal aborts. */
  drain(signal: AbortSignal): Promise<void>;
  /** Nothing new is begun, and what runs gets its end. Followers of events stay connected to receive that. */
  endWork(): Promise<void>;
}

/** What the options of a command say of its doors. */
export interface DoorChoices {
  readonly listen: readonly string[];
  readonly tls: TlsFiles;
  /** Other machines may come in without TLS. */
  readonly allowsNonLoopback: boolean;
  /** Other names under which clients may call. */
  readonly names: readonly string[];
  /** The folder with the page of the dashboard; absent: it is left out. */
  readonly pageFolder: string | undefined;
}

export interface DoorOptions {
  readonly choices: DoorChoices;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** How this process is named to others that want the home: `heddle serve`. */
  readonly what: string;
  /** What can be done instead while another one has it. */
  readonly instead?: string;
  readonly log: (line: string) => void;
}

export async function planDoors({ choices, cwd, env, what, instead, log }: DoorOptions): Promise<DoorPlan> {
  const bindings = chosenBindings(choices.listen, cwd, env);
  if (!choices.allowsNonLoopback) for (const at of bindings) refuseOpenDoor(at, "https");
  const hasTls = bindings.some((at) => at.kind === "tcp" && at.hasTls);
  const tls = await readTls(choices.tls, hasTls);
  return {
    stopMs: STOP_MS,
    sockets: bindings.flatMap((at) => (at.kind === "unix" && at.path !== undefined ? [at.path] : [])),
    async claim(ends, home) {
      ends.use(await claimHome(home, what, instead));
      const owner = await ensureOwnerToken(home);
      // What is wrong with the others' is said now, not when they come.
      await listTokens(home);
      const { names, pageFolder } = choices;
      const entrance = { home, owner, bindings, names, pageFolder, tls, log };
      return { open: (withEnds, behind) => openDoors(withEnds, entrance, behind) };
    },
  };
}

async function claimHome(home: string, what: string, instead: string | undefined): Promise<AsyncDisposable> {
  try {
    return await claimStore(home, what);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "store.owned") throw error;
    const { message, details } = error;
    const address = await addressOf(home, details["pid"]);
    const hint = address === undefined ? undefined : `look at ${address}, where it serves`;
    const hints = [message, hint, instead].filter((text) => text !== undefined);
    throw new HeddleError("store.owned", hints.join("; or "), { cause: error, details });
  }
}

interface Entrance {
  readonly home: string;
  readonly owner: Awaited<ReturnType<typeof ensureOwnerToken>>;
  readonly bindings: readonly ServeAt[];
  readonly names: readonly string[];
  readonly pageFolder: string | undefined;
  readonly tls: TlsPair | undefined;
  readonly log: (line: string) => void;
}

async function openDoors(ends: AsyncDisposableStack, entrance: Entrance, behind: BehindDoors): Promise<Doors> {
  const { home, owner, bindings, pageFolder, log } = entrance;
  const { host, heddle, settings, taskDoor, harness, cwd, version, config, configWarnings } = behind;
  const publicUrl = config.public_url;
  const server = new AppServer({ heddle, settings, home, cwd, version, host, configWarnings, log });
  const acceptFrom =
    (principal: Principal): Accept =>
    (channel) => {
      server.accept(channel, principal).catch((error: unknown) => log(reasonOf(error)));
    };
  const tokens = openTokenBook(home, { token: owner.token, file: ownerTokenPath(home) }, log);
  const websockets = { "/": acceptFrom };
  const facts = hostFacts(host, { home, cwd, config });
  const { turns } = server;
  const places = { home, cwd, pageFolder, configFile: host.config?.file };
  const { workspaces: _, ...ofHome } = limitOptions(config).dayLimits ?? {};
  const given = { heddle, settings, facts, taskDoor, tokens, turns, dayLimits: defined(ofHome) };
  const door = new HttpDoor({ ...given, ...places, version, log, websockets });
  const drain = (signal: AbortSignal): Promise<void> => server.drain(signal);
  let ending: Promise<unknown> | undefined;
  const endWork = async (): Promise<void> => {
    ending ??= Promise.allSettled([
      server[Symbol.asyncDispose](),
      door.endRuns(),
      ...(harness === undefined ? [] : [harness[Symbol.asyncDispose]()]),
    ]);
    await ending;
  };
  // Closed in the opposite order: work ends and clients receive that, then the doors go, a socket's file with its listener.
  const listeners = ends.use(new AsyncDisposableStack());
  ends.use(door);
  ends.defer(endWork);
  const addresses: string[] = [];
  for (const at of bindings.length > 0 ? bindings : await ownBindings(home)) {
    const listener = await open(at, { ...entrance, door, publicUrl, accept: acceptFrom(LOCAL_OWNER) });
    listeners.use(listener);
    addresses.push(listener.address);
  }
  ends.use(await rememberAddresses(home, addresses));
  const url = urlOf(addresses);
  const tokenFile = ownerTokenPath(home);
  // Once, when it is made: what is printed tends to end up in logs.
  const newToken = owner.isNew ? ` (new: ${owner.token})` : "";
  const lines = [
    ...addresses.map((address) => `serving  ${address}`),
    ...(url === undefined || pageFolder === undefined ? [] : [`page     ${url}/  (log in with: heddle dashboard)`]),
    `token    ${tokenFile}${newToken}`,
    ...(url === undefined ? [] : [`try      curl -H "Authorization: Bearer $(cat ${tokenFile})" ${url}/api/server`]),
  ];
  return { addresses, url, tokenFile, how: `${visibleText(lines.join("\n"))}\n`, drain, endWork };
}

type Accept = Parameters<typeof listenUnix>[1];

interface Opening extends Entrance {
  readonly door: HttpDoor;
  readonly publicUrl: string | undefined;
  readonly accept: Accept;
}

async function open(at: ServeAt, { door, accept, home, names, tls, publicUrl }: Opening): Promise<Listener> {
  if (at.kind === "unix") {
    const http = { server: door.privateServer(), [Symbol.asyncDispose]: () => Promise.resolve() };
    return listenUnix(at.path ?? path.join(home, OWN_SOCKET), accept, { http });
  }
  try {
    return await door.listen({ host: at.host, port: at.port, names, publicUrl, tls: at.hasTls ? tls : undefined });
  } catch (error) {
    // A port from an earlier start may be in use by now; one that was asked for is not replaced.
    if (at.isRemembered !== true || !isHeddleError(error)) throw error;
    return door.listen({ host: at.host, port: 0, names, publicUrl });
  }
}

const OWN_SOCKET = "serve.sock";

/** Where nothing is chosen: the port of last time, so that what clients remember stays good. */
async function ownBindings(home: string): Promise<readonly ServeAt[]> {
  return [
    { kind: "tcp", host: "127.0.0.1", port: await lastPort(home), hasTls: false, isRemembered: true },
    { kind: "unix", path: undefined },
  ];
}
