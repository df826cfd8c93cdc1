/**
 * Logins at MCP servers (OAuth 2.1 as MCP specifies it): the server's metadata names the issuer, Heddle registers
 * itself there, and a code is useless without the verifier. The client library has the messages; what is trusted and
 * where requests go is decided here.
 */
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from "@modelcontextprotocol/client";
import {
  HeddleError,
  isHeddleError,
  type BegunMcpLogin,
  type McpAuthority,
  type McpHttpServer,
  type McpIssuers,
  type McpLoginRequest,
  type McpTokens,
} from "@heddle/protocol";
import { namesThisMachine } from "@heddle/protocol/ip-address";
import { createIssuerFetch, requireSafe, type IssuerFetch } from "./issuer-fetch.ts";

interface LoginOffer {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  readonly resource: string | undefined;
  /** Empty: not specified. */
  readonly scopes: readonly string[];
}

export const mcpIssuers: McpIssuers = {
  async hasLogins(server, signal) {
    using asked = fetchFor(server, signal);
    return (await discover(server, asked)) !== undefined;
  },
  begin,
  async refresh(authority, refreshToken, signal) {
    const { refreshAuthorization } = await library();
    using asked = createIssuerFetch({ mayBeLocal: true, signal });
    const request = { ...clientOf(authority), refreshToken, fetchFn: asked.fetch };
    return tokensOf(await refreshAuthorization(authority.issuer, request).catch(refusal));
  },
  async revoke({ revocationEndpoint, clientId, clientSecret }, token, signal) {
    if (revocationEndpoint === undefined) return false;
    using asked = createIssuerFetch({ mayBeLocal: true, signal });
    const secret = clientSecret === undefined ? {} : { client_secret: clientSecret };
    const body = new URLSearchParams({ token, client_id: clientId, ...secret });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return (await asked.fetch(revocationEndpoint, { method: "POST", headers, body })).ok;
  },
};

const library = () => import("@modelcontextprotocol/client");

function fetchFor({ url }: McpHttpServer, signal: AbortSignal): IssuerFetch {
  return createIssuerFetch({ mayBeLocal: namesThisMachine(new URL(url).hostname), signal });
}

async function begin(server: McpHttpServer, request: McpLoginRequest): Promise<BegunMcpLogin> {
  const { startAuthorization } = await library();
  const { redirectUri, state, signal } = request;
  const mayBeLocal = namesThisMachine(new URL(server.url).hostname);
  using asked = fetchFor(server, signal);
  const offer = await discover(server, asked);
  if (offer === undefined) {
    throw new HeddleError(
      "login.failed",
      `the MCP server ${server.name} offers no login; give it a token with mcp_servers.${server.name}.bearer_token_env_var`,
    );
  }
  const { issuer, metadata, resource } = offer;
  const scopes = request.scopes ?? server.scopes ?? offer.scopes;
  const scope = scopes.length === 0 ? {} : { scope: scopes.join(" ") };
  const client = await register(server, offer, { redirectUri, asked, ...scope });
  const started = await startAuthorization(issuer, {
    metadata,
    clientInformation: client,
    redirectUrl: redirectUri,
    state,
    ...scope,
    ...(resource === undefined ? {} : { resource }),
  }).catch(refusal);
  const authority: McpAuthority = {
    issuer: metadata.issuer,
    tokenEndpoint: requireSafe(metadata.token_endpoint, mayBeLocal).href,
    ...revocation(metadata, mayBeLocal),
    authMethods: metadata.token_endpoint_auth_methods_supported ?? [],
    ...(resource === undefined ? {} : { resource }),
    clientId: client.client_id,
    ...(client.client_secret === undefined ? {} : { clientSecret: client.client_secret }),
  };
  return {
    // The user will open it, so it must be a safe URL.
    authorizationUrl: requireSafe(started.authorizationUrl.href, mayBeLocal).href,
    authority,
    async redeem({ code, issuer: from }, redeeming) {
      const { exchangeAuthorization } = await library();
      using exchange = fetchFor(server, redeeming);
      const request = {
        metadata,
        clientInformation: client,
        authorizationCode: code,
        codeVerifier: started.codeVerifier,
        redirectUri,
        fetchFn: exchange.fetch,
        ...(from === undefined ? {} : { iss: from }),
        ...(resource === undefined ? {} : { resource }),
      };
      return tokensOf(await exchangeAuthorization(issuer, request).catch(refusal));
    },
  };
}

/** From the metadata of the server and its issuer; undefined: there are no logins. */
async function discover(server: McpHttpServer, asked: IssuerFetch): Promise<LoginOffer | undefined> {
  const { checkResourceAllowed, discoverAuthorizationServerMetadata, discoverOAuthProtectedResourceMetadata } =
    await library();
  const url = new URL(server.url);
  const challenge = await challengeOf(url, asked);
  if (challenge.metadataUrl !== undefined && challenge.metadataUrl.origin !== url.origin) {
    throw new HeddleError("login.failed", `${url.origin} names metadata of ${challenge.metadataUrl.origin} as its own`);
  }
  const where = challenge.metadataUrl === undefined ? {} : { resourceMetadataUrl: challenge.metadataUrl };
  const found = await discoverOAuthProtectedResourceMetadata(url, where, asked.fetch).catch((error: unknown) => {
    // Without this document the server itself may be the issuer, as in the first revision.
    if (!isHeddleError(error) && asked.lastStatus >= 400) return undefined;
    return refusal(error);
  });
  if (found !== undefined && !checkResourceAllowed({ requestedResource: url, configuredResource: found.resource })) {
    throw new HeddleError("login.failed", `the metadata of ${url.origin} is for another server`);
  }
  const issuer = found?.authorization_servers?.[0] ?? `${url.origin}/`;
  const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: asked.fetch }).catch(refusal);
  if (metadata === undefined) return undefined;
  const scopes = challenge.scope?.split(" ") ?? found?.scopes_supported ?? [];
  return { issuer, metadata, resource: server.oauthResource ?? found?.resource, scopes };
}

async function challengeOf(
  url: URL,
  asked: IssuerFetch,
): Promise<{ readonly metadataUrl: URL | undefined; readonly scope: string | undefined }> {
  const { extractWWWAuthenticateParams } = await library();
  const response = await asked.fetch(url, { headers: { accept: "application/json, text/event-stream" } });
  // A server without authentication may start its event stream.
  await response.body?.cancel();
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  return { metadataUrl: resourceMetadataUrl, scope };
}

async function register(
  { name, oauthClientId }: McpHttpServer,
  { issuer, metadata }: LoginOffer,
  { redirectUri, asked, ...scope }: { redirectUri: string; asked: IssuerFetch; scope?: string },
): Promise<OAuthClientInformationMixed> {
  if (oauthClientId !== undefined) return { client_id: oauthClientId };
  const howElse = `name a client that it knows with mcp_servers.${name}.oauth.client_id`;
  if (metadata.registration_endpoint === undefined) {
    throw new HeddleError("login.failed", `${issuer} does not let programs register themselves; ${howElse}`);
  }
  const { registerClient } = await library();
  const clientMetadata = {
    client_name: "Heddle",
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  return registerClient(issuer, { metadata, clientMetadata, fetchFn: asked.fetch, ...scope }).catch(
    (error: unknown) => {
      if (isHeddleError(error)) throw error;
      throw new HeddleError(
        "login.failed",
        `${issuer} does not register Heddle (status ${asked.lastStatus}); ${howElse}`,
      );
    },
  );
}

function revocation(
  metadata: AuthorizationServerMetadata,
  mayBeLocal: boolean,
): Pick<McpAuthority, "revocationEndpoint"> {
  const { revocation_endpoint: endpoint } = metadata as { readonly revocation_endpoint?: unknown };
  if (typeof endpoint !== "string") return {};
  return { revocationEndpoint: requireSafe(endpoint, mayBeLocal).href };
}

function clientOf(authority: McpAuthority) {
  const { issuer, tokenEndpoint, authMethods, clientId, clientSecret, resource } = authority;
  return {
    // As of the login: later metadata of the issuer cannot send tokens elsewhere.
    metadata: {
      issuer,
      authorization_endpoint: issuer,
      token_endpoint: tokenEndpoint,
      response_types_supported: ["code"],
      ...(authMethods.length === 0 ? {} : { token_endpoint_auth_methods_supported: [...authMethods] }),
    },
    clientInformation: {
      client_id: clientId,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    },
    ...(resource === undefined ? {} : { resource }),
  };
}

function tokensOf({
  access_token: accessToken,
  refresh_token: refreshToken,
  expires_in: seconds,
}: OAuthTokens): McpTokens {
  if (accessToken === "") throw new HeddleError("login.failed", "the issuer gave an empty token");
  return {
    accessToken,
    ...(refreshToken === undefined || refreshToken === "" ? {} : { refreshToken }),
    ...(seconds === undefined ? {} : { expiresInSeconds: seconds }),
  };
}

/** Only the error code: a description may quote what was sent. */
async function refusal(error: unknown): Promise<never> {
  if (isHeddleError(error)) throw error;
  const { IssuerMismatchError, OAuthError } = await library();
  if (error instanceof OAuthError && /^[a-z_]{1,64}$/.test(error.code)) {
    const details = { reason: error.code };
    throw new HeddleError("auth.rejected", `the login was refused (${error.code})`, { details });
  }
  const isMismatch = error instanceof IssuerMismatchError;
  const why = isMismatch ? "names another issuer than the one that was asked" : "cannot be read";
  throw new HeddleError("login.failed", `what the issuer answered ${why}`);
}
