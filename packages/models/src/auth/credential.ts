/**
 * What the credential store holds: type-tagged, versioned entries, each for one (owner, provider, profile). A document that
 * this version does not understand completely is refused and left as it is.
 */
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";

/** Whose credential it is, for which provider, and which of several. */
export interface CredentialKey {
  /** A user of a server with several; `local` on one's own machine. */
  readonly owner: string;
  readonly provider: string;
  readonly profile: string;
}

export { DEFAULT_PROFILE, LOCAL_OWNER } from "./default-account.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$/;
const name = z.string().regex(NAME);
const secret = z
  .string()
  .min(1)
  .max(64 * 1024);
const time = z.iso.datetime();

const common = {
  v: z.literal(1),
  owner: name,
  provider: name,
  profile: name,
  savedAt: time,
  /** `reconnect_required`: the provider has refused it for good; it is never tried again. */
  health: z.enum(["ok", "reconnect_required"]),
};

/** Of a login: renewed with its refresh token. */
const login = {
  ...common,
  accessToken: secret,
  refreshToken: secret.optional(),
  /** Of the access token, where the issuer names it besides the token itself. */
  expiresAt: time.optional(),
  lastRefresh: time,
  /** Why it needs a new login: the issuer's code, never its text. */
  problem: z.string().max(64).optional(),
};

const ApiKeyCredential = z.strictObject({
  type: z.literal("apiKey"),
  ...common,
  /** The only address that the key is sent to. */
  origin: z.url(),
  key: secret,
});

const OAuthCredential = z.strictObject({
  type: z.literal("oauth"),
  ...login,
  issuer: z.url(),
  idToken: secret.optional(),
  accountId: z.string().max(256).optional(),
  email: z.string().max(320).optional(),
  plan: z.string().max(64).optional(),
  isFedramp: z.boolean().optional(),
});

/** A login at an MCP server. Its token is sent only to that address, and renewed at its issuer. */
const McpCredential = z.strictObject({
  type: z.literal("mcpOauth"),
  ...login,
  /** As the configuration named it when the login was made. */
  server: z.string().min(1),
  url: z.url(),
  authority: z.strictObject({
    issuer: z.url(),
    tokenEndpoint: z.url(),
    revocationEndpoint: z.url().optional(),
    authMethods: z.array(z.string().max(128)).max(100),
    resource: z.string().max(8192).optional(),
    clientId: z.string().min(1).max(8192),
    clientSecret: secret.optional(),
  }),
});

/** A login at GitHub, and the token of Copilot that it was last exchanged for. */
const CopilotCredential = z.strictObject({
  type: z.literal("copilot"),
  ...login,
  /** Origin of the GitHub where the login was made; its token is sent nowhere else. */
  issuer: z.url(),
  /** Of GitHub. It is exchanged for the access token of Copilot, which lives for minutes. */
  refreshToken: secret,
  expiresAt: time,
  /** The address of Copilot, as GitHub names it. */
  apiUrl: z.url(),
  plan: z.string().max(64).optional(),
});

export type ApiKeyCredential = z.infer<typeof ApiKeyCredential>;
export type OAuthCredential = z.infer<typeof OAuthCredential>;
export type McpCredential = z.infer<typeof McpCredential>;
export type CopilotCredential = z.infer<typeof CopilotCredential>;
export type Credential = z.infer<typeof Credentials>;

const VERSION = 1;
const Credentials = z.discriminatedUnion("type", [ApiKeyCredential, OAuthCredential, McpCredential, CopilotCredential]);
const Document = z.strictObject({ version: z.literal(VERSION), entries: z.array(Credentials).max(1000) });

/** Only what tells whether this version may look further. */
const Head = z.object({ version: z.number(), entries: z.array(z.object({ type: z.string(), v: z.number() })) });
const KNOWN_TYPES: readonly string[] = ["apiKey", "oauth", "mcpOauth", "copilot"];

export function parseDocument(text: string, location: string): readonly Credential[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser quotes what it could not read, and that may be a secret.
    throw damaged(location, "it is not JSON");
  }
  const head = Head.safeParse(json);
  if (!head.success) throw damaged(location, "it is not a list of credentials");
  const isNewer =
    head.data.version !== VERSION || head.data.entries.some(({ type, v }) => v !== 1 || !KNOWN_TYPES.includes(type));
  if (isNewer) {
    throw new HeddleError(
      "store.newer",
      `${location} was written by another version of Heddle; use that version, or move the file away`,
    );
  }
  const document = Document.safeParse(json);
  if (!document.success)
    throw damaged(location, `wrong at ${document.error.issues[0]?.path.join(".") ?? "the top level"}`);
  const keys = document.data.entries.map(keyText);
  if (new Set(keys).size < keys.length) throw damaged(location, "it has the same account twice");
  return document.data.entries;
}

export function documentText(entries: readonly Credential[]): string {
  const document: z.infer<typeof Document> = { version: VERSION, entries: [...entries] };
  return `${JSON.stringify(Document.parse(document), undefined, 2)}\n`;
}

/** The parts of an entry that are secret. */
export function secretsOf(entry: Credential): readonly string[] {
  switch (entry.type) {
    case "apiKey":
      return [entry.key];
    case "oauth":
      return present(entry.accessToken, entry.refreshToken, entry.idToken);
    case "copilot":
      return [entry.accessToken, entry.refreshToken];
    case "mcpOauth":
      return present(entry.accessToken, entry.refreshToken, entry.authority.clientSecret);
  }
}

function present(...values: readonly (string | undefined)[]): readonly string[] {
  return values.filter((value) => value !== undefined);
}

export function sameKey(a: CredentialKey, b: CredentialKey): boolean {
  return a.owner === b.owner && a.provider === b.provider && a.profile === b.profile;
}

/** One text for one key; names hold no colon. */
export function keyText({ owner, provider, profile }: CredentialKey): string {
  return `${owner}:${provider}:${profile}`;
}

export function checkKey(key: CredentialKey): CredentialKey {
  for (const field of ["owner", "provider", "profile"] as const) {
    if (!NAME.test(key[field])) {
      throw new HeddleError("usage.invalid", `${field} must be one word of letters, digits, "_", ".", "@" or "-"`);
    }
  }
  return { owner: key.owner, provider: key.provider, profile: key.profile };
}

function damaged(location: string, why: string): HeddleError {
  return new HeddleError(
    "store.damaged",
    `${location} cannot be used: ${why}; fix it, or move it away and log in again. It was not changed`,
  );
}
