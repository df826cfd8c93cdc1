/** The claims of a token, unchecked: they decide when to refresh and what to show, never who may do what. */
import { defined } from "@heddle/protocol";
import { z } from "zod";
import { parseJson } from "../wire/untrusted.ts";
import type { OAuthCredential } from "./credential.ts";

const AUTH = "https://api.openai.com/auth";
const PROFILE = "https://api.openai.com/profile";

const Claims = z.object({
  exp: z.number().optional(),
  email: z.string().optional(),
  [AUTH]: z
    .object({
      chatgpt_account_id: z.string().optional(),
      chatgpt_plan_type: z.string().optional(),
      chatgpt_account_is_fedramp: z.boolean().optional(),
    })
    .optional(),
  [PROFILE]: z.object({ email: z.string().optional() }).optional(),
});

export interface TokenFacts {
  readonly expiresAt?: number;
  readonly accountId?: string;
  readonly plan?: string;
  readonly email?: string;
  readonly isFedramp?: boolean;
}

export function tokenFacts(token: string | undefined): TokenFacts {
  const claims = Claims.safeParse(payloadOf(token));
  if (!claims.success) return {};
  const { exp, email, [AUTH]: auth, [PROFILE]: profile } = claims.data;
  return {
    ...defined({
      expiresAt: exp === undefined ? undefined : exp * 1000,
      accountId: auth?.chatgpt_account_id,
      plan: auth?.chatgpt_plan_type,
      email: email ?? profile?.email,
    }),
    ...(auth?.chatgpt_account_is_fedramp === true ? { isFedramp: true } : {}),
  };
}

function payloadOf(token: string | undefined): unknown {
  const [, payload, signature] = (token ?? "").split(".");
  if (payload === undefined || signature === undefined) return undefined;
  return parseJson(Buffer.from(payload, "base64url").toString("utf8"));
}

export function expiryAfter(now: number, seconds: number | undefined): string | undefined {
  return seconds === undefined ? undefined : new Date(now + seconds * 1000).toISOString();
}

/** A token is renewed this long before its end. */
const EARLY_MS = 5 * 60_000;
/** A token that does not name its end is renewed after this time. */
const BLIND_MS = 8 * 24 * 60 * 60_000;

/** Of any kind of login. */
type Aged = Pick<OAuthCredential, "accessToken" | "expiresAt" | "lastRefresh">;

export function expiryOf({ accessToken, expiresAt }: Omit<Aged, "lastRefresh">): number | undefined {
  return tokenFacts(accessToken).expiresAt ?? (expiresAt === undefined ? undefined : Date.parse(expiresAt));
}

/** `isBrief`: tokens may live for minutes only; those are renewed in their last quarter. */
export function isRefreshDue(credential: Aged, now: number, { isBrief = false } = {}): boolean {
  const expiry = expiryOf(credential);
  const renewedAt = Date.parse(credential.lastRefresh);
  const early = expiry !== undefined && isBrief ? Math.min(EARLY_MS, Math.max(0, expiry - renewedAt) / 4) : EARLY_MS;
  if (expiry !== undefined) return expiry <= now + early;
  return renewedAt + BLIND_MS <= now;
}

/** A token that is due may still be accepted. */
export function isExpired(credential: Omit<Aged, "lastRefresh">, now: number): boolean {
  const expiry = expiryOf(credential);
  return expiry !== undefined && expiry <= now;
}
