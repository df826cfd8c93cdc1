/**
 * Logins at MCP servers that are reached over HTTP. Types only: `tools` talks to issuers, `models` stores credentials.
 */
import type { McpHttpServer } from "./mcp.ts";

/** In the terms of Codex. */
export type McpAuthStatus = "unknown" | "unsupported" | "notLoggedIn" | "bearerToken" | "oAuth";

/** The issuer of tokens for a server, and Heddle's client id there. Tokens of a login are sent only here and to the server. */
export interface McpAuthority {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string | undefined;
  /** How a client may authenticate; empty: not known. */
  readonly authMethods: readonly string[];
  /** What the tokens are for, as the server names itself. */
  readonly resource?: string | undefined;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
}

export interface McpTokens {
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  readonly expiresInSeconds?: number | undefined;
}

export interface McpCode {
  readonly code: string;
  /** The issuer that claims to have given the code, where it names itself. */
  readonly issuer?: string | undefined;
}

/** A login that was started at the issuer. */
export interface BegunMcpLogin {
  readonly authorizationUrl: string;
  readonly authority: McpAuthority;
  redeem(code: McpCode, signal: AbortSignal): Promise<McpTokens>;
}

export interface McpLoginRequest {
  /** Where the browser returns to. */
  readonly redirectUri: string;
  /** Cannot be guessed. */
  readonly state: string;
  readonly scopes?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/** Requests to issuers. Failures are typed: `auth.rejected` is final, `provider.*` may pass. */
export interface McpIssuers {
  hasLogins(server: McpHttpServer, signal: AbortSignal): Promise<boolean>;
  begin(server: McpHttpServer, request: McpLoginRequest): Promise<BegunMcpLogin>;
  refresh(authority: McpAuthority, refreshToken: string, signal: AbortSignal): Promise<McpTokens>;
  /** False: it failed. */
  revoke(authority: McpAuthority, token: string, signal: AbortSignal): Promise<boolean>;
}

/** Where requests to a server get their token. */
export interface McpTokenSource {
  /** undefined: not logged in there. */
  token(server: McpHttpServer): Promise<string | undefined>;
  /** After the server has refused this token. Throws a `HeddleError` that says what to do when there is no other. */
  renew(server: McpHttpServer, rejected: string | undefined): Promise<void>;
}
