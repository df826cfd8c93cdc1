/** A fresh home for a credential store, and entries to put into it. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ApiKeyCredential, CredentialKey, OAuthCredential } from "../src/auth/credential.ts";
import { accountToken, CANARY, type TestIssuer } from "../src/auth/testing.ts";

export interface AuthHome extends AsyncDisposable {
  readonly root: string;
  /** Not made yet. */
  readonly home: string;
  readonly file: string;
}

export async function openAuthHome(): Promise<AuthHome> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-auth-")));
  const home = path.join(root, "home");
  return {
    root,
    home,
    file: path.join(home, "credentials.json"),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

export const CODEX_KEY: CredentialKey = { owner: "local", provider: "openai-codex", profile: "default" };

export function apiKey(provider: string, key = `sk-${CANARY}`): ApiKeyCredential {
  return {
    type: "apiKey",
    v: 1,
    owner: "local",
    provider,
    profile: "default",
    savedAt: new Date(0).toISOString(),
    health: "ok",
    origin: "https://api.example.test",
    key,
  };
}

/** A login at the issuer whose access token ends in so many seconds. */
export function login(issuer: TestIssuer, inSeconds: number, more: Partial<OAuthCredential> = {}): OAuthCredential {
  return {
    type: "oauth",
    v: 1,
    ...CODEX_KEY,
    savedAt: new Date(0).toISOString(),
    health: "ok",
    issuer: issuer.url,
    accessToken: accountToken("acct-1", Math.floor(Date.now() / 1000) + inSeconds),
    refreshToken: issuer.grant(),
    lastRefresh: new Date(0).toISOString(),
    accountId: "acct-1",
    ...more,
  };
}
