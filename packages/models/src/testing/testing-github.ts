/** GitHub for tests: the device flow, and the exchange for Copilot's tokens, which expire. */
import { randomBytes } from "node:crypto";
import { CANARY, send, startTestServer, type TestServer } from "./testing-server.ts";

export type GithubPoll = "authorization_pending" | "slow_down" | "expired_token" | "access_denied" | "status_503";

export interface TestGithub extends TestServer {
  /** Answers to the next polls; then the login is granted. */
  readonly polls: GithubPoll[];
  /** Statuses of the next exchanges. */
  readonly exchanges: number[];
  /** The tokens of Copilot that are valid now. */
  readonly tokens: Set<string>;
  /** Where Copilot is said to be. */
  apiUrl: string;
  lifetimeSeconds: number;
  /** How long a code is valid. */
  codeSeconds: number;
}

export async function startGithub(): Promise<TestGithub> {
  const githubToken = `gho_${CANARY}`;
  const deviceCode = `device-${CANARY}`;
  const polls: GithubPoll[] = [];
  const exchanges: number[] = [];
  const tokens = new Set<string>();
  const server = await startTestServer(({ path, method, headers, body: form }, response) => {
    if (path === "/login/device/code" && method === "POST" && form["client_id"] === "Iv1.b507a08c87ecfe98") {
      const codes = { device_code: deviceCode, user_code: "WDJB-MJHT", expires_in: github.codeSeconds, interval: 1 };
      return send(response, 200, { ...codes, verification_uri: `${server.url}/login/device` });
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
  const lifetimes = { lifetimeSeconds: 1800, codeSeconds: 900 };
  const github: TestGithub = { ...server, polls, exchanges, tokens, apiUrl: server.url, ...lifetimes };
  return github;
}
