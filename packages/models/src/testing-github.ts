/** GitHub for tests: the device flow as it answers it, and the exchange for Copilot's tokens, which end when they say so. */
import { randomBytes } from "node:crypto";
import { CANARY, fieldsOf, send } from "./auth/testing-http.ts";
import { startTestServer, type TestServer } from "./testing-server.ts";

export type GithubPoll = "authorization_pending" | "slow_down" | "expired_token" | "access_denied" | "status_503";

export interface TestGithub extends TestServer {
  /** What the next polls are answered; then the login is granted. */
  readonly polls: GithubPoll[];
  /** Statuses of the next exchanges. */
  readonly exchanges: number[];
  /** The tokens of Copilot that are taken now. */
  readonly tokens: Set<string>;
  /** Where Copilot is said to be. */
  apiUrl: string;
  lifetimeSeconds: number;
  /** How long a code can be typed in. */
  codeSeconds: number;
}

export async function startGithub(): Promise<TestGithub> {
  const githubToken = `gho_${CANARY}`;
  const deviceCode = `device-${CANARY}`;
  const polls: GithubPoll[] = [];
  const exchanges: number[] = [];
  const tokens = new Set<string>();
  const server = await startTestServer(({ path, method, headers, text }, response) => {
    const form = fieldsOf(text);
    if (path === "/login/device/code" && method === "POST" && form["client_id"] === "Iv1.b507a08c87ecfe98") {
      const verification_uri = `${server.url}/login/device`;
      const code = {
        device_code: deviceCode,
        user_code: "WDJB-MJHT",
        verification_uri,
        expires_in: github.codeSeconds,
        interval: 1,
      };
      return send(response, 200, code);
    }
    if (path === "/login/oauth/access_token" && form["device_code"] === deviceCode) {
      const next = polls.shift();
      if (next === "status_503") return send(response, 503, {});
      if (next !== undefined)
        return send(response, 200, { error: next, ...(next === "slow_down" ? { interval: 7 } : {}) });
      return send(response, 200, { access_token: githubToken, token_type: "bearer", scope: "read:user" });
    }
    if (path !== "/copilot_internal/v2/token") return send(response, 404, {});
    const refusal = exchanges.shift();
    if (refusal !== undefined) return send(response, refusal, {});
    if (headers.authorization !== `token ${githubToken}` || headers["editor-version"] === undefined)
      return send(response, 401, {});
    const token = `tid=${CANARY};exp=1;${randomBytes(6).toString("hex")}`;
    tokens.add(token);
    const expires_at = Math.floor(Date.now() / 1000) + github.lifetimeSeconds;
    return send(response, 200, { token, expires_at, endpoints: { api: github.apiUrl }, sku: "copilot_for_testers" });
  });
  const github: TestGithub = {
    ...server,
    polls,
    exchanges,
    tokens,
    apiUrl: server.url,
    lifetimeSeconds: 1800,
    codeSeconds: 900,
  };
  return github;
}
