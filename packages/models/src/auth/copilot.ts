/**
 * GitHub Copilot: a login at GitHub by device code, and its exchange for the short-lived token of Copilot. The login is sent
 * only to the GitHub it was made at, the other token only to the address that this GitHub names.
 */
import { defined, HeddleError } from "@heddle/protocol";
import { z } from "zod";
import { requireSafeUrl, type CopilotAuth } from "../providers/provider-auth.ts";
import type { CopilotCredential, CredentialKey } from "./credential.ts";
import { awaitDevice, codeExpired, SLOW_DOWN_MS, type Clock, type Polled } from "./device-login.ts";
import { RefusedLogin } from "./issuer.ts";
import { pinnedFetch, type PinnedAnswer } from "./pinned-fetch.ts";
import { isPlainToken } from "./plain-token.ts";
import { loginCommand, usableLogin, type RenewOptions } from "./refresh.ts";

/** The identity that editors with Copilot use at GitHub, in public. */
const CLIENT_ID = "Iv1.b507a08c87ecfe98";
const SCOPE = "read:user";
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
/** Longer than GitHub's codes live. */
const MAX_LIFETIME_MS = 30 * 60_000;

export interface CopilotEndpoints {
  /** Origin. */
  readonly githubUrl: string;
  /** Origin and path of GitHub's API. */
  readonly githubApiUrl: string;
  readonly clientId: string;
  /** How the client names itself. */
  readonly headers: Readonly<Record<string, string>>;
}

export function copilotEndpoints(
  id: string,
  auth: CopilotAuth,
  headers: Readonly<Record<string, string>> = {},
): CopilotEndpoints {
  const github = new URL(requireSafeUrl(id, auth.githubUrl ?? "https://github.com"));
  const api = auth.githubApiUrl ?? `${github.protocol}//api.${github.host}`;
  return {
    githubUrl: github.origin,
    githubApiUrl: requireSafeUrl(id, api).replace(/\/+$/, ""),
    clientId: auth.clientId ?? CLIENT_ID,
    headers,
  };
}

const DeviceCode = z.object({
  device_code: z.string().min(1).max(4096),
  user_code: z.string().regex(/^[\w-]{1,64}$/),
  verification_uri: z.url(),
  expires_in: z.number().positive(),
  interval: z.number().nonnegative().optional(),
});

export interface CopilotDevice {
  /** Never shown. */
  readonly deviceCode: string;
  readonly userCode: string;
  readonly verificationUrl: string;
  readonly lifetimeMs: number;
  readonly intervalMs: number;
}

export async function startCopilotDevice(endpoints: CopilotEndpoints, signal: AbortSignal): Promise<CopilotDevice> {
  const answer = await askGithub(
    endpoints,
    "/login/device/code",
    { client_id: endpoints.clientId, scope: SCOPE },
    signal,
  );
  const code = DeviceCode.safeParse(answer.json);
  if (answer.status !== 200 || !code.success) {
    throw new HeddleError("login.failed", `${endpoints.githubUrl} gave no device code (status ${answer.status})`);
  }
  const { device_code, user_code, verification_uri, expires_in, interval = 5 } = code.data;
  if (new URL(verification_uri).origin !== endpoints.githubUrl) {
    throw new HeddleError(
      "login.failed",
      `${endpoints.githubUrl} sends users to another site to enter the code; the code is not shown`,
    );
  }
  return {
    deviceCode: device_code,
    userCode: user_code,
    verificationUrl: verification_uri,
    lifetimeMs: Math.min(expires_in * 1000, MAX_LIFETIME_MS),
    intervalMs: Math.min(60, Math.max(1, interval)) * 1000,
  };
}

const Grant = z.object({
  access_token: z.string().refine(isPlainToken).optional(),
  error: z.string().max(64).optional(),
  interval: z.number().positive().optional(),
});

/** One poll for the token of GitHub. */
async function pollGithub(
  endpoints: CopilotEndpoints,
  { deviceCode }: CopilotDevice,
  { intervalMs, signal }: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<Polled<string>> {
  const form = { client_id: endpoints.clientId, device_code: deviceCode, grant_type: DEVICE_GRANT };
  const answer = await askGithub(endpoints, "/login/oauth/access_token", form, signal);
  if (answer.status >= 500) return { intervalMs };
  const { access_token: granted, error, interval = 0 } = Grant.safeParse(answer.json).data ?? {};
  if (granted !== undefined) return { granted };
  if (error === "authorization_pending") return { intervalMs };
  if (error === "slow_down") return { intervalMs: Math.max(intervalMs + SLOW_DOWN_MS, interval * 1000) };
  if (error === "expired_token") throw codeExpired();
  if (error === "access_denied") throw new HeddleError("login.failed", "the login was declined at GitHub");
  const reason = error !== undefined && /^[a-z_]+$/.test(error) ? error : `status ${answer.status}`;
  throw new HeddleError("login.failed", `GitHub refused the login (${reason})`);
}

/** Follows a login to the credential that is stored. An account without Copilot fails here, not at its first run. */
export async function awaitCopilot(
  endpoints: CopilotEndpoints,
  device: CopilotDevice,
  { key, clock, signal }: { readonly key: CredentialKey; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<CopilotCredential> {
  const poll = (intervalMs: number): Promise<Polled<string>> => pollGithub(endpoints, device, { intervalMs, signal });
  const githubToken = await awaitDevice(poll, { ...device, clock, signal });
  try {
    return await exchange(endpoints, { key, githubToken, now: clock.now(), signal });
  } catch (error) {
    if (!(error instanceof RefusedLogin)) throw error;
    throw new HeddleError(
      "login.failed",
      `this GitHub account may not use Copilot (${error.reason}); see ${endpoints.githubUrl}/settings/copilot`,
    );
  }
}

const CopilotToken = z.object({
  token: z.string().refine(isPlainToken),
  /** Since 1970, in seconds. */
  expires_at: z.number().positive(),
  /** From now on, in seconds: independent of the clock. */
  refresh_in: z.number().positive().optional(),
  endpoints: z.object({ api: z.url() }),
  sku: z.string().max(64).optional(),
});

interface ExchangeOptions {
  readonly key: CredentialKey;
  readonly githubToken: string;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Throws RefusedLogin where the refusal is final, and `provider.*` where it may pass. */
async function exchange(endpoints: CopilotEndpoints, options: ExchangeOptions): Promise<CopilotCredential> {
  const { key, githubToken, now, signal } = options;
  const { status, json } = await pinnedFetch({
    url: `${endpoints.githubApiUrl}/copilot_internal/v2/token`,
    origins: [new URL(endpoints.githubApiUrl).origin],
    headers: { ...endpoints.headers, authorization: `token ${githubToken}` },
    signal,
  });
  if (status === 401 || status === 403 || status === 404) throw new RefusedLogin(`status_${status}`);
  if (status !== 200) {
    const code = status === 429 ? "provider.rate-limited" : "provider.overloaded";
    throw new HeddleError(code, `GitHub did not issue a token for Copilot (status ${status}); try again later`);
  }
  const answer = CopilotToken.safeParse(json);
  if (!answer.success)
    throw new HeddleError("provider.malformed", "GitHub answered with something that is not a token for Copilot");
  const { token, expires_at, refresh_in, endpoints: served, sku } = answer.data;
  const at = new Date(now).toISOString();
  return {
    type: "copilot",
    v: 1,
    ...key,
    savedAt: at,
    health: "ok",
    issuer: endpoints.githubUrl,
    refreshToken: githubToken,
    accessToken: token,
    expiresAt: new Date(refresh_in === undefined ? expires_at * 1000 : now + refresh_in * 1000).toISOString(),
    lastRefresh: at,
    apiUrl: requireSafeUrl(key.provider, served.api).replace(/\/+$/, ""),
    ...defined({ plan: sku }),
  };
}

export interface UsableCopilotOptions extends Pick<
  RenewOptions<CopilotCredential>,
  "store" | "key" | "signal" | "rejected" | "isForced" | "now" | "pauseMs"
> {
  readonly endpoints: CopilotEndpoints;
}

/** A valid token of Copilot: exchanged inside the store's lock, once for all processes. */
export function usableCopilot({ endpoints, ...options }: UsableCopilotOptions): Promise<CopilotCredential> {
  const { key, now = Date.now } = options;
  return usableLogin<CopilotCredential>({
    ...options,
    own: (entry) => (entry?.type === "copilot" ? entry : undefined),
    names: { service: key.provider, again: loginCommand(key.provider, key.profile) },
    isBrief: true,
    async refresh(current, githubToken, signal) {
      if (current.issuer !== endpoints.githubUrl) throw new RefusedLogin("issuer_changed");
      return exchange(endpoints, { key, githubToken, now: now(), signal });
    },
  });
}

function askGithub(
  { githubUrl }: CopilotEndpoints,
  path: string,
  form: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<PinnedAnswer> {
  return pinnedFetch({ url: `${githubUrl}${path}`, origins: [githubUrl], form, signal });
}
