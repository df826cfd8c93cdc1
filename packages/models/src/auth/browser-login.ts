/**
 * A login in the browser: a code that only whoever asked for it can use (PKCE, S256), brought back to a port of this machine
 * that nobody else can reach, with a state that cannot be guessed. Where both ports the issuer knows are taken, the person
 * pastes the address the browser ended at.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { HeddleError } from "@heddle/protocol";
import type { Issuer } from "./issuer.ts";

/** The issuer sends people back to these and no others. */
const PORTS = [1455, 1457];
const CALLBACK = "/auth/callback";

export interface BrowserGrant {
  readonly code: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

export interface BrowserLogin extends AsyncDisposable {
  readonly authUrl: string;
  /** No port could be had: the person has to paste where the browser ended. */
  readonly isManual: boolean;
  readonly granted: Promise<BrowserGrant>;
  /** Takes the whole address, or `code#state`. Throws when it is not of this login. */
  paste(text: string): void;
}

export async function openBrowserLogin(issuer: Issuer, ports: readonly number[] = PORTS): Promise<BrowserLogin> {
  const verifier = randomBytes(48).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  const { promise: granted, resolve, reject } = Promise.withResolvers<BrowserGrant>();
  // Whoever gives up first never looks.
  granted.catch(() => undefined);
  const listening = await listenOnOne(ports, (request, response, port) => {
    const outcome = readCallback(request, state, port);
    respond(response, outcome);
    if (outcome.kind === "code") resolve({ code: outcome.code, verifier, redirectUri: redirectTo(port) });
    if (outcome.kind === "declined") reject(declined(outcome.reason));
  });
  const redirectUri = redirectTo(listening?.port ?? ports[0] ?? 1455);
  return {
    authUrl: authorizeUrl(issuer, { redirectUri, state, verifier }),
    isManual: listening === undefined,
    granted,
    paste(text) {
      const outcome = readParameters(pasted(text), state);
      if (outcome.kind === "code") return resolve({ code: outcome.code, verifier, redirectUri });
      if (outcome.kind === "declined") return reject(declined(outcome.reason));
      throw new HeddleError("usage.invalid", "this is not the address this login ended at; paste all of it");
    },
    async [Symbol.asyncDispose]() {
      for (const server of listening?.servers ?? []) closeNow(server);
    },
  };
}

function authorizeUrl(
  issuer: Issuer,
  { redirectUri, state, verifier }: { readonly redirectUri: string; readonly state: string; readonly verifier: string },
): string {
  const url = new URL("/oauth/authorize", issuer.url);
  const parameters = {
    response_type: "code",
    client_id: issuer.clientId,
    redirect_uri: redirectUri,
    scope: issuer.scope,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state,
    id_token_add_organizations: "true",
    codex_cli_simplified_flow: "true",
    originator: issuer.originator,
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

function redirectTo(port: number): string {
  return `http://localhost:${port}${CALLBACK}`;
}

interface Listening {
  readonly port: number;
  readonly servers: readonly Server[];
}

type Handler = (request: IncomingMessage, response: ServerResponse, port: number) => void;

async function listenOnOne(ports: readonly number[], handle: Handler): Promise<Listening | undefined> {
  for (const port of ports) {
    const servers = await listenOnBoth(port, handle);
    if (servers !== undefined) return { port, servers };
  }
  return undefined;
}

/** Both loopback addresses, because `localhost` may mean either. A host without one of them does with the other. */
async function listenOnBoth(port: number, handle: Handler): Promise<readonly Server[] | undefined> {
  const servers: Server[] = [];
  for (const host of ["127.0.0.1", "::1"]) {
    const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) =>
      handle(request, response, port),
    );
    const failure = await listenOn(server, port, host);
    if (failure === undefined) servers.push(server);
    else if (failure !== "EADDRNOTAVAIL" && failure !== "EAFNOSUPPORT") {
      // Somebody else would get half of the callbacks.
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
  | { readonly kind: "code"; readonly code: string }
  | { readonly kind: "declined"; readonly reason: string }
  | { readonly kind: "foreign" }
  | { readonly kind: "unknownPath" };

function readCallback(request: IncomingMessage, state: string, port: number): Outcome {
  const url = URL.parse(request.url ?? "", `http://localhost:${port}`);
  // A page that has a name of its own resolve to this machine is not the browser coming back.
  const hosts = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`];
  const isOurs = request.method === "GET" && url?.pathname === CALLBACK && hosts.includes(request.headers.host ?? "");
  return isOurs ? readParameters(url.searchParams, state) : { kind: "unknownPath" };
}

function readParameters(parameters: URLSearchParams, state: string): Outcome {
  if (!isSame(parameters.get("state") ?? "", state)) return { kind: "foreign" };
  const error = parameters.get("error") ?? "";
  if (error !== "") return { kind: "declined", reason: /^[a-z_]{1,64}$/.test(error) ? error : "refused" };
  const code = parameters.get("code") ?? "";
  return code === "" || code.length > 8192 ? { kind: "foreign" } : { kind: "code", code };
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

function declined(reason: string): HeddleError {
  return new HeddleError("login.failed", `the login was declined (${reason})`);
}

const PAGES = {
  code: [200, "You are logged in", "Heddle has what it needs. You can close this page."],
  declined: [200, "The login was declined", "Nothing was kept. You can close this page."],
  foreign: [400, "Not of this login", "This page does not belong to the login that Heddle waits for."],
  unknownPath: [404, "Nothing here", ""],
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
