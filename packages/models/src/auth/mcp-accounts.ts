/**
 * Logins at MCP servers that are reached over HTTP, in the store of all credentials. A login is for one server at one
 * address: a server of the same name at another address does not get it. Requests to issuers are passed in.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  defined,
  HeddleError,
  isHeddleError,
  type McpAuthority,
  type McpAuthStatus,
  type McpHttpServer,
  type McpIssuers,
  type McpServerConfig,
  type McpTokens,
  type McpTokenSource,
} from "@heddle/protocol";
import { storeFor, type ChosenStoreOptions } from "./chosen-store.ts";
import { openCallback } from "./callback.ts";
import { LOCAL_OWNER, type Credential, type CredentialKey, type McpCredential } from "./credential.ts";
import { RefusedLogin } from "./issuer.ts";
import { createLoginBook, removeLogin, untilBack, type LoginBook, type RemovedLogin } from "./login-book.ts";
import { usableLogin } from "./refresh.ts";
import { expiryAfter } from "./tokens.ts";

/** Not the name of a model provider. */
const PROVIDER = "mcp-server";
/** As Codex waits for a browser. */
const LIFETIME_MS = 5 * 60_000;
const MAX_LIFETIME_MS = 60 * 60_000;
const REFRESH_MS = 60_000;

export interface McpAccountsOptions extends ChosenStoreOptions {
  readonly issuers: McpIssuers;
}

export interface StartedMcpLogin {
  readonly loginId: string;
  readonly authorizationUrl: string;
  /** No port is free: the user has to paste the address at which the browser ended. */
  readonly isManual: boolean;
}

export interface McpAccounts extends McpTokenSource, Pick<LoginBook, "ended" | "paste" | "cancel">, AsyncDisposable {
  status(server: McpServerConfig, signal: AbortSignal): Promise<McpAuthStatus>;
  start(
    server: McpHttpServer,
    options: { readonly scopes?: readonly string[] | undefined; readonly timeoutMs?: number | undefined },
  ): Promise<StartedMcpLogin>;
  /** Revokes what can be revoked, then removes this entry and no other. */
  logout(server: McpHttpServer): Promise<RemovedLogin>;
}

export function openMcpAccounts(options: McpAccountsOptions): McpAccounts {
  const { issuers } = options;
  const store = storeFor(options);
  const book = createLoginBook(store);
  const usable = (server: McpHttpServer, rejected?: string): Promise<McpCredential> =>
    usableLogin<McpCredential>({
      store,
      key: keyOf(server),
      own,
      isBrief: true,
      names: { service: `the MCP server ${server.name}`, again: `heddle mcp login ${server.name}` },
      signal: AbortSignal.timeout(REFRESH_MS),
      refresh: (current, token, signal) => refresh(issuers, current, token, signal),
      rejected,
    });
  return {
    ended: (loginId) => book.ended(loginId),
    paste: (loginId, text) => book.paste(loginId, text),
    cancel: (loginId) => book.cancel(loginId),
    [Symbol.asyncDispose]: () => book[Symbol.asyncDispose](),
    async token(server) {
      if (own(await store.get(keyOf(server))) === undefined) return undefined;
      return (await usable(server)).accessToken;
    },
    async renew(server, rejected) {
      // Without a token there is nothing to renew: the error says how to log in.
      await usable(server, rejected ?? "");
    },
    async status(server, signal) {
      if (!("url" in server)) return "unsupported";
      if (lacksToken(server, options.env)) return "notLoggedIn";
      if (bringsToken(server)) return "bearerToken";
      const login = own(await store.get(keyOf(server)));
      if (login?.health === "ok") return "oAuth";
      if (login !== undefined) return "notLoggedIn";
      return issuers.hasLogins(server, signal).then((has) => (has ? "notLoggedIn" : "unsupported"), unlessTyped);
    },
    start: (server, asked) => start(server, asked, { book, issuers }),
    logout: (server) =>
      removeLogin(store, keyOf(server), async (entry, signal) => {
        const login = own(entry);
        if (login === undefined) return false;
        return issuers.revoke(login.authority, login.refreshToken ?? login.accessToken, signal);
      }),
  };
}

async function start(
  server: McpHttpServer,
  { scopes, timeoutMs = LIFETIME_MS }: Parameters<McpAccounts["start"]>[1],
  { book, issuers }: { readonly book: LoginBook; readonly issuers: McpIssuers },
): Promise<StartedMcpLogin> {
  if (bringsToken(server)) {
    throw new HeddleError(
      "login.failed",
      `mcp_servers.${server.name} has a token in the configuration; remove it to log in`,
    );
  }
  const key = keyOf(server);
  await book.clear(key);
  const state = randomBytes(32).toString("base64url");
  const ports = [server.oauthCallbackPort ?? 0];
  const callback = await openCallback({ state, path: "/callback", ports, host: "127.0.0.1" });
  try {
    const { redirectUri, isManual } = callback;
    const signal = AbortSignal.timeout(REFRESH_MS);
    const begun = await issuers.begin(server, { redirectUri, state, scopes, signal });
    const loginId = book.follow(key, callback, async (waiting) => {
      const code = await untilBack(callback.granted, waiting, Math.min(timeoutMs, MAX_LIFETIME_MS));
      return credentialOf(server, begun.authority, await begun.redeem(code, waiting));
    });
    return { loginId, authorizationUrl: begun.authorizationUrl, isManual };
  } catch (error) {
    await callback[Symbol.asyncDispose]();
    throw error;
  }
}

/** The configuration has a token of its own; no login replaces it. */
function bringsToken({ bearerTokenEnv, headers }: McpHttpServer): boolean {
  return bearerTokenEnv !== undefined || Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

/** The variable that the configuration names for the token is not set. */
function lacksToken({ bearerTokenEnv }: McpHttpServer, env: McpAccountsOptions["env"]): boolean {
  return bearerTokenEnv !== undefined && (env[bearerTokenEnv] ?? "").trim() === "";
}

function unlessTyped(error: unknown): McpAuthStatus {
  if (isHeddleError(error)) return "unknown";
  throw error;
}

function own(entry: Credential | undefined): McpCredential | undefined {
  return entry?.type === "mcpOauth" ? entry : undefined;
}

/** Of the name and the address together, so that neither can be changed under a login. */
function keyOf({ name, url }: McpHttpServer): CredentialKey {
  const profile = createHash("sha256")
    .update(JSON.stringify([name, url]))
    .digest("hex")
    .slice(0, 32);
  return { owner: LOCAL_OWNER, provider: PROVIDER, profile };
}

async function refresh(
  issuers: McpIssuers,
  current: McpCredential,
  refreshToken: string,
  signal: AbortSignal,
): Promise<McpCredential> {
  try {
    const tokens = await issuers.refresh(current.authority, refreshToken, signal);
    return renewed(current, tokens);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "auth.rejected") throw error;
    const reason = error.details["reason"];
    throw new RefusedLogin(typeof reason === "string" ? reason : "refused");
  }
}

function credentialOf(server: McpHttpServer, authority: McpAuthority, tokens: McpTokens): McpCredential {
  const at = new Date().toISOString();
  return {
    type: "mcpOauth",
    v: 1,
    ...keyOf(server),
    savedAt: at,
    health: "ok",
    server: server.name,
    url: server.url,
    authority: { ...authority, authMethods: [...authority.authMethods] },
    ...tokenFields(tokens),
    lastRefresh: at,
  };
}

function renewed(current: McpCredential, tokens: McpTokens): McpCredential {
  const at = new Date().toISOString();
  const { expiresAt: _before, ...rest } = current;
  return { ...rest, savedAt: at, ...tokenFields(tokens), lastRefresh: at };
}

function tokenFields({ accessToken, refreshToken, expiresInSeconds }: McpTokens) {
  return defined({ accessToken, refreshToken, expiresAt: expiryAfter(Date.now(), expiresInSeconds) });
}
