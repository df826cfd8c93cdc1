/** How a provider gets its credential: the environment, the store, Codex's login, in this order, and never one for another. */
import { HeddleError } from "@heddle/protocol";
import { readCodexKey, usableCodexLogin } from "../auth/codex-auth.ts";
import { DEFAULT_PROFILE, type CredentialKey } from "../auth/credential.ts";
import { copilotEndpoints, type CopilotEndpoints } from "../auth/copilot.ts";
import type { Issuer } from "../auth/issuer.ts";
import { loginCommand } from "../auth/refresh.ts";
import { adoptedSource, copilotSource, oauthSource, usableKey } from "../auth/sources.ts";
import type { CredentialStore } from "../auth/store.ts";
import { isAmbient } from "../providers/provider-auth.ts";
import {
  keyVariable,
  pinnedBaseUrl,
  resolveProvider,
  type Provider,
  type ProviderConfig,
} from "../providers/providers.ts";
import type { ModelProviderEntry, Registry } from "./registry.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Book {
  readonly home: string;
  readonly env: Environment;
  readonly configs: readonly ProviderConfig[];
  readonly owner: string;
  readonly registry: Registry;
  readonly issuer: Issuer;
  readonly store: CredentialStore;
}

export async function provideFrom(
  book: Book,
  { id, config }: ModelProviderEntry,
  profile: string,
): Promise<ProviderConfig> {
  const { store, issuer, owner, env } = book;
  if (config.isLoginOnly === true) pinnedBaseUrl(book.configs, config);
  if (config.isLoginOnly === true && config.adoptsCodexLogin === true) {
    await usableCodexLogin(env);
    return { ...config, baseUrl: undefined, credential: adoptedSource(env) };
  }
  if (isAmbient(config.auth)) {
    const { ambientSource } = await import("../auth/ambient.ts");
    return { ...config, credential: await ambientSource(config, config.auth, env) };
  }
  const key: CredentialKey = { owner, provider: id, profile };
  const entry = await store.get(key);
  if (
    entry === undefined ||
    entry.type === "mcpOauth" ||
    (entry.type === "copilot") !== (config.auth?.type === "copilot")
  )
    return providedWithout(config, profile);
  if (entry.health === "reconnect_required") {
    throw new HeddleError(
      "auth.rejected",
      `the login at ${id} is no longer accepted; log in again with: ${loginCommand(id, profile)}`,
      {
        details: { provider: id, profile, health: entry.health },
      },
    );
  }
  if (entry.type === "copilot") {
    const endpoints = copilotEndpointsOf(config);
    return {
      ...config,
      baseUrl: undefined,
      credential: copilotSource({ store, endpoints, key, apiUrl: entry.apiUrl }),
    };
  }
  if (entry.type === "oauth") return { ...config, baseUrl: undefined, credential: oauthSource({ store, issuer, key }) };
  return { ...config, key: usableKey(entry, config), keyFrom: "the credential store" };
}

export function copilotEndpointsOf({ id, auth, headers }: ProviderConfig): CopilotEndpoints {
  return copilotEndpoints(id, auth?.type === "copilot" ? auth : { type: "copilot" }, headers);
}

/** An account that was named and is not there is an error; where none was named, nothing was promised. */
function providedWithout(config: ProviderConfig, profile: string): ProviderConfig {
  if (config.isLoginOnly !== true && profile === DEFAULT_PROFILE) return config;
  throw new HeddleError(
    "auth.missing",
    `not logged in at ${config.id}${profile === DEFAULT_PROFILE ? "" : ` as ${profile}`}; log in with: ${loginCommand(config.id, profile)}`,
    { details: { provider: config.id, profile } },
  );
}

/** Environment, store, Codex's key: the same order as a run has. Throws `auth.*` when there is none. */
export async function clientOf(book: Book, entry: ModelProviderEntry, profile?: string): Promise<Provider> {
  const { configs, env } = book;
  const others = configs.filter(({ id }) => id !== entry.id);
  const withConfig = (config: ProviderConfig): Provider => resolveProvider([...others, config], entry.id, env);
  if (profile === undefined && keyVariable(entry.config, env) !== undefined)
    return resolveProvider(configs, entry.id, env);
  const provided = await provideFrom(book, entry, profile ?? entry.config.account ?? DEFAULT_PROFILE);
  if (provided.key !== undefined || provided.credential !== undefined) return withConfig(provided);
  const key = isOpenAiItself(entry.config) ? await readCodexKey(env) : undefined;
  return key === undefined
    ? resolveProvider(configs, entry.id, env)
    : withConfig({ ...provided, key, keyFrom: "Codex's login" });
}

/** Codex's key is for OpenAI; another address that goes by its name does not get it. */
export function isOpenAiItself({ id, baseUrl }: ProviderConfig): boolean {
  return id === "openai" && baseUrl === "https://api.openai.com/v1";
}
