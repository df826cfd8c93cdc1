/**
 * Application Default Credentials of Google: the file GOOGLE_APPLICATION_CREDENTIALS names, or the one gcloud keeps, of a
 * service account or of a user. Other kinds are refused by name. The metadata server is asked only where the configuration
 * says so.
 */
import { createPrivateKey, sign } from "node:crypto";
import { homedir } from "node:os";
import path from "node:path";
import { defined, HeddleError } from "@heddle/protocol";
import { z } from "zod";
import { requireSafeUrl, type Environment, type VertexAuth } from "../providers/provider-auth.ts";
import { parseJson } from "../wire/untrusted.ts";
import { pinnedFetch, type PinnedAnswer } from "./pinned-fetch.ts";
import { isPlainToken } from "./plain-token.ts";
import { readSmallFile } from "./small-file.ts";
import type { FreshToken } from "./token-cache.ts";

const TOKEN_URL = "https://oauth2.googleapis.com/token";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_HOST = "metadata.google.internal";
const METADATA_PATH = "/computeMetadata/v1/instance/service-accounts/default/token";
const ASSERTION_SECONDS = 3600;
const LOGIN = "gcloud auth application-default login";

const ServiceAccount = z.object({
  type: z.literal("service_account"),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url().optional(),
});
const AuthorizedUser = z.object({
  type: z.literal("authorized_user"),
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  refresh_token: z.string().min(1),
  quota_project_id: z
    .string()
    .regex(/^[\w.:-]{1,128}$/)
    .optional(),
});
const CredentialFile = z.discriminatedUnion("type", [ServiceAccount, AuthorizedUser]);

export type GoogleCredentials = z.infer<typeof CredentialFile> & { readonly file: string };

export async function readGoogleCredentials(auth: VertexAuth, env: Environment): Promise<GoogleCredentials> {
  const file = auth.credentialsFile ?? (env["GOOGLE_APPLICATION_CREDENTIALS"] || wellKnownFile(env));
  const text = await readSmallFile(file);
  if (text === undefined) throw missing(`there are no Google credentials in ${file}; run: ${LOGIN}`);
  const json = parseJson(text);
  const found = CredentialFile.safeParse(json);
  if (found.success) return { ...found.data, file };
  const kind = z.object({ type: z.string().max(64).regex(/^\w+$/) }).safeParse(json).data?.type;
  if (kind === undefined || kind === "service_account" || kind === "authorized_user") {
    throw missing(`${file} does not hold Google credentials as gcloud writes them; run: ${LOGIN}`);
  }
  throw missing(
    `${file} holds credentials of the kind ${kind}, which Heddle does not exchange; have a program do it: auth.command = ["gcloud", "auth", "application-default", "print-access-token"], or run: ${LOGIN}`,
  );
}

function wellKnownFile(env: Environment): string {
  const folder = env["CLOUDSDK_CONFIG"] || path.join(env["HOME"] || homedir(), ".config", "gcloud");
  return path.join(folder, "application_default_credentials.json");
}

/** The parts that are secret. */
export function googleSecrets(credentials: GoogleCredentials): readonly string[] {
  return credentials.type === "service_account"
    ? [credentials.private_key]
    : [credentials.client_secret, credentials.refresh_token];
}

export async function googleToken(
  credentials: GoogleCredentials,
  auth: VertexAuth,
  { signal, now = Date.now }: { readonly signal: AbortSignal; readonly now?: () => number },
): Promise<FreshToken> {
  const isService = credentials.type === "service_account";
  const url = requireSafeUrl("vertex", auth.tokenUrl ?? (isService ? credentials.token_uri : undefined) ?? TOKEN_URL);
  const form = isService
    ? { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: assertion(credentials, url, now()) }
    : {
        grant_type: "refresh_token",
        client_id: credentials.client_id,
        client_secret: credentials.client_secret,
        refresh_token: credentials.refresh_token,
      };
  const answer = await pinnedFetch({ url, origins: [new URL(url).origin], form, signal });
  return tokenIn(answer, now(), `the Google credentials in ${credentials.file}`);
}

/** Signed with the key of the account; valid for this address only. */
function assertion(account: z.infer<typeof ServiceAccount>, audience: string, now: number): string {
  const issuedAt = Math.floor(now / 1000);
  const header = { alg: "RS256", typ: "JWT", ...defined({ kid: account.private_key_id }) };
  const claims = {
    iss: account.client_email,
    scope: SCOPE,
    aud: audience,
    iat: issuedAt,
    exp: issuedAt + ASSERTION_SECONDS,
  };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${signed}.${sign("RSA-SHA256", Buffer.from(signed), keyOf(account)).toString("base64url")}`;
}

function keyOf({ private_key, client_email }: z.infer<typeof ServiceAccount>): ReturnType<typeof createPrivateKey> {
  try {
    const key = createPrivateKey(private_key);
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // The message of the parser may quote the key.
  }
  throw missing(
    `the private key of ${client_email} is not an RSA key; make a new one: gcloud iam service-accounts keys create`,
  );
}

/** The account of the machine. The host is Google's fixed name, or from the variable that Google's libraries use. */
export async function metadataToken(
  env: Environment,
  { signal, now = Date.now }: { readonly signal: AbortSignal; readonly now?: () => number },
): Promise<FreshToken> {
  const url = URL.parse(`http://${env["GCE_METADATA_HOST"] || METADATA_HOST}${METADATA_PATH}`);
  if (url === null || url.username !== "" || url.pathname !== METADATA_PATH)
    throw new HeddleError("config.invalid", "GCE_METADATA_HOST must be a host, with a port where it needs one");
  const headers = { "metadata-flavor": "Google" };
  const answer = await pinnedFetch({ url: url.href, origins: [url.origin], headers, timeoutMs: 5000, signal });
  return tokenIn(answer, now(), "the account of this machine");
}

const Granted = z.object({
  access_token: z.string().refine(isPlainToken),
  expires_in: z.number().positive().max(86_400),
});
const Refused = z.object({ error: z.string().regex(/^[a-z_]{1,64}$/) });

function tokenIn({ status, json }: PinnedAnswer, now: number, what: string): FreshToken {
  const granted = Granted.safeParse(json);
  if (status === 200 && granted.success) {
    return { token: granted.data.access_token, expiresAt: now + granted.data.expires_in * 1000 };
  }
  const word = Refused.safeParse(json).data?.error ?? `status ${status}`;
  if (status === 429 || status >= 500) {
    const code = status === 429 ? "provider.rate-limited" : "provider.overloaded";
    throw new HeddleError(code, `Google gives no token now (${word})`);
  }
  if (status === 200) throw new HeddleError("provider.malformed", "Google answered with something that is not a token");
  throw new HeddleError("auth.rejected", `${what} are refused (${word}); run: ${LOGIN}`);
}

function missing(message: string): HeddleError {
  return new HeddleError("auth.missing", message);
}
