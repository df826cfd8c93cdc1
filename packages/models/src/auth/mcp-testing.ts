/**
 * An MCP server that requires a login, and the issuer of such logins, for tests: single-use codes and refresh tokens. Requests
 * to either are recorded, in order.
 */
import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { CANARY, RequestLog, send, startTestServer, type Asked, type TestServer } from "../testing/testing-server.ts";

type Json = Record<string, unknown>;

export interface McpWithLogin extends TestServer {
  readonly issuer: string;
  /** Wrong fields in a document; `undefined` removes a field. */
  lie(path: string, fields: Json): void;
  /** The address of the metadata in refusals of the server. */
  nameMetadata(url: string): void;
  /** Acts as the user in the browser: where this address redirects to. */
  authorize(url: string): URL;
  /** Of tokens from now on. */
  setLifetime(seconds: number | undefined): void;
  /** No token is valid any more. */
  revokeAll(options: { readonly refreshTokensToo: boolean }): void;
}

const PROTECTED = "/.well-known/oauth-protected-resource/mcp";
const METADATA = "/.well-known/oauth-authorization-server";

export async function startMcpWithLogin(): Promise<McpWithLogin> {
  const log = new RequestLog();
  const play = new Play();
  const resource = await startTestServer((asked, response) => play.resource(asked, response), log);
  const issuer = await startTestServer((asked, response) => play.issue(asked, response), log);
  play.resourceUrl = resource.url;
  play.issuerUrl = issuer.url;
  play.metadataUrl = `${resource.url}${PROTECTED}`;
  return {
    ...resource,
    url: `${resource.url}/mcp`,
    issuer: issuer.url,
    lie: (path, fields) => void play.lies.set(path, fields),
    nameMetadata: (url) => void (play.metadataUrl = url),
    authorize: (url) => play.authorize(url),
    setLifetime: (seconds) => void (play.lifetime = seconds),
    revokeAll({ refreshTokensToo }) {
      play.accessTokens.clear();
      if (refreshTokensToo) play.refreshTokens.clear();
    },
    async [Symbol.asyncDispose]() {
      await resource[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

class Play {
  readonly lies = new Map<string, Json>();
  readonly accessTokens = new Set<string>();
  readonly refreshTokens = new Set<string>();
  readonly #codes = new Map<
    string,
    { readonly challenge: string; readonly redirect: string; readonly client: string }
  >();
  /** Client → the only address it may be sent back to. */
  readonly #clients = new Map<string, string>();
  resourceUrl = "";
  issuerUrl = "";
  metadataUrl = "";
  lifetime: number | undefined = 3600;

  #document(path: string, fields: Json): Json {
    return { ...fields, ...this.lies.get(path) };
  }

  resource({ path, headers, method, text }: Asked, response: ServerResponse): void {
    if (path === PROTECTED) {
      const fields = {
        resource: `${this.resourceUrl}/mcp`,
        authorization_servers: [this.issuerUrl],
        scopes_supported: ["tools"],
      };
      return send(response, 200, this.#document(path, fields));
    }
    if (path !== "/mcp") return send(response, 404, {});
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
    if (!this.accessTokens.has(token)) {
      response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${this.metadataUrl}"` }).end();
      return;
    }
    if (method !== "POST") return send(response, 405, {});
    return speak(JSON.parse(text) as Json, token, response);
  }

  issue({ path, body }: Asked, response: ServerResponse): void {
    if (path === METADATA) {
      const fields = {
        issuer: this.issuerUrl,
        authorization_endpoint: `${this.issuerUrl}/authorize`,
        token_endpoint: `${this.issuerUrl}/token`,
        registration_endpoint: `${this.issuerUrl}/register`,
        revocation_endpoint: `${this.issuerUrl}/revoke`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
        authorization_response_iss_parameter_supported: true,
      };
      return send(response, 200, this.#document(path, fields));
    }
    if (path === "/register") return this.#register(body, response);
    if (path === "/token") return this.#token(body, response);
    if (path === "/revoke") {
      this.refreshTokens.delete(body["token"] ?? "");
      return send(response, 200, {});
    }
    return send(response, 404, {});
  }

  authorize(text: string): URL {
    const asked = new URL(text).searchParams;
    const client = asked.get("client_id") ?? "";
    const redirect = asked.get("redirect_uri") ?? "";
    if (this.#clients.get(client) !== redirect) throw new Error("this client may not be sent back there");
    const code = `code-${CANARY}-${randomBytes(6).toString("hex")}`;
    this.#codes.set(code, { challenge: asked.get("code_challenge") ?? "", redirect, client });
    const target = new URL(redirect);
    target.searchParams.set("code", code);
    target.searchParams.set("state", asked.get("state") ?? "");
    target.searchParams.set("iss", this.issuerUrl);
    return target;
  }

  #register(body: Readonly<Record<string, string>>, response: ServerResponse): void {
    const client = `client-${randomBytes(6).toString("hex")}`;
    const redirect = body["redirect_uris"] ?? "";
    this.#clients.set(client, redirect);
    send(response, 201, { client_id: client, redirect_uris: [redirect] });
  }

  #token(body: Readonly<Record<string, string>>, response: ServerResponse): void {
    if (body["grant_type"] === "refresh_token") {
      const isKnown = this.refreshTokens.delete(body["refresh_token"] ?? "");
      return isKnown ? this.#hand(response) : send(response, 400, { error: "invalid_grant" });
    }
    const issued = this.#codes.get(body["code"] ?? "");
    this.#codes.delete(body["code"] ?? "");
    const challenge = createHash("sha256")
      .update(body["code_verifier"] ?? "")
      .digest("base64url");
    const isOurs =
      issued?.challenge === challenge &&
      issued.redirect === body["redirect_uri"] &&
      issued.client === body["client_id"];
    return isOurs ? this.#hand(response) : send(response, 400, { error: "invalid_grant" });
  }

  #hand(response: ServerResponse): void {
    const access = `access-${CANARY}-${randomBytes(6).toString("hex")}`;
    const refresh = `refresh-${CANARY}-${randomBytes(6).toString("hex")}`;
    this.accessTokens.add(access);
    this.refreshTokens.add(refresh);
    const expiry = this.lifetime === undefined ? {} : { expires_in: this.lifetime };
    send(response, 200, { access_token: access, token_type: "Bearer", refresh_token: refresh, ...expiry });
  }
}

/** One tool, which returns the token it was sent. */
function speak({ id, method }: Json, token: string, response: ServerResponse): void {
  const answer = (result: Json): void => send(response, 200, { jsonrpc: "2.0", id, result });
  if (id === undefined) {
    response.writeHead(202).end();
    return;
  }
  if (method === "initialize") {
    const serverInfo = { name: "far", version: "1" };
    return answer({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo });
  }
  const inputSchema = { type: "object", properties: {} };
  if (method === "tools/list") return answer({ tools: [{ name: "whoami", description: "who asks", inputSchema }] });
  if (method === "tools/call") return answer({ content: [{ type: "text", text: `you showed ${token}` }] });
  send(response, 200, { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
}
