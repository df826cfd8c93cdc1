/**
 * A provider is a base URL, a way to authenticate and a wire. A config entry with the id of a built-in one changes only
 * what it names. A resolved provider hides its key: it can be logged and serialised safely.
 */
import { callerName, defined, HeddleError } from "@heddle/protocol";
import { BUILT_IN_PROVIDERS } from "./built-in-providers.ts";
import { catalogProvider, openLookup, type CatalogLookup } from "../catalog/lookup.ts";
import { heddleHome } from "../home.ts";
import {
  hostedUrl,
  isAmbient,
  requireSafeUrl,
  takesKey,
  type CredentialSource,
  type Environment,
  type ProviderAuth,
} from "./provider-auth.ts";
import type { Rates } from "../catalog/price.ts";
import { resolveScript, type Script } from "../scripted/script.ts";

export { BUILT_IN_PROVIDERS };

export const WIRES = ["openai-responses", "openai-chat", "anthropic", "gemini", "scripted"] as const;
export type WireName = (typeof WIRES)[number];

export interface Limits {
  /** How often an answer is requested, the first time included. */
  readonly maxAttempts: number;
  /** How often the request is sent each time, until an answer begins: after no connection and statuses from 500 on. */
  readonly requestAttempts: number;
  readonly retryBaseMs: number;
  /** Name lookup, TCP and TLS. */
  readonly connectTimeoutMs: number;
  /** From the start of the request to the first byte of the answer's body. */
  readonly firstByteTimeoutMs: number;
  /** Silence between two bytes. */
  readonly idleTimeoutMs: number;
  /** How long bytes without content (comments, pings, half an event) keep an answer alive. */
  readonly keepAliveTimeoutMs: number;
}

/** What a configuration and a resolved provider have in common. */
interface ProviderFacts {
  readonly id: string;
  /** Whose price list applies. A gateway with prices of its own has none. */
  readonly vendor?: "openai" | "anthropic" | "gemini" | undefined;
  /** Which tool names its models know, when their own names do not tell. */
  readonly family?: "openai" | "anthropic" | "gemini" | "other" | undefined;
  /** What models cost according to the owner; used before any list. */
  readonly prices?: Readonly<Record<string, Rates>> | undefined;
  /** A login that changes while it is used; used where there is no key. */
  readonly credential?: CredentialSource | undefined;
}

/** One entry of the user's configuration; its reader checks the form. */
export interface ProviderConfig extends ProviderFacts, Readonly<Partial<Record<keyof Limits, number | undefined>>> {
  readonly name?: string | undefined;
  readonly wire?: WireName | undefined;
  /** May have a path and a query; both are kept. `{model}` in it is replaced by the model of the request. */
  readonly baseUrl?: string | undefined;
  /** Where a key in the wire's own header is not how it authenticates. */
  readonly auth?: ProviderAuth | undefined;
  /** The variable that holds the key; the first of several that is set. */
  readonly envKey?: string | readonly string[] | undefined;
  /** It is sent the key of OpenAI; where there is none, it is sent none. */
  readonly usesOpenAiKey?: boolean | undefined;
  /** The key itself, from another store. */
  readonly key?: string | undefined;
  /** Where that key is from, for messages. */
  readonly keyFrom?: string | undefined;
  /** False: known, but refused. */
  readonly isEnabled?: boolean | undefined;
  /** Takes no key, only a login, which is sent only to its own address. */
  readonly isLoginOnly?: boolean | undefined;
  /** Which of several stored accounts. */
  readonly account?: string | undefined;
  readonly adoptsCodexLogin?: boolean | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Header name to variable name; a variable that is not set sends no header. */
  readonly envHeaders?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** For the wire `scripted`: the script itself, or a file that holds it as JSON. */
  readonly script?: Script | undefined;
  readonly scriptFile?: string | undefined;
}

export interface Provider extends ProviderFacts {
  readonly name: string;
  readonly wire: WireName;
  readonly baseUrl: string;
  readonly auth?: ProviderAuth["type"] | undefined;
  readonly query: Readonly<Record<string, string>>;
  readonly limits: Limits;
  readonly catalog?: CatalogLookup | undefined;
  /** Where the key came from, for messages: a variable's name. */
  readonly keySource?: string | undefined;
  /** The program that runs Heddle, as it says in the environment; before the `caller` of a request. */
  readonly caller?: string | undefined;
  /** Configured headers and, unless they already authenticate, the wire's own authentication. */
  headers(): Record<string, string>;
  /** Removes every secret of this provider from a text. */
  redact(text: string): string;
  /** Reads and checks the script of a `scripted` provider. */
  script(): Promise<Script>;
}

const MAX_ATTEMPTS = 101;
/** For one answer, whatever is configured. */
const MAX_REQUESTS = 1000;

/** Requests for one answer, the first included. */
export function maxRequests({ maxAttempts, requestAttempts }: Limits): number {
  return Math.min(MAX_REQUESTS, maxAttempts * requestAttempts);
}

/** The longest time of a timer; a longer one would fire at once. */
const MAX_TIMEOUT_MS = 2_147_483_647;

/** Finds a provider and its key. Fails before anything is sent: `provider.unknown`, `config.invalid`, `auth.missing`. */
export function resolveProvider(configs: readonly ProviderConfig[], id: string, env: Environment): Provider {
  const home = heddleHome(env);
  const config = findConfig(configs, id, home);
  const { wire, name = id } = config;
  if (wire === undefined) throw invalid(id, "wire", `one of ${WIRES.join(", ")} is needed`);
  requireEnabled(config, name);
  if (config.auth?.type === "copilot" && config.isLoginOnly !== true)
    throw invalid(id, "auth", "the type copilot is only for the provider copilot; use that one");
  const ownUrl = config.isLoginOnly === true ? pinnedBaseUrl(configs, config) : config.baseUrl;
  const baseUrl = wire === "scripted" ? "" : checkBaseUrl(id, ownUrl ?? hostedUrl(config, env));
  if (isAmbient(config.auth)) requireSafeUrl(id, baseUrl);
  const key = findKey(config, name, env);
  const credential = key === undefined ? config.credential : undefined;
  const configured = configuredHeaders(config, env);
  const secrets = collectSecrets(key?.value, configured, config.query ?? {});
  return {
    id,
    name,
    wire,
    baseUrl,
    auth: config.auth?.type,
    query: config.query ?? {},
    vendor: config.vendor,
    family: config.family,
    prices: config.prices,
    limits: limitsOf(config),
    catalog: openLookup({ home, id, baseUrl, account: config.account }),
    keySource: key?.source ?? credential?.source,
    // Libraries that are written for Codex name themselves so.
    caller: callerName(env["CODEX_INTERNAL_ORIGINATOR_OVERRIDE"]),
    credential,
    headers: () => ({ ...(key === undefined ? {} : authHeader(wire, key.value, config.auth)), ...configured }),
    redact: (text) =>
      [...(credential?.secrets() ?? []), ...secrets].reduce(
        (rest, secret) => rest.replaceAll(secret, "[redacted]"),
        text,
      ),
    script: () => resolveScript(id, config),
  };
}

function requireEnabled({ id, isEnabled }: ProviderConfig, name: string): void {
  if (isEnabled !== false) return;
  throw new HeddleError(
    "provider.disabled",
    `${name} is disabled; enable it with: heddle config set model_providers.${id}.enabled true`,
    { details: { provider: id } },
  );
}

/** A login is sent only to its vendor; the configuration cannot name another address. */
export function pinnedBaseUrl(configs: readonly ProviderConfig[], config: ProviderConfig): string | undefined {
  if (configs.some(({ id, baseUrl }) => id === config.id && baseUrl !== undefined)) {
    throw invalid(config.id, "base_url", "a login is never sent to another address; leave base_url out");
  }
  return config.credential?.baseUrl ?? config.baseUrl;
}

/**
 * The effective entry: the built-in one, or that of the catalog in this home, with the changes of the configuration. An
 * entry with an address of its own takes nothing from the catalog: those keys belong to the catalog's address.
 */
export function findConfig(configs: readonly ProviderConfig[], id: string, home: string): ProviderConfig {
  const own = configs.find((config) => config.id === id);
  const builtIn = BUILT_IN_PROVIDERS.find((config) => config.id === id);
  const known =
    builtIn ?? (own?.baseUrl === undefined ? catalogProvider(home, id, otherVariables(configs, id)) : undefined);
  const headers = { ...known?.headers, ...own?.headers };
  const entry = { ...known, ...defined(own ?? {}), id };
  if (known !== undefined || own !== undefined)
    return Object.keys(headers).length === 0 ? entry : { ...entry, headers };
  const ids = [...new Set([...configs, ...BUILT_IN_PROVIDERS].map((config) => config.id))].sort();
  throw new HeddleError(
    "provider.unknown",
    `there is no provider "${id}"; known are ${ids.join(", ")}, and those of: heddle models --all`,
  );
}

/** Variables that the configuration gives to other providers. */
function otherVariables(configs: readonly ProviderConfig[], id: string): ReadonlySet<string> {
  const others = configs.filter((config) => config.id !== id);
  return new Set(others.flatMap(({ envKey = [], envHeaders = {} }) => [envKey, Object.values(envHeaders)].flat(2)));
}

function checkBaseUrl(id: string, baseUrl: string | undefined): string {
  if (baseUrl === undefined)
    throw invalid(id, "base_url", `it is needed; write heddle config set model_providers.${id}.base_url ADDRESS`);
  const url = URL.parse(baseUrl);
  if (url === null) throw invalid(id, "base_url", `"${baseUrl}" is not a URL`);
  // Checked before the text is quoted: the part before the @ is a secret.
  if (url.username !== "" || url.password !== "")
    throw invalid(id, "base_url", "it holds credentials; use http_headers or env_key");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw invalid(id, "base_url", `"${baseUrl}" is not http or https`);
  return baseUrl;
}

interface Key {
  readonly value: string;
  readonly source: string;
}

function findKey(config: ProviderConfig, name: string, env: Environment): Key | undefined {
  const { id, envKey, keyFrom: source = "the configuration" } = config;
  const isOfMachine = isAmbient(config.auth);
  if (config.key !== undefined && !isOfMachine) return checkedKey({ value: config.key.trim(), source }, id);
  const variable = config.isLoginOnly === true && !isOfMachine ? undefined : keyVariable(config, env);
  if (variable !== undefined) return checkedKey({ value: env[variable]?.trim() ?? "", source: variable }, id);
  const mayLackKey = envKey === undefined || config.usesOpenAiKey === true;
  const needsNone = mayLackKey && config.isLoginOnly !== true && !isOfMachine;
  if (config.credential !== undefined || needsNone) return undefined;
  if (isOfMachine) throw missing(id, `${name} needs credentials of this machine; heddle accounts says which`);
  if (config.isLoginOnly === true) throw missing(id, `${name} needs a login: heddle login ${id}`);
  const wanted = [envKey ?? []].flat().join(" or ");
  const way = wanted === "" ? "" : `set the environment variable ${wanted}, or `;
  throw missing(id, `${name} needs a key: ${way}store one with: heddle login ${id}`, { variable: wanted });
}

function missing(provider: string, message: string, details: Readonly<Record<string, string>> = {}): HeddleError {
  return new HeddleError("auth.missing", message, { details: { provider, ...details } });
}

/** The variable that holds this provider's key now. */
export function keyVariable(
  { envKey = [], auth }: Pick<ProviderConfig, "envKey" | "auth">,
  env: Environment,
): string | undefined {
  if (!takesKey(auth)) return undefined;
  // A key from a file often ends with a line break.
  return [envKey].flat().find((variable) => (env[variable]?.trim() ?? "") !== "");
}

function checkedKey(key: Key, id: string): Key {
  if (/^[\u0021-\u007e]+$/.test(key.value)) return key;
  throw invalid(id, "key", `the key in ${key.source} has characters that are not allowed in a key`);
}

function configuredHeaders(config: ProviderConfig, env: Environment): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(config.headers ?? {})) headers[name.toLowerCase()] = value;
  for (const [name, variable] of Object.entries(config.envHeaders ?? {})) {
    const value = env[variable]?.trim() ?? "";
    if (value !== "") headers[name.toLowerCase()] = value;
  }
  for (const [name, value] of Object.entries(headers)) {
    const isName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name);
    // oxlint-disable-next-line no-control-regex -- a header with a line end would smuggle in another
    if (!isName || /[^\t\u0020-\u007e\u0080-\u00ff]/.test(value))
      throw invalid(config.id, `headers.${name}`, "it is not a valid header");
  }
  return headers;
}

export function authHeader(wire: WireName, key: string, auth?: ProviderAuth): Record<string, string> {
  if (auth?.type === "api-key") return { [auth.header.toLowerCase()]: key };
  if (auth?.type === "bedrock") return { authorization: `Bearer ${key}` };
  if (wire === "anthropic") return { "x-api-key": key };
  if (wire === "gemini") return { "x-goog-api-key": key };
  return { authorization: `Bearer ${key}` };
}

const SECRET_NAME = /auth|key|token|secret|cookie|password|signature/i;
/** Shorter values would hide ordinary words. */
const MIN_SECRET_CHARS = 6;

/** Longest first, so that a key inside a header value does not leave the rest of the header behind. */
function collectSecrets(
  key: string | undefined,
  headers: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): string[] {
  const named = [...Object.entries(headers), ...Object.entries(query)].filter(([name]) => SECRET_NAME.test(name));
  const values = named.flatMap(([, value]) => [value, ...value.split(/\s+/), encodeURIComponent(value)]);
  const secrets = [...(key === undefined ? [] : [key, encodeURIComponent(key)]), ...values];
  return [...new Set(secrets)]
    .filter((value) => value.length >= MIN_SECRET_CHARS || value === key)
    .sort((a, b) => b.length - a.length);
}

function limitsOf(config: ProviderConfig): Limits {
  const limit = (name: keyof Limits, fallback: number): number => {
    const value = config[name] ?? fallback;
    const max = name === "maxAttempts" || name === "requestAttempts" ? MAX_ATTEMPTS : MAX_TIMEOUT_MS;
    if (Number.isSafeInteger(value) && value > 0 && value <= max) return value;
    throw invalid(config.id, name, `${value} is not a whole number from 1 to ${max}`);
  };
  const idleTimeoutMs = limit("idleTimeoutMs", 60_000);
  return {
    maxAttempts: limit("maxAttempts", 6),
    requestAttempts: limit("requestAttempts", 5),
    retryBaseMs: limit("retryBaseMs", 200),
    connectTimeoutMs: limit("connectTimeoutMs", 15_000),
    firstByteTimeoutMs: limit("firstByteTimeoutMs", 120_000),
    idleTimeoutMs,
    keepAliveTimeoutMs: limit("keepAliveTimeoutMs", Math.max(300_000, idleTimeoutMs)),
  };
}

function invalid(id: string, field: string, why: string): HeddleError {
  return new HeddleError("config.invalid", `provider ${id}: ${field}: ${why}`, { details: { provider: id, field } });
}
