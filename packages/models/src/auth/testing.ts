/**
 * An issuer of logins for tests, with rotating single-use refresh tokens.
 */
import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { CANARY, send, startTestServer, type Asked, type TestServer } from "../testing/testing-server.ts";

export { CANARY };
export { startMcpWithLogin, type McpWithLogin } from "./mcp-testing.ts";

export interface TestIssuer extends TestServer {
  /** A refresh token that is accepted once. */
  grant(options?: { readonly accountId?: string }): string;
  /** Answers to the next polls of a device; then it is granted. */
  devicePolls(...answers: readonly ("pending" | "slow_down" | "denied" | "expired" | "http403")[]): void;
  /** Acts as the user in the browser: where this authorization URL redirects to. */
  authorize(url: string): { readonly redirect: URL };
  /** Account and lifetime of tokens from now on. */
  setAccount(options: { readonly accountId?: string; readonly lifetimeSeconds?: number }): void;
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
  const server = await startTestServer((asked, response) => state.answer(asked, response));
  return {
    ...server,
    grant: (options = {}) => state.grant(options.accountId),
    devicePolls: (...answers) => void state.polls.push(...answers),
    authorize: (url) => state.authorize(url),
    setAccount(options) {
      state.accountId = options.accountId ?? state.accountId;
      state.lifetimeSeconds = options.lifetimeSeconds ?? state.lifetimeSeconds;
    },
  };
}

class IssuerState {
  readonly polls: string[] = [];
  accountId = "acct-1";
  lifetimeSeconds = 3600;
  readonly #refreshTokens = new Map<string, string>();
  readonly #used = new Set<string>();
  /** Authorization code → the challenge and redirect it was requested with. */
  readonly #codes = new Map<string, { readonly challenge: string; readonly redirect: string }>();

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

  answer({ path, body }: Asked, response: ServerResponse): void {
    if (path === "/oauth/token") return this.#token(body, response);
    if (path === "/oauth/revoke") return send(response, 200, {});
    if (path === "/api/accounts/deviceauth/usercode") {
      return send(response, 200, { device_auth_id: `device-${CANARY}`, user_code: "ABCD-1234", interval: "5" });
    }
    if (path === "/api/accounts/deviceauth/token") return this.#device(response);
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
