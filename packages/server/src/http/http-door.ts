/**
 * The HTTP door: one engine's threads, turns and events for programs, over TCP and over a private socket. Each request
 * passes the same checks in the same order: where it thinks it is, whose page sent it, who it is, what it wants, whether
 * it may, what it brings.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { HeddleError, isHeddleError, reasonOf, toHeddleError } from "@heddle/protocol";
import { REFUSALS } from "@heddle/protocol/measure";
import type { Heddle } from "@heddle/agent";
import { isLoopback } from "../access/loopback.ts";
import { authorOf, scopeAllows, type Principal } from "../access/principals.ts";
import type { SettingsResolver } from "../codex/settings.ts";
import {
  createDoorServer,
  listenTcp,
  urlOf,
  type DoorServer,
  type Listener,
  type OnChannel,
  type TcpAddress,
  type TlsPair,
} from "../transports/server.ts";
import { Strangers } from "../transports/strangers.ts";
import { websocketUpgrade } from "../transports/websocket.ts";
import { sendError, sendJson, statusOf } from "./answer.ts";
import { incoming, parseBody, readBody, requireLines } from "./body.ts";
import { eventSocketAt } from "./event-routes.ts";
import { checkOrigin, Guard, type Entrance } from "./guard.ts";
import { Guests } from "./guests.ts";
import { LoginCodes } from "./login-codes.ts";
import { DashboardPage, isForPage } from "./page.ts";
import { PROBE_ROUTES } from "./probe-routes.ts";
import type { Metrics } from "../metrics/open-metrics.ts";
import type { HostFacts, HttpContext, Route } from "./route.ts";
import { findRoute } from "./routes.ts";
import { RunningTurns } from "../turns/running-turns.ts";
import { EnvelopeSessions } from "../mcp/envelope-sessions.ts";
import { EventHub } from "./events/hub.ts";
import type { TaskDoorOptions } from "./task-door.ts";
import type { TokenBook } from "./tokens.ts";

export interface HttpDoorOptions {
  /** Opened by the caller, attended: clients can be asked. The caller closes it after the door. */
  readonly heddle: Heddle;
  readonly settings: SettingsResolver;
  readonly facts: HostFacts;
  readonly taskDoor: TaskDoorOptions;
  readonly tokens: TokenBook;
  /** Of the other doors of the same engine; absent: there are none. */
  readonly turns?: RunningTurns;
  /** Heddle's own folder. */
  readonly home: string;
  readonly cwd: string;
  readonly version: string;
  /** Of the configuration that is in force. */
  readonly configFile?: string | undefined;
  /** The folder with the built page of the dashboard; absent: it is left out. */
  readonly pageFolder?: string | undefined;
  readonly log: (line: string) => void;
  /** What is served to a WebSocket at one of these paths; each of its methods asks who calls. */
  readonly websockets?: Readonly<Record<string, (principal: Principal) => OnChannel>> | undefined;
  readonly heartbeatMs?: number | undefined;
  readonly stuckMs?: number | undefined;
  /** How long a client may take for its headers. */
  readonly headersMs?: number | undefined;
  /** What all threads of the home may use in a day; absent: no limit. */
  readonly dayLimits?: HttpContext["dayLimits"] | undefined;
  /** How long a verification may take. */
  readonly verifyMs?: number | undefined;
}

export interface TcpAt extends TcpAddress {
  /** Further names; the address itself and, on loopback, `localhost` are always known. */
  readonly names: readonly string[];
  /** Where users reach it from elsewhere, as through a proxy. */
  readonly publicUrl?: string | undefined;
  /** Absent: in the clear. */
  readonly tls?: TlsPair | undefined;
}

/** A whole request may take three times as long. */
const HEADERS_TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_URL_CHARS = 8 * 1024;
const MAX_CONNECTIONS = 4_000;
/** How often open WebSockets are held against the tokens there are. */
const LOOK_MS = 15_000;
/** What watches over the process is answered to its end. */
const PROBES: ReadonlySet<string> = new Set(PROBE_ROUTES.map((route) => route.path));
/** When a silent connection is first probed. */
const KEEP_ALIVE_MS = 3_000;

export class HttpDoor implements AsyncDisposable {
  readonly #options: HttpDoorOptions;
  readonly #context: HttpContext;
  readonly #guard: Guard;
  readonly #servers = new Set<DoorServer>();
  readonly #sockets = websocketUpgrade();
  readonly #guests: Guests;
  readonly #page: DashboardPage | undefined;
  /** Counted from the first question on. */
  #metrics: Promise<Metrics> | undefined;
  #isStopping = false;

  constructor(options: HttpDoorOptions) {
    const { heddle, settings, facts, taskDoor, home, cwd, version, log, tokens, heartbeatMs, stuckMs } = options;
    this.#options = options;
    this.#guard = new Guard(tokens);
    this.#page = options.pageFolder === undefined ? undefined : new DashboardPage(options.pageFolder);
    const isStillGood = (principal: Principal): Promise<boolean> => this.#guard.isStillGood(principal);
    const hub = new EventHub({ heddle, isStillGood, log, heartbeatMs, stuckMs });
    this.#guests = new Guests({ isStillGood, log, lookMs: heartbeatMs ?? LOOK_MS });
    this.#context = {
      heddle,
      settings,
      facts,
      taskDoor,
      home,
      cwd,
      version,
      hub,
      turns: options.turns ?? new RunningTurns(heddle),
      mcpSessions: new EnvelopeSessions(),
      loginCodes: new LoginCodes(isStillGood),
      tokens,
      configFile: options.configFile,
      verifyMs: options.verifyMs,
      dayLimits: options.dayLimits ?? {},
      metrics: () => (this.#metrics ??= this.#openMetrics()),
      log,
    };
  }

  /** How many clients follow events now. */
  get followers(): number {
    return this.#context.hub.size;
  }

  /** For connections that another server accepts on a private socket. */
  privateServer(): DoorServer {
    return this.#server({ kind: "private" });
  }

  async listen({ host, port, names, tls, publicUrl }: TcpAt): Promise<Listener> {
    const hosts = new Set<string>();
    const scheme = tls === undefined ? "http" : "https";
    const known = publicUrl === undefined ? undefined : new URL(publicUrl);
    const entrance = { kind: "tcp", hosts, scheme, known, strangers: new Strangers() } as const;
    const server = this.#server(entrance, tls);
    const boundPort = await listenTcp(server, { host, port });
    const own = host.includes(":") ? `[${host}]` : host;
    for (const name of [own, ...(isLoopback(host) ? ["localhost"] : []), ...names]) {
      hosts.add(`${name.toLowerCase()}:${boundPort}`);
    }
    return { address: `${scheme}://${own}:${boundPort}`, [Symbol.asyncDispose]: () => this.#close(server) };
  }

  /** Starts nothing new, and ends the turns that were started here. Followers stay connected. */
  async endRuns(): Promise<void> {
    this.#isStopping = true;
    await this.#context.turns.end();
  }

  /** Ends the turns that were started here, sends their ends to followers, then disconnects. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.endRuns();
    await this.#context.hub[Symbol.asyncDispose]();
    this.#guests[Symbol.dispose]();
    (await this.#metrics?.catch(() => undefined))?.[Symbol.dispose]();
    this.#sockets[Symbol.dispose]();
    await Promise.all([...this.#servers].map((server) => this.#close(server)));
  }

  async #openMetrics(): Promise<Metrics> {
    const { heddle, version, log } = this.#options;
    const { turns, hub } = this.#context;
    const { openMetrics } = await import("../metrics/open-metrics.ts");
    const followers = (): number => hub.size + this.#guests.size;
    return openMetrics({ heddle, version, followers, isDraining: () => turns.isDraining, log });
  }

  #server(entrance: Entrance, tls?: TlsPair): DoorServer {
    const { headersMs = HEADERS_TIMEOUT_MS } = this.#options;
    const server = createDoorServer(
      {
        headersTimeout: headersMs,
        requestTimeout: headersMs * 3,
        connectionsCheckingInterval: headersMs / 5,
        maxHeaderSize: MAX_HEADER_BYTES,
        keepAlive: true,
        keepAliveInitialDelay: KEEP_ALIVE_MS,
        noDelay: true,
      },
      tls,
      (request, response) => void this.#answer(request, response, entrance),
    );
    server.maxConnections = MAX_CONNECTIONS;
    if (entrance.kind === "tcp") entrance.strangers.watch(server);
    server.on("upgrade", (request, socket, head) => void this.#upgrade(request, socket, head, entrance));
    this.#servers.add(server);
    return server;
  }

  async #close(server: DoorServer): Promise<void> {
    this.#servers.delete(server);
    const isListening = server.listening;
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    server.closeAllConnections();
    if (isListening) await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse, entrance: Entrance): Promise<void> {
    response.on("error", () => response.destroy());
    try {
      await this.#carryOut(request, response, entrance);
    } catch (error) {
      this.#refuse(request, response, error);
    }
  }

  async #carryOut(request: IncomingMessage, response: ServerResponse, entrance: Entrance): Promise<void> {
    const pathname = urlOf(request)?.pathname ?? "";
    const page = isForPage(request, pathname) ? this.#page : undefined;
    checkOrigin(request, entrance, page !== undefined);
    const url = addressOf(request);
    if (this.#isStopping && !PROBES.has(pathname)) throw new HeddleError("door.overloaded", "the server is stopping");
    if (page !== undefined) return page.send(request, response, pathname);
    const matched = tryFind(request.method ?? "", url.pathname);
    const needsToken = matched instanceof Error || asksWho(matched.route, request, entrance);
    const principal = needsToken ? await this.#guard.principalOf(request, entrance, false) : undefined;
    if (matched instanceof Error) throw matched;
    const { route, params } = matched;
    refuseRole(route, principal);
    const takesLines = route.takes === "lines";
    if (takesLines) requireLines(request.headers["content-type"]);
    const takesBody = !takesLines && (route.method === "POST" || route.method === "PATCH");
    const bytes = takesBody ? await readBody(request) : Buffer.alloc(0);
    const { headers } = request;
    const lastEventId = [headers["last-event-id"]].flat()[0];
    // What has no shape here is parsed by its handler: a signed body after its signature is checked, MCP as MCP says.
    const body = takesBody && route.body !== undefined ? await parseBody(bytes) : undefined;
    const raw = { params, query: queryOf(url), body };
    // Nothing that is public or signed is done in the name of this door.
    const by = principal === undefined ? "user:door:http" : authorOf(principal);
    const call = {
      context: this.#context,
      principal,
      by,
      traceparent: traceparentOf(headers),
      url: url.href,
      headers,
      bytes,
      incoming: incoming(request),
      response,
      lastEventId,
    };
    const answer = await route.run(raw, call);
    if (typeof route.answer !== "string") sendJson(response, route.status, answer);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const failure = toHeddleError(error);
    if (failure.code === "internal") this.#options.log(`${request.method ?? ""} failed: ${describe(error)}`);
    tellRefusal(request, failure);
    const { allow } = failure.details;
    const isUnread = !request.complete && (request.method === "POST" || request.method === "PATCH");
    const headers = {
      ...(failure.code === "door.unauthorized" ? { "www-authenticate": 'Bearer realm="heddle"' } : {}),
      ...(typeof allow === "string" ? { allow } : {}),
      ...(statusOf(failure) === 503 || statusOf(failure) === 429 ? { "retry-after": "1" } : {}),
    };
    sendError(response, failure, { headers, closes: isUnread });
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, entrance: Entrance): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      if (this.#isStopping) throw new HeddleError("door.overloaded", "the server is stopping");
      checkOrigin(request, entrance, false);
      const url = addressOf(request);
      const principal = await this.#guard.principalOf(request, entrance, true);
      const { websockets = {} } = this.#options;
      const open = Object.hasOwn(websockets, url.pathname) ? websockets[url.pathname] : undefined;
      const onChannel = open?.(principal) ?? (await eventSocketAt(url, principal, this.#context.hub));
      if (onChannel === undefined) throw new HeddleError("door.not-found", "no WebSocket is served here");
      this.#guests.refuseCrowd(principal);
      this.#sockets.handle(request, socket, head, this.#guests.admit(principal, onChannel));
    } catch (error) {
      const status = isHeddleError(error) ? statusOf(error) : 500;
      if (isHeddleError(error)) tellRefusal(request, error);
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    }
  }
}

const OF_WHO_CALLS: ReadonlySet<string> = new Set(["door.unauthorized", "door.wrong-host", "limit.reached"]);

function tellRefusal({ socket }: IncomingMessage, { code }: HeddleError): void {
  if (REFUSALS.isOn && OF_WHO_CALLS.has(code)) REFUSALS.publish({ code, address: socket.remoteAddress ?? "" });
}

/** Only what has the form: it is stored, and shown to a collector. */
function traceparentOf({ traceparent }: IncomingMessage["headers"]): string | undefined {
  const [given] = [traceparent].flat();
  return given !== undefined && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(given) ? given : undefined;
}

/** A token that is shown is looked at, also where none is needed. */
function asksWho({ scope }: Route, { headers }: IncomingMessage, { kind }: Entrance): boolean {
  if (scope === "signed") return kind === "private" || headers.authorization !== undefined;
  return scope !== "public";
}

function refuseRole({ name, scope }: Route, principal: Principal | undefined): void {
  if (principal === undefined || scope === "public") return;
  if (scopeAllows(principal.role, scope === "signed" ? "write" : scope)) return;
  throw new HeddleError("door.forbidden", `${name} needs more than the role ${principal.role}`);
}

function addressOf(request: IncomingMessage): URL {
  const url = (request.url ?? "").length > MAX_URL_CHARS ? undefined : urlOf(request);
  if (url === undefined) throw new HeddleError("usage.invalid", "the address is too long, or not a path");
  return url;
}

function tryFind(method: string, pathname: string): ReturnType<typeof findRoute> | HeddleError {
  try {
    return findRoute(method, pathname);
  } catch (error) {
    return toHeddleError(error);
  }
}

function queryOf({ searchParams }: URL): Readonly<Record<string, string>> {
  const names = new Set(searchParams.keys());
  if (names.size !== searchParams.size) throw new HeddleError("usage.invalid", "the query has a name twice");
  return Object.fromEntries(searchParams);
}

function describe(error: unknown): string {
  return (error instanceof Error ? error.stack : undefined) ?? reasonOf(error);
}
