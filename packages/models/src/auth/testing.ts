/**
 * An issuer of logins for tests: real HTTP on 127.0.0.1, rotating single-use refresh tokens, and every way to misbehave that
 * a test asks for. It records what it was sent.
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { CANARY, fieldsOf, misbehave, readText, send, type IssuerFault } from "./testing-http.ts";

export { CANARY } from "./testing-http.ts";
export { startMcpWithLogin, type McpWithLogin } from "./mcp-testing.ts";

export interface IssuerRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface TestIssuer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly IssuerRequest[];
  count(path: string): number;
  /** Faults of the next requests to a path, in order; afterwards it behaves. */
  fault(path: string, ...faults: readonly IssuerFault[]): void;
  /** A refresh token that is accepted once. */
  grant(options?: { readonly accountId?: string }): string;
  /** What the next polls of a device are answered; then it is granted. */
  devicePolls(...answers: readonly ("pending" | "slow_down" | "denied" | "expired" | "http403")[]): void;
  /** Plays the person in the browser: where the callback leads after this authorization URL. */
  authorize(url: string): { readonly redirect: URL };
  /** Account and lifetime of tokens handed out from now on. */
  setAccount(options: { readonly accountId?: string; readonly lifetimeSeconds?: number }): void;
  /** Resolves when a path has been asked so often. */
  arrived(path: string, count: number): Promise<void>;
}

export function testJwt(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part(claims)}.${part({ canary: CANARY })}`;
}

/** A token as the real issuer makes it. */
export function accountToken(accountId: string, expiresAtSeconds: number): string {
  return testJwt({
    exp: expiresAtSeconds,
    jti: randomBytes(4).toString("hex"),
    email: "somebody@example.test",
    "https://api.openai.com/auth": { chatgpt_account_id: accountId, chatgpt_plan_type: "plus" },
  });
}

export async function startTestIssuer(): Promise<TestIssuer> {
  const state = new IssuerState();
  const server = createServer((incoming, response) => {
    state.answer(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: state.requests,
    count: (path) => state.count(path),
    fault: (path, ...faults) => void state.faults.set(path, [...(state.faults.get(path) ?? []), ...faults]),
    grant: (options = {}) => state.grant(options.accountId),
    devicePolls: (...answers) => void state.polls.push(...answers),
    authorize: (url) => state.authorize(url),
    setAccount(options) {
      state.accountId = options.accountId ?? state.accountId;
      state.lifetimeSeconds = options.lifetimeSeconds ?? state.lifetimeSeconds;
    },
    arrived: (path, count) => state.arrived(path, count),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

class IssuerState {
  readonly requests: IssuerRequest[] = [];
  readonly faults = new Map<string, IssuerFault[]>();
  readonly polls: string[] = [];
  accountId = "acct-1";
  lifetimeSeconds = 3600;
  readonly #refreshTokens = new Map<string, string>();
  readonly #used = new Set<string>();
  /** Authorization code → challenge and redirect it was asked with. */
  readonly #codes = new Map<string, { readonly challenge: string; readonly redirect: string }>();
  #waiting: { path: string; count: number; done: () => void }[] = [];

  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  grant(accountId = this.accountId): string {
    const token = `refresh-${CANARY}-${randomBytes(6).toString("hex")}`;
    this.#refreshTokens.set(token, accountId);
    return token;
  }

  authorize(text: string): { redirect: URL } {
    const url = new URL(text);
    const code = `code-${CANARY}-${randomBytes(6).toString("hex")}`;
    const redirect = url.searchParams.get("redirect_uri") ?? "";
    this.#codes.set(code, { challenge: url.searchParams.get("code_challenge") ?? "", redirect });
    const target = new URL(redirect);
    target.searchParams.set("code", code);
    target.searchParams.set("state", url.searchParams.get("state") ?? "");
    return { redirect: target };
  }

  arrived(path: string, count: number): Promise<void> {
    if (this.count(path) >= count) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ path, count, done: resolve });
    return promise;
  }

  async answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
    const body = fieldsOf(await readText(incoming));
    this.requests.push({ path: url.pathname, query: url.searchParams, body, headers: incoming.headers });
    this.#waiting = this.#waiting.filter(({ path, count, done }) => {
      if (this.count(path) < count) return true;
      done();
      return false;
    });
    const fault = this.faults.get(url.pathname)?.shift();
    if (fault !== undefined) return misbehave(response, fault);
    if (url.pathname === "/oauth/token") return this.#token(body, response);
    if (url.pathname === "/oauth/revoke") return send(response, 200, {});
    if (url.pathname === "/api/accounts/deviceauth/usercode") {
      return send(response, 200, { device_auth_id: `device-${CANARY}`, user_code: "ABCD-1234", interval: "5" });
    }
    if (url.pathname === "/api/accounts/deviceauth/token") return this.#device(response);
    return send(response, 404, { error: "not_found" });
  }

  #token(body: Readonly<Record<string, string>>, response: ServerResponse): void {
    if (body["grant_type"] === "refresh_token") {
      const token = body["refresh_token"] ?? "";
      if (this.#used.has(token)) return send(response, 401, { error: { code: "refresh_token_reused" } });
      if (!this.#refreshTokens.delete(token)) return send(response, 400, { error: "invalid_grant" });
      this.#used.add(token);
      return this.#hand(response);
    }
    const issued = this.#codes.get(body["code"] ?? "");
    this.#codes.delete(body["code"] ?? "");
    const challenge = createHash("sha256")
      .update(body["code_verifier"] ?? "")
      .digest("base64url");
    if (issued === undefined || issued.challenge !== challenge || issued.redirect !== body["redirect_uri"]) {
      return send(response, 400, { error: "invalid_grant" });
    }
    return this.#hand(response);
  }

  #hand(response: ServerResponse): void {
    const access = accountToken(this.accountId, Math.floor(Date.now() / 1000) + this.lifetimeSeconds);
    send(response, 200, { access_token: access, id_token: access, refresh_token: this.grant() });
  }

  #device(response: ServerResponse): void {
    const next = this.polls.shift();
    if (next === "http403") return send(response, 403, {});
    if (next === "pending") return send(response, 403, { error: { code: "deviceauth_authorization_pending" } });
    if (next === "slow_down") return send(response, 400, { error: { code: "slow_down" } });
    if (next === "denied") return send(response, 400, { error: "access_denied" });
    if (next === "expired") return send(response, 400, { error: "expired_token" });
    const verifier = randomBytes(32).toString("base64url");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const code = `code-${CANARY}-${randomBytes(6).toString("hex")}`;
    this.#codes.set(code, { challenge, redirect: `http://${response.req.headers.host}/deviceauth/callback` });
    send(response, 200, { authorization_code: code, code_challenge: challenge, code_verifier: verifier });
  }
}
