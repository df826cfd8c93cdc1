/**
 * The login in the auth.json of Codex, read and never written. A key in it may be used; its tokens are used only where the
 * configuration says so (`adopt_codex_login`), and are never renewed here: that would log Codex out.
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { Environment } from "../providers/provider-auth.ts";
import { isExpired, tokenFacts } from "./tokens.ts";

const AuthFile = z.object({
  OPENAI_API_KEY: z.string().nullish(),
  tokens: z
    .object({ access_token: z.string().min(1), id_token: z.string().nullish(), account_id: z.string().nullish() })
    .nullish(),
});

export interface AdoptedLogin {
  readonly accessToken: string;
  readonly accountId: string | undefined;
  readonly isFedramp: boolean;
  readonly email: string | undefined;
  readonly plan: string | undefined;
  readonly expiresAt: number | undefined;
}

function codexAuthFile(env: Environment): string {
  return path.resolve(env["CODEX_HOME"] || path.join(homedir(), ".codex"), "auth.json");
}

async function readAuthFile(env: Environment): Promise<z.infer<typeof AuthFile> | undefined> {
  try {
    return AuthFile.safeParse(JSON.parse(await readFile(codexAuthFile(env), "utf8"))).data;
  } catch {
    // Absent or unreadable: not logged in there, as far as Heddle can tell.
    return undefined;
  }
}

/** The key Codex was logged in with, if it was one. */
export async function readCodexKey(env: Environment): Promise<string | undefined> {
  return (await readAuthFile(env))?.OPENAI_API_KEY?.trim() || undefined;
}

export async function readCodexLogin(env: Environment): Promise<AdoptedLogin | undefined> {
  const tokens = (await readAuthFile(env))?.tokens;
  if (tokens === undefined || tokens === null) return undefined;
  const facts = { ...tokenFacts(tokens.id_token ?? undefined), ...tokenFacts(tokens.access_token) };
  return {
    accessToken: tokens.access_token,
    accountId: tokens.account_id ?? facts.accountId,
    isFedramp: facts.isFedramp === true,
    email: facts.email,
    plan: facts.plan,
    expiresAt: facts.expiresAt,
  };
}

export async function usableCodexLogin(env: Environment, now: number = Date.now()): Promise<AdoptedLogin> {
  const login = await readCodexLogin(env);
  if (login === undefined) {
    throw new HeddleError("auth.missing", `there is no login of Codex in ${codexAuthFile(env)}; run: codex login`);
  }
  if (!isExpired({ accessToken: login.accessToken }, now)) return login;
  throw new HeddleError(
    "auth.rejected",
    "the login of Codex has expired, and only Codex may renew it; run codex once, or log in with: heddle login openai-codex",
  );
}
