/**
 * How a provider authenticates where a key in the wire's own header is not enough: a closed union, and what of it must be
 * known before the first request. What obtains tokens and signs requests is in `auth/`, loaded when it is used.
 */
import { HeddleError } from "@heddle/protocol";
import type { Provider, ProviderConfig, WireName } from "./providers.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A program that prints a token. It is started without a shell, in the home of the user. */
export interface TokenCommand {
  /** Program and arguments; the program is an absolute path or found by PATH. */
  readonly command: readonly string[];
  readonly timeoutMs?: number | undefined;
  /** The lifetime of a token that does not name its end. */
  readonly refreshSeconds?: number | undefined;
  /** Variables of Heddle's own environment that the program gets besides the usual few. */
  readonly envVars?: readonly string[] | undefined;
}

export interface CommandAuth extends TokenCommand {
  readonly type: "command";
  /** The token goes into a header of this name, as it is; absent: as a bearer token. */
  readonly header?: string | undefined;
}

export interface CopilotAuth {
  readonly type: "copilot";
  /** Where users log in; another one for GitHub Enterprise. */
  readonly githubUrl?: string | undefined;
  /** Where GitHub's API is, when it does not follow from that. */
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
  /** Of the shared credentials file; used instead of keys in the environment when it is named here. */
  readonly profile?: string | undefined;
  readonly credentialsFile?: string | undefined;
}

/** Keys in the environment that sign requests and are never sent. */
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

/** Claude that another company serves. */
export function isHostedElsewhere<P extends Pick<Provider, "wire" | "auth">>(
  provider: P,
): provider is P & { readonly auth: "vertex" | "bedrock" } {
  return provider.wire === "anthropic" && (provider.auth === "vertex" || provider.auth === "bedrock");
}

/** A login while a provider is used. It can be logged without showing a secret. */
export interface CredentialSource {
  /** For messages. */
  readonly source: string;
  /** The only address it may be sent to, where the configuration must not choose it. */
  readonly baseUrl?: string | undefined;
  /** What to send with a request now. Throws `auth.*` when there is nothing to send. */
  headers(wire: WireName, signal: AbortSignal, outgoing: Outgoing): Promise<Readonly<Record<string, string>>>;
  /** Where a request goes now, when the login names it; called after `headers`. */
  readonly address?: (() => string | undefined) | undefined;
  /** The last one was refused; true when there is another to send. */
  renew(signal: AbortSignal): Promise<boolean>;
  /** Everything it has returned so far. */
  secrets(): readonly string[];
  /** From now on the listener gets each secret before it is used. */
  readonly onSecrets?: ((listener: SecretListener) => void) | undefined;
}

export type SecretListener = (secrets: readonly string[]) => void;

/** A request as it will be sent, for signatures and headers that depend on it. */
export interface Outgoing {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** It continues work, without new input of the user. */
  readonly isFollowUp?: boolean;
  readonly hasImages?: boolean;
}

/** A provider with its own tokens takes no key: a variable that happens to be set is not sent instead. */
export function takesKey(auth: ProviderAuth | undefined): boolean {
  return auth === undefined || auth.type === "api-key" || auth.type === "bedrock";
}

/** Credentials that are not stored: the machine provides them when a request needs them. */
export function isAmbient(auth: ProviderAuth | undefined): auth is CommandAuth | VertexAuth | BedrockAuth {
  return auth?.type === "command" || auth?.type === "vertex" || auth?.type === "bedrock";
}

/** Vertex AI and Bedrock have no list at the address of their models, nor has an address that is for one model. */
export function listsModels({ auth, baseUrl }: Pick<Provider, "auth" | "baseUrl">): boolean {
  return auth !== "vertex" && auth !== "bedrock" && !baseUrl.includes("{model}");
}

/** The address of a provider that is found by project, location or region; undefined for every other. */
export function hostedUrl(
  { id, wire, auth }: Pick<ProviderConfig, "id" | "wire" | "auth">,
  env: Environment,
): string | undefined {
  if (auth?.type === "vertex") {
    const project = auth.project ?? firstSet(env, ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"]);
    const location = auth.location ?? firstSet(env, ["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]) ?? "global";
    const named = (key: string, value: string | undefined): string =>
      word({ id, kind: "vertex", key, variable: `GOOGLE_CLOUD_${key.toUpperCase()}` }, value);
    const where = `projects/${named("project", project)}/locations/${named("location", location)}`;
    return `https://${vertexHost(location)}/v1/${where}/publishers/${wire === "anthropic" ? "anthropic" : "google"}`;
  }
  if (auth?.type !== "bedrock") return undefined;
  const given = auth.region ?? firstSet(env, ["AWS_REGION", "AWS_DEFAULT_REGION"]);
  const region = word({ id, kind: "bedrock", key: "region", variable: "AWS_REGION" }, given);
  return `https://bedrock-runtime.${region}.amazonaws.com${wire === "anthropic" ? "" : "/openai/v1"}`;
}

function vertexHost(location: string): string {
  if (location === "global") return "aiplatform.googleapis.com";
  // Several regions together have hosts of another form than one.
  return location.includes("-") ? `${location}-aiplatform.googleapis.com` : `aiplatform.${location}.rep.googleapis.com`;
}

type Wanted = Readonly<Record<"id" | "kind" | "key" | "variable", string>>;

/** A safe part of a host name or a path. */
function word({ id, kind, key, variable }: Wanted, value: string | undefined): string {
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

/** https, or http on this machine; without credentials. */
export function isSafeUrl({ protocol, hostname, username, password }: URL): boolean {
  const isPlain = username === "" && password === "";
  return isPlain && (protocol === "https:" || (protocol === "http:" && THIS_MACHINE.includes(hostname)));
}

export const THIS_MACHINE: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/** Tokens are sent over TLS, or to this machine. */
export function requireSafeUrl(id: string, text: string): string {
  const url = new URL(text);
  if (isSafeUrl(url)) return text;
  const message = `provider ${id}: a token is sent only to https addresses, not to ${url.protocol}//`;
  throw new HeddleError("config.invalid", message);
}

function firstSet(env: Environment, names: readonly string[]): string | undefined {
  return names.map((name) => env[name]?.trim()).find((value) => value !== undefined && value !== "");
}
