/**
 * A token that is good now. It is renewed inside the store's lock after reading anew, so that of any number of processes one
 * asks the issuer and the others find its answer. A final refusal is remembered and never tried again; a passing one is tried
 * three times. No other credential ever takes its place.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";

import type { CredentialKey, OAuthCredential } from "./credential.ts";
import { credentialOf, refreshTokens, RefusedLogin, type Issuer, type Tokens } from "./issuer.ts";
import { pause } from "./pause.ts";
import type { CredentialStore } from "./store.ts";
import { isExpired, isRefreshDue } from "./tokens.ts";

const TRIES = 3;
const PAUSE_MS = 400;

export interface RefreshOptions {
  readonly store: CredentialStore;
  readonly issuer: Issuer;
  readonly key: CredentialKey;
  readonly signal: AbortSignal;
  /** A token the provider has just refused; renewed whatever it says of itself, unless somebody has done so already. */
  readonly rejected?: string | undefined;
  /** Renewed whatever it says of itself. */
  readonly isForced?: boolean;
  readonly now?: () => number;
  readonly pauseMs?: number;
}

export async function usableOAuth(options: RefreshOptions): Promise<OAuthCredential> {
  const { store, key, now = Date.now } = options;
  const stored = requireUsable(await store.get(key), key);
  if (!mustRenew(stored, options, now())) return stored;
  const kept = await store.change(
    key,
    async (entry) => {
      const current = requireUsable(entry, key);
      return mustRenew(current, options, now()) ? renew(current, options) : current;
    },
    { signal: options.signal },
  );
  return requireUsable(kept, key);
}

function mustRenew(credential: OAuthCredential, { rejected, isForced }: RefreshOptions, now: number): boolean {
  if (rejected !== undefined) return credential.accessToken === rejected;
  return isForced === true || isRefreshDue(credential, now);
}

/** What to keep: the renewed login, or the old one marked as refused. */
async function renew(current: OAuthCredential, options: RefreshOptions): Promise<OAuthCredential> {
  const { issuer, now = Date.now, rejected } = options;
  const refused = (problem: string): OAuthCredential => ({ ...current, health: "reconnect_required", problem });
  if (current.issuer !== issuer.url) return refused("issuer_changed");
  if (current.refreshToken === undefined) return refused("no_refresh_token");
  try {
    const tokens = await tryRefresh(current.refreshToken, options);
    const next = credentialOf(issuer, tokens, { ...keyOf(current), before: current }, now());
    // Tokens of somebody else must not slip in under this name.
    const isOther = current.accountId !== undefined && next.accountId !== current.accountId;
    return isOther ? refused("account_changed") : next;
  } catch (error) {
    if (error instanceof RefusedLogin) return refused(error.reason);
    // Renewed early; what there is may serve until the issuer is well again.
    const isStillGood = rejected === undefined && options.isForced !== true && !isExpired(current, now());
    if (isStillGood && isHeddleError(error) && !options.signal.aborted) return current;
    throw error;
  }
}

async function tryRefresh(token: string, options: RefreshOptions): Promise<Tokens> {
  const { issuer, signal, pauseMs = PAUSE_MS } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await refreshTokens(issuer, token, signal);
    } catch (error) {
      const isPassing = isHeddleError(error) && PASSING.has(error.code);
      if (!isPassing || attempt >= TRIES || signal.aborted) throw error;
    }
    await pause(Math.round(pauseMs * 2 ** (attempt - 1) * (0.5 + Math.random())), signal);
  }
}

const PASSING: ReadonlySet<string> = new Set(["provider.unreachable", "provider.overloaded", "provider.rate-limited"]);

function keyOf({ owner, provider, profile }: CredentialKey): CredentialKey {
  return { owner, provider, profile };
}

function requireUsable(
  entry: Awaited<ReturnType<CredentialStore["get"]>>,
  { provider, profile }: CredentialKey,
): OAuthCredential {
  const again = loginCommand(provider, profile);
  if (entry === undefined || entry.type !== "oauth") {
    throw new HeddleError("auth.missing", `nobody is logged in at ${provider}; log in with: ${again}`, {
      details: { provider, profile },
    });
  }
  if (entry.health === "ok") return entry;
  throw new HeddleError(
    "auth.rejected",
    `the login at ${provider} is no longer accepted (${entry.problem ?? "refused"}); log in again with: ${again}`,
    { details: { provider, profile, health: "reconnect_required" } },
  );
}

export function loginCommand(provider: string, profile: string): string {
  return `heddle login ${provider}${profile === "default" ? "" : ` --profile ${profile}`}`;
}
