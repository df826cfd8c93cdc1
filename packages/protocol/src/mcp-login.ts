/**
 * A login at an MCP server that is reached over HTTP, in the words that those who speak to issuers and those who keep
 * credentials share. Types alone: who speaks is in tools, who keeps is in models.
 */
import type { McpHttpServer } from "./mcp.ts";

/** Whose login it is, and how the server would take it; Codex's words. */
export type McpAuthStatus = "unknown" | "unsupported" | "notLoggedIn" | "bearerToken" | "oAuth";

/** Who hands out tokens for a server, and what Heddle is called there. Tokens of a login go here and to the server alone. */
export interface McpAuthority {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string | undefined;
  /** How a client may show who it is; empty: not told. */
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
  /** Who says that it gave the code, where it said so. */
  readonly issuer?: string | undefined;
}

/** Begun at the issuer: where to send the person, and what to do with what comes back. */
export interface BegunMcpLogin {
  readonly authorizationUrl: string;
  readonly authority: McpAuthority;
  redeem(code: McpCode, signal: AbortSignal): Promise<McpTokens>;
}

export interface McpLoginWish {
  /** Where the browser comes back to. */
  readonly redirectUri: string;
  /** Cannot be guessed. */
  readonly state: string;
  readonly scopes?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/** How to speak to issuers. Failures are typed: `auth.rejected` is final, `provider.*` may pass. */
export interface McpIssuers {
  /** Whether the server has logins at all. */
  hasLogins(server: McpHttpServer, signal: AbortSignal): Promise<boolean>;
  begin(server: McpHttpServer, wish: McpLoginWish): Promise<BegunMcpLogin>;
  refresh(authority: McpAuthority, refreshToken: string, signal: AbortSignal): Promise<McpTokens>;
  /** False: it could not be. */
  revoke(authority: McpAuthority, token: string, signal: AbortSignal): Promise<boolean>;
}

/** Where requests to a server get their token. */
export interface McpTokenSource {
  /** undefined: nobody is logged in there. */
  token(server: McpHttpServer): Promise<string | undefined>;
  /** After the server has refused this token; a `HeddleError` that says what to do when there is no other. */
  renew(server: McpHttpServer, rejected: string | undefined): Promise<void>;
}
