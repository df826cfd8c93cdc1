/**
 * A login in the browser at the issuer of `openai-codex`: a code that only whoever asked for it can use (PKCE, S256), brought
 * back to this machine.
 */
import { createHash, randomBytes } from "node:crypto";
import { openCallback, type Callback } from "./callback.ts";
import type { Issuer } from "./issuer.ts";

/** The issuer sends people back to these and no others. */
const PORTS = [1455, 1457];

export interface BrowserGrant {
  readonly code: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

export interface BrowserLogin extends Pick<Callback, "isManual" | "paste">, AsyncDisposable {
  readonly authUrl: string;
  readonly granted: Promise<BrowserGrant>;
}

export async function openBrowserLogin(issuer: Issuer, ports: readonly number[] = PORTS): Promise<BrowserLogin> {
  const verifier = randomBytes(48).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  const callback = await openCallback({ state, path: "/auth/callback", ports, host: "localhost" });
  const { redirectUri, isManual } = callback;
  const granted = callback.granted.then(({ code }) => ({ code, verifier, redirectUri }));
  // Whoever gives up first never looks.
  granted.catch(() => undefined);
  return {
    authUrl: authorizeUrl(issuer, { redirectUri, state, verifier }),
    isManual,
    granted,
    paste: (text) => callback.paste(text),
    [Symbol.asyncDispose]: () => callback[Symbol.asyncDispose](),
  };
}

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
