/**
 * A valid token. It is renewed inside the store's lock after reading again, so that of any number of processes one asks the
 * issuer and the others find its answer. A final refusal is stored and never tried again; a temporary one is tried three
 * times. No other credential ever replaces it.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { CopilotCredential, Credential, CredentialKey, McpCredential, OAuthCredential } from "./credential.ts";
import { credentialOf, refreshTokens, RefusedLogin, type Issuer } from "./issuer.ts";
import { pause } from "../requests/retry.ts";
import type { CredentialStore } from "./store.ts";
import { isExpired, isRefreshDue } from "./tokens.ts";

const TRIES = 3;
const PAUSE_MS = 400;

type Login = OAuthCredential | McpCredential | CopilotCredential;

export interface RenewOptions<L extends Login> {
  readonly store: CredentialStore;
  readonly key: CredentialKey;
  readonly own: (entry: Credential | undefined) => L | undefined;
  /** For messages: where the login is, and the command to log in again. */
  readonly names: { readonly service: string; readonly again: string };
  readonly signal: AbortSignal;
  /** The renewed login; throws RefusedLogin where the refusal is final, and a HeddleError of `provider.*` where it may pass. */
  readonly refresh: (current: L, refreshToken: string, signal: AbortSignal) => Promise<L>;
  /** Its tokens may live for minutes. */
  readonly isBrief?: boolean;
  /** A token that has just been refused; renewed unless another process has done so already. */
  readonly rejected?: string | undefined;
  readonly isForced?: boolean;
  readonly now?: () => number;
  readonly pauseMs?: number;
}

export interface RefreshOptions extends Omit<RenewOptions<OAuthCredential>, "own" | "names" | "refresh"> {
  readonly issuer: Issuer;
}

/** A login at the issuer of `openai-codex`. */
export function usableOAuth({ issuer, ...options }: RefreshOptions): Promise<OAuthCredential> {
  const { key, now = Date.now } = options;
  return usableLogin<OAuthCredential>({
    ...options,
    own: (entry) => (entry?.type === "oauth" ? entry : undefined),
    names: { service: key.provider, again: loginCommand(key.provider, key.profile) },
    async refresh(current, refreshToken, signal) {
      if (current.issuer !== issuer.url) throw new RefusedLogin("issuer_changed");
      const tokens = await refreshTokens(issuer, refreshToken, signal);
      const next = credentialOf(issuer, tokens, { ...key, before: current }, now());
      // Tokens of another account must not be stored under this name.
      const isOther = current.accountId !== undefined && next.accountId !== current.accountId;
      if (isOther) throw new RefusedLogin("account_changed");
      return next;
    },
  });
}

export async function usableLogin<L extends Login>(options: RenewOptions<L>): Promise<L> {
  const { store, key, now = Date.now } = options;
  const stored = requireUsable(await store.get(key), options);
  if (!mustRenew(stored, options, now())) return stored;
  const kept = await store.change(
    key,
    async (entry) => {
      const current = requireUsable(entry, options);
      return mustRenew(current, options, now()) ? renew(current, options) : current;
    },
    { signal: options.signal },
  );
  return requireUsable(kept, options);
}

function mustRenew<L extends Login>(
  credential: L,
  { rejected, isForced, isBrief = false }: RenewOptions<L>,
  now: number,
): boolean {
  if (rejected !== undefined) return credential.accessToken === rejected;
  return isForced === true || isRefreshDue(credential, now, { isBrief });
}

/** What to store: the renewed login, or the old one marked as refused. */
async function renew<L extends Login>(current: L, options: RenewOptions<L>): Promise<L> {
  const { now = Date.now, rejected } = options;
  const refused = (problem: string): L => ({ ...current, health: "reconnect_required", problem });
  const { refreshToken } = current;
  if (refreshToken === undefined) return refused("no_refresh_token");
  try {
    return await tryThrice((signal) => options.refresh(current, refreshToken, signal), options);
  } catch (error) {
    if (error instanceof RefusedLogin) return refused(error.reason);
    // Renewed early: the old token is valid until the issuer answers again.
    const isStillGood = rejected === undefined && options.isForced !== true && !isExpired(current, now());
    if (isStillGood && isHeddleError(error) && !options.signal.aborted) return current;
    throw error;
  }
}

/** Tries again where the failure is temporary. */
export async function tryThrice<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  { signal, pauseMs = PAUSE_MS }: { readonly signal: AbortSignal; readonly pauseMs?: number | undefined },
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask(signal);
    } catch (error) {
      const isPassing = isHeddleError(error) && PASSING.has(error.code);
      if (!isPassing || attempt >= TRIES || signal.aborted) throw error;
    }
    await pause(Math.round(pauseMs * 2 ** (attempt - 1) * (0.5 + Math.random())), signal);
  }
}

const PASSING: ReadonlySet<string> = new Set(["provider.unreachable", "provider.overloaded", "provider.rate-limited"]);

function requireUsable<L extends Login>(
  found: Credential | undefined,
  { own, key: { provider, profile }, names: { service, again } }: RenewOptions<L>,
): L {
  const entry = own(found);
  if (entry === undefined) {
    throw new HeddleError("auth.missing", `not logged in at ${service}; log in with: ${again}`, {
      details: { provider, profile },
    });
  }
  if (entry.health === "ok") return entry;
  throw new HeddleError(
    "auth.rejected",
    `the login at ${service} is no longer accepted (${entry.problem ?? "refused"}); log in again with: ${again}`,
    { details: { provider, profile, health: "reconnect_required" } },
  );
}

export function loginCommand(provider: string, profile: string): string {
  return `heddle login ${provider}${profile === "default" ? "" : ` --profile ${profile}`}`;
}
