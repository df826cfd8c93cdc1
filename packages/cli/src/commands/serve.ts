/**
 * `heddle serve`: every door of one engine in one process. HTTP with server-sent events and JSON-RPC over WebSocket share
 * a port, and both are on a private socket too. It runs until a signal says so; running turns get their end first.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { claimStore } from "@heddle/agent";
import { EXIT, isHeddleError, visibleText } from "@heddle/protocol";
import { AppServer, listenUnix, LOCAL_OWNER, type Listener, type Principal, type TlsPair } from "@heddle/server";
import { ensureOwnerToken, HttpDoor, isLoopback, listTokens, openTokenBook, ownerTokenPath } from "@heddle/server/http";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { CONFIG_OPTIONS, log, makeHome, readConfig, untilAborted } from "../app-server/engine.ts";
import { openServing } from "../app-server/open-serving.ts";
import { hostFacts } from "../app-server/host-facts.ts";
import { parseServeAt, type ServeAt } from "../app-server/serve-at.ts";
import { readTls, TLS_OPTIONS } from "../app-server/tls.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";
import { deskOf } from "../tasks/open-desk.ts";
import { openWorker } from "../tasks/open-worker.ts";

const OPTIONS: readonly OptionSpec[] = [
  {
    name: "listen",
    value: "URL",
    isMultiple: true,
    help: "http://IP:PORT, https://IP:PORT, unix://PATH, or unix:// (default: a port of this machine alone, and unix://)",
  },
  ...TLS_OPTIONS,
  { name: "allow-non-loopback", help: "Listen where other machines can reach it, without TLS" },
  { name: "no-tasks", help: "Leave tasks, the inbox and notifications to another process" },
  { name: "allow-host", value: "NAME", isMultiple: true, help: "Another name under which clients may call" },
  ...CONFIG_OPTIONS,
];

export const serveCommand: Command = {
  usage: "serve [--listen URL]... [OPTIONS]",
  about:
    "Serves threads, turns and events over HTTP with server-sent events, and over JSON-RPC as app-server does (WebSocket at\n" +
    "the same port, lines on the socket). Every TCP client shows a token: heddle token --help.",
  options: OPTIONS,
  examples: [
    "heddle serve",
    "heddle serve --listen http://127.0.0.1:4617",
    "heddle serve --listen https://0.0.0.0:4617 --allow-host me.example --tls-cert cert.pem --tls-key key.pem",
    "heddle serve --listen unix:///run/user/1000/heddle.sock",
    'curl -H "Authorization: Bearer $(cat ~/.heddle/serve.token)" http://127.0.0.1:4617/api/threads',
  ],
  run,
};

/** Turns have six seconds for their end, clients a moment to hear of it; then it is over, whatever hangs. */
const STOP_MS = 9_500;
const OWN_SOCKET = "serve.sock";
/** Where clients of the same user find the server. */
const ADDRESS_FILE = "serve.json";

async function run(args: ParsedArgs, { env, cwd, version }: CommandContext): Promise<number> {
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`serve takes no words, only options; what is "${extra}"?`);
  const wished = args.values("listen").map((text) => parseServeAt(text, cwd));
  for (const at of wished) refuseOpenDoor(at, args);
  const tls = await readTls(
    args,
    cwd,
    wished.some((at) => at.kind === "tcp" && at.hasTls),
  );
  using stop = watchForStop(undefined, STOP_MS);
  const { file, config, warnings } = await readConfig(args, env);
  const home = await makeHome(env);
  // Closed in the opposite order: turns end and clients hear of it, then the doors go, then the engine, then the claim.
  await using ends = new AsyncDisposableStack();
  ends.use(await claimStore(home, "heddle serve"));
  const owner = await ensureOwnerToken(home);
  // What is wrong with the others' is said now, not when they come.
  await listTokens(home);
  const sockets = socketsOf(wished);
  const { host, heddle, settings } = await openServing(ends, { args, env, cwd, file, config, home, sockets });
  const work = { heddle, settings, home, config, env };
  const worker = args.has("no-tasks") ? undefined : await openWorker(ends, work);
  const desk = {
    ...(worker?.desk ?? deskOf({ ...work, journal: heddle.journal })),
    concurrency: worker?.concurrency ?? 0,
  };
  const facts = hostFacts(host);
  const server = new AppServer({ heddle, settings, home, cwd, version, host, configWarnings: warnings, log });
  const acceptFrom =
    (principal: Principal): Accept =>
    (channel) => {
      server.accept(channel, principal).catch((error: unknown) => log(String(error)));
    };
  const tokens = openTokenBook(home, owner.token, log);
  const websockets = { "/": acceptFrom };
  const door = new HttpDoor({ heddle, settings, facts, desk, tokens, cwd, version, log, websockets });
  ends.defer(async () => {
    await Promise.allSettled([server[Symbol.asyncDispose](), door.endRuns(), worker?.harness[Symbol.asyncDispose]()]);
    await door[Symbol.asyncDispose]();
  });
  const names = args.values("allow-host");
  const listeners: Listener[] = [];
  for (const at of wished.length > 0 ? wished : await ownPlaces(home)) {
    const listener = await open(at, { door, accept: acceptFrom(LOCAL_OWNER), home, names, tls });
    // The door closes what listens for it; a socket's file goes with its listener.
    if (at.kind === "unix") ends.use(listener);
    listeners.push(listener);
    log(`listening on ${listener.address}`);
  }
  await remember(home, listeners);
  tellHow(home, listeners, owner.isNew ? owner.token : undefined);
  await untilAborted(stop.signal);
  await ends.disposeAsync();
  return EXIT.ok;
}

type Accept = Parameters<typeof listenUnix>[1];

interface Opening {
  readonly door: HttpDoor;
  readonly accept: Accept;
  readonly home: string;
  readonly names: readonly string[];
  readonly tls: TlsPair | undefined;
}

async function open(at: ServeAt, { door, accept, home, names, tls }: Opening): Promise<Listener> {
  if (at.kind === "unix") {
    const http = { server: door.privateServer(), [Symbol.asyncDispose]: () => Promise.resolve() };
    return listenUnix(at.path ?? path.join(home, OWN_SOCKET), accept, http);
  }
  try {
    return await door.listen({ host: at.host, port: at.port, names, tls: at.hasTls ? tls : undefined });
  } catch (error) {
    // A port from an earlier start may be somebody else's by now; one that was asked for is not replaced.
    if (at.isRemembered !== true || !isHeddleError(error)) throw error;
    return door.listen({ host: at.host, port: 0, names });
  }
}

/** Without wishes: the port of last time, so that what clients remember stays good. */
async function ownPlaces(home: string): Promise<readonly ServeAt[]> {
  const text = await readFile(path.join(home, ADDRESS_FILE), "utf8").catch(() => "{}");
  const port = Number(/"port":\s*(\d{1,5})/.exec(text)?.[1] ?? 0);
  return [
    { kind: "tcp", host: "127.0.0.1", port: port <= 65_535 ? port : 0, hasTls: false, isRemembered: true },
    { kind: "unix", path: undefined },
  ];
}

async function remember(home: string, listeners: readonly Listener[]): Promise<void> {
  const addresses = listeners.map(({ address }) => address);
  const url = addresses.find((address) => /^https?:/.test(address));
  const plain = addresses.find((address) => address.startsWith("http:"));
  const port = plain === undefined ? undefined : Number(new URL(plain).port);
  const target = path.join(home, ADDRESS_FILE);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify({ addresses, url, port, pid: process.pid })}\n`, { mode: 0o600 });
  await rename(draft, target);
}

function tellHow(home: string, listeners: readonly Listener[], newToken: string | undefined): void {
  const url = listeners.map(({ address }) => address).find((address) => /^https?:/.test(address));
  const lines = [
    ...listeners.map(({ address }) => `serving  ${address}`),
    // Once, when it is made: what is printed tends to end up in logs.
    `token    ${ownerTokenPath(home)}${newToken === undefined ? "" : ` (new: ${newToken})`}`,
    ...(url === undefined
      ? []
      : [`try      curl -H "Authorization: Bearer $(cat ${ownerTokenPath(home)})" ${url}/api/server`]),
  ];
  process.stdout.write(`${visibleText(lines.join("\n"))}\n`);
}

function socketsOf(places: readonly ServeAt[]): readonly string[] {
  return places.flatMap((at) => (at.kind === "unix" && at.path !== undefined ? [at.path] : []));
}

function refuseOpenDoor(at: ServeAt, args: ParsedArgs): void {
  if (at.kind !== "tcp" || at.hasTls || isLoopback(at.host) || args.has("allow-non-loopback")) return;
  throw usage(
    `${at.host} can be reached from other machines; listen on 127.0.0.1, write https:// with --tls-cert and --tls-key, or add --allow-non-loopback`,
  );
}
