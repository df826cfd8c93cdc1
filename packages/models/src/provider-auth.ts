/**
 * How a provider authenticates where a key in the wire's own header is not all there is to it: a closed union, and what of it
 * has to be known before anything is asked. What obtains tokens and signs requests is in `auth/`, loaded when it is used.
 */
import { HeddleError } from "@heddle/protocol";
import type { Provider, WireName } from "./providers.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A program that prints a token. It is started without a shell, in the user's own folder. */
export interface TokenCommand {
  /** Program and arguments; the program is an absolute path or found by PATH. */
  readonly command: readonly string[];
  readonly timeoutMs?: number | undefined;
  /** How long a token counts that does not say when it ends. */
  readonly refreshSeconds?: number | undefined;
  /** Variables of Heddle's own environment that the program may see beside the usual few. */
  readonly envVars?: readonly string[] | undefined;
}

export interface CommandAuth extends TokenCommand {
  readonly type: "command";
}

export interface CopilotAuth {
  readonly type: "copilot";
  /** Where people log in; another one for GitHub Enterprise. */
  readonly githubUrl?: string | undefined;
  /** Where GitHub's API is, when it cannot be told from that. */
  readonly githubApiUrl?: string | undefined;
  readonly clientId?: string | undefined;
}

export interface VertexAuth {
  readonly type: "vertex";
  readonly project?: string | undefined;
  readonly location?: string | undefined;
  /** In place of GOOGLE_APPLICATION_CREDENTIALS and gcloud's own file. */
  readonly credentialsFile?: string | undefined;
  /** The token of the machine's own account, from the metadata server, and nothing else. */
  readonly metadata?: boolean | undefined;
  /** The token a program prints, and nothing else. */
  readonly command?: readonly string[] | undefined;
  /** Who hands out tokens, where that is not Google's usual address. */
  readonly tokenUrl?: string | undefined;
}

export interface BedrockAuth {
  readonly type: "bedrock";
  readonly region?: string | undefined;
  /** Of the shared credentials file; wins over keys in the environment when it is named here. */
  readonly profile?: string | undefined;
  readonly credentialsFile?: string | undefined;
}

/** Where AWS's programs keep keys in the environment. They sign requests and are sent to nobody. */
export const AWS_VARIABLES = {
  accessKeyId: "AWS_ACCESS_KEY_ID",
  secretAccessKey: "AWS_SECRET_ACCESS_KEY",
  sessionToken: "AWS_SESSION_TOKEN",
} as const;

/** The key goes into a header of this name. */
export interface KeyHeaderAuth {
  readonly type: "api-key";
  readonly header: string;
}

export type ProviderAuth = KeyHeaderAuth | CommandAuth | CopilotAuth | VertexAuth | BedrockAuth;

/** Where a login comes from while a provider is used. It holds no secret that shows. */
export interface CredentialSource {
  /** For messages. */
  readonly source: string;
  /** The only address it may be sent to, where that is not the provider's own to choose. */
  readonly baseUrl?: string | undefined;
  /** What to send with a request now. Throws `auth.*` when there is nothing to send. */
  headers(wire: WireName, signal: AbortSignal, outgoing: Outgoing): Promise<Readonly<Record<string, string>>>;
  /** Where a request goes now, when the login itself says so; asked after `headers`. */
  readonly address?: (() => string | undefined) | undefined;
  /** What was sent last is refused; true when there is something else to send. */
  renew(signal: AbortSignal): Promise<boolean>;
  /** Everything it has handed out. */
  secrets(): readonly string[];
  /** From now on whoever keeps a record is told each secret before it is used. */
  readonly hear?: ((listener: SecretListener) => void) | undefined;
}

export type SecretListener = (secrets: readonly string[]) => void;

/** A request as it will leave, for what is signed or depends on it. */
export interface Outgoing {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** It goes on with work under way; nobody has said anything new. */
  readonly isFollowUp?: boolean;
  readonly hasImages?: boolean;
}

/** What obtains its own tokens takes no key: a variable that happens to be set is not sent in their place. */
export function takesKey(auth: ProviderAuth | undefined): boolean {
  return auth === undefined || auth.type === "api-key" || auth.type === "bedrock";
}

/** Credentials that no store of Heddle's holds: asked of the machine when a request needs them. */
export function isAmbient(auth: ProviderAuth | undefined): auth is CommandAuth | VertexAuth | BedrockAuth {
  return auth?.type === "command" || auth?.type === "vertex" || auth?.type === "bedrock";
}

/** Vertex AI and Bedrock have no list at the address of their models, and neither has an address for one model each. */
export function listsModels({ auth, baseUrl }: Pick<Provider, "auth" | "baseUrl">): boolean {
  return auth !== "vertex" && auth !== "bedrock" && !baseUrl.includes("{model}");
}

interface Hosted {
  readonly id: string;
  readonly wire?: string | undefined;
  readonly auth?: ProviderAuth | undefined;
}

/** The address of a provider that is found by project, location or region; undefined for every other. */
export function hostedUrl({ id, wire, auth }: Hosted, env: Environment): string | undefined {
  if (auth?.type === "vertex") {
    const project = auth.project ?? firstSet(env, ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"]);
    const location = auth.location ?? firstSet(env, ["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]) ?? "global";
    const where = `projects/${word({ id, kind: "vertex", key: "project" }, project, "GOOGLE_CLOUD_PROJECT")}/locations/${word({ id, kind: "vertex", key: "location" }, location, "GOOGLE_CLOUD_LOCATION")}`;
    return `https://${vertexHost(location)}/v1/${where}/publishers/${wire === "anthropic" ? "anthropic" : "google"}`;
  }
  if (auth?.type !== "bedrock") return undefined;
  const region = word(
    { id, kind: "bedrock", key: "region" },
    auth.region ?? firstSet(env, ["AWS_REGION", "AWS_DEFAULT_REGION"]),
    "AWS_REGION",
  );
  return `https://bedrock-runtime.${region}.amazonaws.com${wire === "anthropic" ? "" : "/openai/v1"}`;
}

function vertexHost(location: string): string {
  if (location === "global") return "aiplatform.googleapis.com";
  // Several regions together have hosts of another form than one.
  return location.includes("-") ? `${location}-aiplatform.googleapis.com` : `aiplatform.${location}.rep.googleapis.com`;
}

interface Wanted {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
}

/** It becomes a part of a host name or a path, and nothing that could lead elsewhere. */
function word({ id, kind, key }: Wanted, value: string | undefined, variable: string): string {
  if (value === undefined) {
    throw new HeddleError(
      "provider.configuration-required",
      `provider ${id} needs a ${key}: set ${variable}, or write auth = { type = "${kind}", ${key} = "…" } under [model_providers.${id}] in config.toml`,
      { details: { provider: id, variable } },
    );
  }
  if (/^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/.test(value)) return value;
  throw new HeddleError("config.invalid", `provider ${id}: auth.${key}: "${value}" is not the name of a ${key}`);
}

/** What obtains tokens sends them over TLS, or to this machine. */
export function requireSafeUrl(id: string, url: string): string {
  const { protocol, hostname, username, password } = new URL(url);
  const isHere = hostname === "127.0.0.1" || hostname === "localhost" || hostname === "[::1]";
  const isOpen = username === "" && password === "";
  if (isOpen && (protocol === "https:" || (protocol === "http:" && isHere))) return url;
  throw new HeddleError(
    "config.invalid",
    `provider ${id}: a token is sent only to https addresses, not to ${protocol}//`,
  );
}

function firstSet(env: Environment, names: readonly string[]): string | undefined {
  return names.map((name) => env[name]?.trim()).find((value) => value !== undefined && value !== "");
}
