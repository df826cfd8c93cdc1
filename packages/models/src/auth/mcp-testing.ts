/**
 * An MCP server that wants a login, and the issuer of such logins, for tests: real HTTP on two ports of 127.0.0.1, single-use
 * codes and refresh tokens, and every way to misbehave that a test asks for. Both record what they were sent.
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { CANARY, fieldsOf, misbehave, readText, send, type IssuerFault } from "./testing-http.ts";

type Json = Record<string, unknown>;

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, string>>;
}

export interface McpWithLogin extends AsyncDisposable {
  /** Of the MCP server. */
  readonly url: string;
  readonly issuer: string;
  /** At either of them, in order. */
  readonly requests: readonly Request[];
  count(path: string): number;
  /** Faults of the next requests to a path, in order; afterwards it behaves. */
  fault(path: string, ...faults: readonly IssuerFault[]): void;
  /** Other words in a document than the true ones; `undefined` takes a field out. */
  lie(path: string, words: Json): void;
  /** The address of the metadata that the server names when it refuses. */
  nameMetadata(url: string): void;
  /** Plays the person in the browser: where the callback leads after this address. */
  authorize(url: string): URL;
  /** The seconds that tokens live from now on. */
  setLifetime(seconds: number | undefined): void;
  /** No token that was handed out is taken any more. */
  revokeAll(options: { readonly refreshTokensToo: boolean }): void;
}

const PROTECTED = "/.well-known/oauth-protected-resource/mcp";
const METADATA = "/.well-known/oauth-authorization-server";

export async function startMcpWithLogin(): Promise<McpWithLogin> {
  const play = new Play();
  const resource = await listen((incoming, response) => play.resource(incoming, response));
  const issuer = await listen((incoming, response) => play.issue(incoming, response));
  play.resourceUrl = resource.url;
  play.issuerUrl = issuer.url;
  play.metadataUrl = `${resource.url}${PROTECTED}`;
  return {
    url: `${resource.url}/mcp`,
    issuer: issuer.url,
    requests: play.requests,
    count: (path) => play.requests.filter((request) => request.path === path).length,
    fault: (path, ...faults) => void play.faults.set(path, [...(play.faults.get(path) ?? []), ...faults]),
    lie: (path, words) => void play.lies.set(path, words),
    nameMetadata: (url) => void (play.metadataUrl = url),
    authorize: (url) => play.authorize(url),
    setLifetime: (seconds) => void (play.lifetime = seconds),
    revokeAll({ refreshTokensToo }) {
      play.accessTokens.clear();
      if (refreshTokensToo) play.refreshTokens.clear();
    },
    async [Symbol.asyncDispose]() {
      for (const { server } of [resource, issuer]) {
        server.closeAllConnections();
        server.close();
        await once(server, "close");
      }
    },
  };
}

async function listen(
  answer: (incoming: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { server, url: `http://127.0.0.1:${port}` };
}

class Play {
  readonly requests: Request[] = [];
  readonly faults = new Map<string, IssuerFault[]>();
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

  /** Records the request; true when a fault has answered it. */
  async #begin(incoming: IncomingMessage, response: ServerResponse): Promise<Request | undefined> {
    const { pathname } = new URL(incoming.url ?? "/", "http://127.0.0.1");
    const { method = "", headers } = incoming;
    const text = await readText(incoming);
    const request = { method, path: pathname, headers, text, body: fieldsOf(text) };
    this.requests.push(request);
    const fault = this.faults.get(pathname)?.shift();
    if (fault === undefined) return request;
    misbehave(response, fault);
    return undefined;
  }

  #document(path: string, words: Json): Json {
    return { ...words, ...this.lies.get(path) };
  }

  async resource(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await this.#begin(incoming, response);
    if (request === undefined) return;
    const { path, headers, method, text } = request;
    if (path === PROTECTED) {
      const words = {
        resource: `${this.resourceUrl}/mcp`,
        authorization_servers: [this.issuerUrl],
        scopes_supported: ["tools"],
      };
      return send(response, 200, this.#document(path, words));
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

  async issue(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await this.#begin(incoming, response);
    if (request === undefined) return;
    const { path, body } = request;
    if (path === METADATA) {
      const places = ["authorize", "token", "register", "revoke"].map((word) => `${this.issuerUrl}/${word}`);
      const [authorization, token, registration, revocation] = places;
      const words = {
        issuer: this.issuerUrl,
        authorization_endpoint: authorization,
        token_endpoint: token,
        registration_endpoint: registration,
        revocation_endpoint: revocation,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
        authorization_response_iss_parameter_supported: true,
      };
      return send(response, 200, this.#document(path, words));
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

/** One tool, which tells what it was shown. */
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
