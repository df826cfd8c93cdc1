/** Logins at the issuer of `openai-codex`, with a browser or a device code, and at GitHub for Copilot. */
import { createHash, randomBytes } from "node:crypto";
import { openCallback } from "./callback.ts";
import type { CopilotEndpoints } from "./copilot.ts";
import { checkKey, type CredentialKey, type OAuthCredential } from "./credential.ts";
import { awaitDevice, DEVICE_LIFETIME_MS, REAL_CLOCK, type Clock } from "./device-login.ts";
import { credentialOf, exchangeCode, pollDevice, startDevice, type Issuer, type Tokens } from "./issuer.ts";
import { createLoginBook, untilBack, type LoginBook } from "./login-book.ts";
import type { CredentialStore } from "./store.ts";

/** Of a login with a browser too. */
const LIFETIME_MS = DEVICE_LIFETIME_MS;
/** The issuer redirects to these ports only. */
const PORTS = [1455, 1457];

export type StartedLogin =
  | { readonly loginId: string; readonly method: "browser"; readonly authUrl: string; readonly isManual: boolean }
  | {
      readonly loginId: string;
      readonly method: "device";
      readonly verificationUrl: string;
      readonly userCode: string;
      readonly expiresAt: string;
    };

export interface Logins extends Pick<LoginBook, "state" | "ended" | "paste" | "cancel">, AsyncDisposable {
  start(key: CredentialKey, method: "browser" | "device"): Promise<StartedLogin>;
  startCopilot(key: CredentialKey, endpoints: CopilotEndpoints): Promise<StartedLogin>;
}

export interface LoginsOptions {
  readonly store: CredentialStore;
  readonly issuer: Issuer;
  readonly ports?: readonly number[] | undefined;
  readonly clock?: Clock | undefined;
}

export function createLogins({ store, issuer, ports = PORTS, clock = REAL_CLOCK }: LoginsOptions): Logins {
  const book = createLoginBook(store);
  const kept = (key: CredentialKey, tokens: Tokens): OAuthCredential => credentialOf(issuer, tokens, key, clock.now());
  const expiryIn = (ms: number): string => new Date(clock.now() + ms).toISOString();
  return {
    ...book,
    async startCopilot(wanted, endpoints) {
      const { awaitCopilot, startCopilotDevice } = await import("./copilot.ts");
      const key = checkKey(wanted);
      await book.clear(key);
      const device = await startCopilotDevice(endpoints, AbortSignal.timeout(LIFETIME_MS));
      const loginId = book.follow(key, undefined, (signal) => awaitCopilot(endpoints, device, { key, clock, signal }));
      const { verificationUrl, userCode, lifetimeMs } = device;
      return { loginId, method: "device", verificationUrl, userCode, expiresAt: expiryIn(lifetimeMs) };
    },
    async start(wanted, method) {
      const key = checkKey(wanted);
      await book.clear(key);
      if (method === "device") {
        const device = await startDevice(issuer, AbortSignal.timeout(LIFETIME_MS));
        const { verificationUrl, userCode, intervalMs: firstMs } = device;
        const loginId = book.follow(key, undefined, async (signal) => {
          const poll = (intervalMs: number) => pollDevice(issuer, device, { intervalMs, signal });
          const options = { clock, signal, lifetimeMs: LIFETIME_MS, intervalMs: firstMs };
          return kept(key, await exchangeCode(issuer, await awaitDevice(poll, options), signal));
        });
        return { loginId, method, verificationUrl, userCode, expiresAt: expiryIn(LIFETIME_MS) };
      }
      const verifier = randomBytes(48).toString("base64url");
      const state = randomBytes(32).toString("base64url");
      const callback = await openCallback({ state, path: "/auth/callback", ports, host: "localhost" });
      const { redirectUri, isManual } = callback;
      const loginId = book.follow(key, callback, async (signal) => {
        const { code } = await untilBack(callback.granted, signal, LIFETIME_MS);
        return kept(key, await exchangeCode(issuer, { code, verifier, redirectUri }, signal));
      });
      return { loginId, method, authUrl: authorizeUrl(issuer, { redirectUri, state, verifier }), isManual };
    },
  };
}

/** With a code that only this process can use (PKCE, S256). */
function authorizeUrl(
  issuer: Issuer,
  { redirectUri, state, verifier }: { readonly redirectUri: string; readonly state: string; readonly verifier: string },
): string {
  const url = new URL("/oauth/authorize", issuer.url);
  const parameters = {
    response_type: "code",
    client_id: issuer.clientId,
    redirect_uri: redirectUri,
    scope: issuer.scope,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state,
    id_token_add_organizations: "true",
    codex_cli_simplified_flow: "true",
    originator: issuer.originator,
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
