/**
 * Where a browser returns to after a login: a port of this machine that no other machine can reach, one path, and a state
 * that cannot be guessed. Where no port is free, the user pastes the address at which the browser ended.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { defined, HeddleError, type McpCode } from "@heddle/protocol";

export interface CallbackOptions {
  readonly state: string;
  readonly path: string;
  /** The first that is free; 0: any. */
  readonly ports: readonly number[];
  readonly host: "localhost" | "127.0.0.1";
}

export interface Callback extends AsyncDisposable {
  readonly redirectUri: string;
  /** No port is free: the user has to paste the address at which the browser ended. */
  readonly isManual: boolean;
  readonly granted: Promise<McpCode>;
  /** Takes the whole address, or `code#state`. Throws when it is not of this login. */
  paste(text: string): void;
}

export async function openCallback(options: CallbackOptions): Promise<Callback> {
  const { state, path, ports, host } = options;
  const { promise: granted, resolve, reject } = Promise.withResolvers<McpCode>();
  // A login that was cancelled never looks at it.
  granted.catch(() => undefined);
  const take = (outcome: Outcome): void => {
    if (outcome.kind === "declined")
      reject(new HeddleError("login.failed", `the login was declined (${outcome.reason})`));
    if (outcome.kind === "code") resolve(defined({ code: outcome.code, issuer: outcome.issuer }));
  };
  const listening = await listenOnOne(ports, host, (request, response, port) => {
    const outcome = readCallback(request, options, port);
    respond(response, outcome);
    take(outcome);
  });
  return {
    redirectUri: `http://${host}:${listening?.port ?? ports[0] ?? 0}${path}`,
    isManual: listening === undefined,
    granted,
    paste(text) {
      const outcome = readParameters(pasted(text), state);
      if (outcome.kind === "foreign" || outcome.kind === "unknownPath") {
        throw new HeddleError(
          "usage.invalid",
          "this is not the address that the login ended at; paste the whole address",
        );
      }
      take(outcome);
    },
    async [Symbol.asyncDispose]() {
      for (const server of listening?.servers ?? []) closeNow(server);
    },
  };
}

interface Listening {
  readonly port: number;
  readonly servers: readonly Server[];
}

type Handler = (request: IncomingMessage, response: ServerResponse, port: number) => void;

async function listenOnOne(ports: readonly number[], host: string, handle: Handler): Promise<Listening | undefined> {
  for (const port of ports) {
    const servers = await listenOnAll(port, host, handle);
    if (servers !== undefined) return { port: portOf(servers) ?? port, servers };
  }
  return undefined;
}

function portOf([server]: readonly Server[]): number | undefined {
  const address = server?.address();
  return typeof address === "object" ? address?.port : undefined;
}

/** `localhost` may mean either loopback address; a machine may lack one of them. */
async function listenOnAll(port: number, name: string, handle: Handler): Promise<readonly Server[] | undefined> {
  const servers: Server[] = [];
  for (const host of name === "localhost" ? ["127.0.0.1", "::1"] : [name]) {
    const server: Server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) =>
      handle(request, response, portOf([server]) ?? port),
    );
    const failure = await listenOn(server, port, host);
    if (failure === undefined) servers.push(server);
    else if (failure !== "EADDRNOTAVAIL" && failure !== "EAFNOSUPPORT") {
      // Another program would get half of the callbacks.
      for (const open of servers) closeNow(open);
      return undefined;
    }
  }
  return servers.length === 0 ? undefined : servers;
}

function listenOn(server: Server, port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "unknown"));
    server.listen({ port, host, ipv6Only: true }, () => resolve(undefined));
  });
}

function closeNow(server: Server): void {
  server.close();
  server.closeAllConnections();
}

type Outcome =
  | ({ readonly kind: "code" } & McpCode)
  | { readonly kind: "declined"; readonly reason: string }
  | { readonly kind: "foreign" }
  | { readonly kind: "unknownPath" };

function readCallback(
  request: IncomingMessage,
  { state, path }: Pick<CallbackOptions, "state" | "path">,
  port: number,
): Outcome {
  const url = URL.parse(request.url ?? "", `http://localhost:${port}`);
  // A page whose name resolves to this machine is not the browser of the login.
  const hosts = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`];
  const isOurs = request.method === "GET" && url?.pathname === path && hosts.includes(request.headers.host ?? "");
  return isOurs ? readParameters(url.searchParams, state) : { kind: "unknownPath" };
}

function readParameters(parameters: URLSearchParams, state: string): Outcome {
  if (!isSame(parameters.get("state") ?? "", state)) return { kind: "foreign" };
  const error = parameters.get("error") ?? "";
  if (error !== "") return { kind: "declined", reason: /^[a-z_]{1,64}$/.test(error) ? error : "refused" };
  const code = parameters.get("code") ?? "";
  if (code === "" || code.length > 8192) return { kind: "foreign" };
  return { kind: "code", code, ...defined({ issuer: parameters.get("iss") ?? undefined }) };
}

function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function pasted(text: string): URLSearchParams {
  const trimmed = text.trim();
  const url = URL.parse(trimmed);
  if (url !== null && url.searchParams.has("state")) return url.searchParams;
  const [code = "", state = ""] = trimmed.split("#");
  return new URLSearchParams({ code, state });
}

const PAGES = {
  code: [200, "You are logged in", "Heddle has what it needs. You can close this page."],
  declined: [200, "The login was declined", "Nothing was kept. You can close this page."],
  foreign: [400, "Not part of this login", "This page does not belong to the login that Heddle is waiting for."],
  unknownPath: [404, "Page not found", "The login of Heddle has no page at this address."],
} as const;

function respond(response: ServerResponse, { kind }: Outcome): void {
  const [status, title, text] = PAGES[kind];
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'",
    connection: "close",
  });
  response.end(`<!doctype html><title>${title}</title><h1>${title}</h1><p>${text}</p>`);
}
