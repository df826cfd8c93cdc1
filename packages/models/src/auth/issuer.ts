/**
 * The issuer of logins for `openai-codex`, and the requests to it. Its addresses are fixed; only a test may use a server on
 * this machine instead.
 */
import { defined, HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { Environment } from "../providers/provider-auth.ts";
import type { OAuthCredential } from "./credential.ts";
import { SLOW_DOWN_MS, type Polled } from "./device-login.ts";
import { pinnedFetch, type PinnedAnswer } from "./pinned-fetch.ts";
import { expiryAfter, tokenFacts } from "./tokens.ts";

export interface Issuer {
  /** Origin that issues tokens. */
  readonly url: string;
  /** Origin and path of the models a token is for. */
  readonly apiBaseUrl: string;
  readonly clientId: string;
  readonly scope: string;
  /** How Heddle names itself. */
  readonly originator: string;
}

const OPENAI: Issuer = {
  url: "https://auth.openai.com",
  apiBaseUrl: "https://chatgpt.com/backend-api/codex",
  clientId: "app_EMoamEEZ73f0CkXaXp7hrann",
  scope: "openid profile email offline_access",
  originator: "heddle",
};

const TEST_ISSUER_VARIABLE = "HEDDLE_TEST_OPENAI_ISSUER";
const TEST_API_VARIABLE = "HEDDLE_TEST_OPENAI_CODEX_API";

export function openaiIssuer(env: Environment): Issuer {
  return {
    ...OPENAI,
    url: testAddress(env, TEST_ISSUER_VARIABLE) ?? OPENAI.url,
    apiBaseUrl: testAddress(env, TEST_API_VARIABLE) ?? OPENAI.apiBaseUrl,
  };
}

/** Only a server on this machine can replace the real one. */
function testAddress(env: Environment, variable: string): string | undefined {
  const value = env[variable] ?? "";
  if (value === "") return undefined;
  const url = URL.parse(value);
  if (url?.protocol === "http:" && url.hostname === "127.0.0.1" && url.username === "") return value.replace(/\/$/, "");
  throw new HeddleError("config.invalid", `${variable} is for tests and must be http://127.0.0.1:PORT`);
}

const Tokens = z.object({
  access_token: z.string().min(1).optional(),
  refresh_token: z.string().min(1).optional(),
  id_token: z.string().min(1).optional(),
  expires_in: z.number().positive().optional(),
});
export type Tokens = z.infer<typeof Tokens>;

/** Refused for good: another try cannot help. */
export class RefusedLogin extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

const PERMANENT = new Set(["refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated"]);

export interface CodeGrant {
  readonly code: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

export async function exchangeCode(issuer: Issuer, grant: CodeGrant, signal: AbortSignal): Promise<Tokens> {
  const answer = await ask(issuer, "/oauth/token", {
    form: {
      grant_type: "authorization_code",
      code: grant.code,
      redirect_uri: grant.redirectUri,
      client_id: issuer.clientId,
      code_verifier: grant.verifier,
    },
    signal,
  });
  if (answer.status !== 200) throw new HeddleError("login.failed", `the login was refused (${describe(answer)})`);
  return tokensOf(answer);
}

/** Throws RefusedLogin where the refusal is final, and a HeddleError of `provider.*` where it may pass. */
export async function refreshTokens(issuer: Issuer, refreshToken: string, signal: AbortSignal): Promise<Tokens> {
  const answer = await ask(issuer, "/oauth/token", {
    json: { client_id: issuer.clientId, grant_type: "refresh_token", refresh_token: refreshToken },
    signal,
  });
  if (answer.status === 200) return tokensOf(answer);
  const code = errorCode(answer);
  const isFinal = answer.status === 401 || PERMANENT.has(code) || (answer.status === 400 && code === "invalid_grant");
  if (isFinal) throw new RefusedLogin(code === "" ? `status_${answer.status}` : code);
  const kind = answer.status === 429 ? "provider.rate-limited" : "provider.overloaded";
  throw new HeddleError(kind, `${issuer.url} cannot renew the login now (${describe(answer)})`);
}

export async function revokeToken(issuer: Issuer, token: string, kind: string, signal: AbortSignal): Promise<boolean> {
  const answer = await ask(issuer, "/oauth/revoke", {
    json: { client_id: issuer.clientId, token, token_type_hint: kind },
    timeoutMs: 5_000,
    signal,
  });
  return answer.status >= 200 && answer.status < 300;
}

const UserCode = z.object({
  device_auth_id: z.string().min(1).max(4096),
  user_code: z.string().min(1).max(64).optional(),
  usercode: z.string().min(1).max(64).optional(),
  interval: z.union([z.string(), z.number()]).optional(),
});

export interface DeviceCode {
  /** Stays with Heddle. */
  readonly deviceId: string;
  readonly userCode: string;
  readonly verificationUrl: string;
  readonly intervalMs: number;
}

export async function startDevice(issuer: Issuer, signal: AbortSignal): Promise<DeviceCode> {
  const answer = await ask(issuer, "/api/accounts/deviceauth/usercode", {
    json: { client_id: issuer.clientId },
    signal,
  });
  if (answer.status === 404) {
    throw new HeddleError("login.failed", "a login by device code is not enabled for this account; use --browser");
  }
  const code = UserCode.safeParse(answer.json);
  const userCode = code.data?.user_code ?? code.data?.usercode;
  if (answer.status !== 200 || code.data === undefined || userCode === undefined) {
    throw new HeddleError("login.failed", `no device code was given (${describe(answer)})`);
  }
  const seconds = Number(code.data.interval ?? 5);
  return {
    deviceId: code.data.device_auth_id,
    userCode,
    verificationUrl: `${issuer.url}/codex/device`,
    intervalMs: Math.min(60, Math.max(1, Number.isFinite(seconds) ? seconds : 5)) * 1000,
  };
}

const DeviceGrant = z.object({ authorization_code: z.string().min(1), code_verifier: z.string().min(1) });

export async function pollDevice(
  issuer: Issuer,
  { deviceId, userCode }: DeviceCode,
  { intervalMs, signal }: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<Polled<CodeGrant>> {
  const pending = { intervalMs };
  const answer = await ask(issuer, "/api/accounts/deviceauth/token", {
    json: { device_auth_id: deviceId, user_code: userCode },
    signal,
  });
  const code = errorCode(answer);
  if (code.endsWith("slow_down") || answer.status === 429) return { intervalMs: intervalMs + SLOW_DOWN_MS };
  if (/(access_denied|denied)$/.test(code)) throw new HeddleError("login.failed", "the login was declined");
  if (/expired(_token)?$/.test(code)) throw new HeddleError("login.expired", "the device code has expired");
  if (answer.status === 403 || answer.status === 404 || code.endsWith("authorization_pending")) return pending;
  const grant = DeviceGrant.safeParse(answer.json);
  if (answer.status !== 200 || !grant.success) {
    if (answer.status >= 500) return pending;
    throw new HeddleError("login.failed", `the login was refused (${describe(answer)})`);
  }
  const redirectUri = `${issuer.url}/deviceauth/callback`;
  return { granted: { code: grant.data.authorization_code, verifier: grant.data.code_verifier, redirectUri } };
}

/** What is stored of new tokens; `before` has what the issuer did not send again. */
export function credentialOf(
  issuer: Issuer,
  tokens: Tokens,
  base: Pick<OAuthCredential, "owner" | "provider" | "profile"> & { readonly before?: OAuthCredential },
  now: number,
): OAuthCredential {
  const { before, owner, provider, profile } = base;
  const accessToken = tokens.access_token ?? before?.accessToken;
  if (accessToken === undefined) throw new HeddleError("provider.malformed", `${issuer.url} gave no access token`);
  const idToken = tokens.id_token ?? before?.idToken;
  const refreshToken = tokens.refresh_token ?? before?.refreshToken;
  const facts = { ...tokenFacts(idToken), ...tokenFacts(accessToken) };
  const at = new Date(now).toISOString();
  return {
    type: "oauth",
    v: 1,
    owner,
    provider,
    profile,
    savedAt: at,
    health: "ok",
    issuer: issuer.url,
    accessToken,
    lastRefresh: at,
    ...defined({
      refreshToken,
      idToken,
      expiresAt: expiryAfter(now, tokens.expires_in),
      accountId: facts.accountId ?? before?.accountId,
      email: facts.email ?? before?.email,
      plan: facts.plan ?? before?.plan,
    }),
    ...(facts.isFedramp === true ? { isFedramp: true } : {}),
  };
}

function ask(
  issuer: Issuer,
  path: string,
  request: Omit<Parameters<typeof pinnedFetch>[0], "url" | "origins">,
): Promise<PinnedAnswer> {
  return pinnedFetch({ url: `${issuer.url}${path}`, origins: [issuer.url], ...request });
}

function tokensOf(answer: PinnedAnswer): Tokens {
  const tokens = Tokens.safeParse(answer.json);
  if (tokens.success) return tokens.data;
  throw new HeddleError("provider.malformed", "the issuer answered with something that is not a token");
}

const Refusal = z.object({
  error: z.union([z.string(), z.object({ code: z.string().optional(), type: z.string().optional() })]).optional(),
  code: z.string().optional(),
});

/** Only a short code; the texts of an issuer are not repeated. */
function errorCode({ json }: PinnedAnswer): string {
  const refusal = Refusal.safeParse(json);
  if (!refusal.success) return "";
  const { error, code } = refusal.data;
  const word = typeof error === "string" ? error : (error?.code ?? error?.type ?? code ?? "");
  return /^[a-z_]{1,64}$/.test(word) ? word : "";
}

function describe(answer: PinnedAnswer): string {
  const code = errorCode(answer);
  return code === "" ? `status ${answer.status}` : `${code}, status ${answer.status}`;
}
