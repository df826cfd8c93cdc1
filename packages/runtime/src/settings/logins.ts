/**
 * Keys and logins that are not in the environment: Heddle's own store, then the key Codex was logged in with. A run that finds
 * its key in the environment loads nothing of the store; that is why everything it needs is imported where it is used.
 */
import {
  BUILT_IN_PROVIDERS,
  findConfig,
  isAmbient,
  keyVariable,
  resolveProvider,
  type CredentialSource,
  type ProviderConfig,
  type SecretListener,
} from "@heddle/models";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { heddleHome } from "../config/read-config.ts";

type Configs = readonly ProviderConfig[];

/** Receives every secret that is read from the store, before it is used. */
export type OnSecrets = ((secrets: readonly string[]) => void) | undefined;

/** The entries with the login of one provider, where it needs one and the environment has none. */
export async function withLogin(
  configs: Configs,
  providerId: string,
  env: NodeJS.ProcessEnv,
  onSecrets?: OnSecrets,
): Promise<Configs> {
  if (!needsLogin(configs, providerId, env)) return configs;
  const { openAccounts } = await import("@heddle/models/accounts");
  await using accounts = openAccounts({ home: heddleHome(env), env, configs, onSecrets });
  const { key, keyFrom, credential } = await accounts.provide(
    sharesKey(configs, providerId, env) ? "openai" : providerId,
  );
  if (key !== undefined) return withEntry(configs, { id: providerId, key, keyFrom });
  if (credential !== undefined) return withEntry(configs, { id: providerId, credential });
  return await withCodexKey(configs, providerId, env);
}

/** The same for every provider, each when its first request needs it: which one that will be is not known yet. */
export function withLazyLogins(configs: Configs, env: NodeJS.ProcessEnv, onSecrets?: OnSecrets): Configs {
  const ids = [...new Set([...BUILT_IN_PROVIDERS, ...configs].map(({ id }) => id))];
  return ids
    .filter((id) => needsLogin(configs, id, env))
    .reduce(
      (entries, id) => withEntry(entries, { id, credential: lazySource(configs, id, { env, onSecrets }) }),
      configs,
    );
}

function lazySource(
  configs: Configs,
  id: string,
  { env, onSecrets }: { readonly env: NodeJS.ProcessEnv; readonly onSecrets: OnSecrets },
): CredentialSource {
  let found: CredentialSource | undefined;
  const listeners: SecretListener[] = [];
  const source = async (): Promise<CredentialSource> => {
    const { sourceOf } = await import("@heddle/models/accounts");
    const entries = await withLogin(configs, id, env, onSecrets);
    // Says what is missing: a variable, or a login.
    resolveProvider(entries, id, env);
    if (found !== undefined) return found;
    const entry = findConfig(entries, id, heddleHome(env));
    const isKeyless = entry.usesOpenAiKey === true && entry.key === undefined && entry.credential === undefined;
    found = isKeyless ? NO_KEY : sourceOf(entry);
    for (const listener of listeners) found.onSecrets?.(listener);
    return found;
  };
  return {
    source: "the stored login",
    headers: async (wire, signal, outgoing) => (await source()).headers(wire, signal, outgoing),
    address: () => found?.address?.(),
    renew: async (signal) => (await source()).renew(signal),
    secrets: () => found?.secrets() ?? [],
    onSecrets(listener) {
      listeners.push(listener);
      found?.onSecrets?.(listener);
    },
  };
}

const NO_KEY: CredentialSource = {
  source: "no key",
  headers: async () => ({}),
  renew: async () => false,
  secrets: () => [],
};

function needsLogin(configs: Configs, id: string, env: NodeJS.ProcessEnv): boolean {
  const config = findConfig(configs, id, heddleHome(env));
  if (config.isEnabled === false || config.key !== undefined || config.credential !== undefined) return false;
  if (config.isLoginOnly === true) return true;
  if (isAmbient(config.auth)) return keyVariable(config, env) === undefined;
  const mayBeStored = config.envKey !== undefined || config.account !== undefined;
  return mayBeStored && keyVariable(config, env) === undefined;
}

function withEntry(configs: Configs, entry: ProviderConfig): Configs {
  const own = configs.find(({ id }) => id === entry.id);
  return [...configs.filter(({ id }) => id !== entry.id), { ...own, ...entry }];
}

function sharesKey(configs: Configs, id: string, env: NodeJS.ProcessEnv): boolean {
  return findConfig(configs, id, heddleHome(env)).usesOpenAiKey === true;
}

/** The key Codex was logged in with, where OpenAI itself is asked, or who is to be sent its key. */
async function withCodexKey(configs: Configs, providerId: string, env: NodeJS.ProcessEnv): Promise<Configs> {
  const isOpenAi = providerId === "openai" && configs.find(({ id }) => id === "openai")?.baseUrl === undefined;
  if (!isOpenAi && !sharesKey(configs, providerId, env)) return configs;
  const login = await (await import("./codex-login.ts")).codexLogin(env);
  if (login.kind === "none") return configs;
  if (login.kind === "account") {
    throw new HeddleError(
      "auth.missing",
      "Codex is logged in with a ChatGPT account, which only Codex itself may use; Heddle needs a key: set the environment variable OPENAI_API_KEY",
    );
  }
  return withEntry(configs, { id: providerId, key: login.key, keyFrom: "Codex's login" });
}

/** `provider:model`; undefined when no provider is named before the colon. */
export async function selectedModel(
  configs: Configs,
  text: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly provider: string; readonly model: string } | undefined> {
  if (!text.includes(":")) return undefined;
  const { createRegistry, parseSelector } = await import("@heddle/models/accounts");
  const { provider, model } = parseSelector(createRegistry(configs, heddleHome(env)), text);
  return provider === undefined ? undefined : { provider, model };
}

/**
 * Who answers when neither a provider nor a model is named. OpenAI, as with Codex, where the environment or Codex has a key
 * for it. Otherwise the only provider that can be used, said aloud; of several, none is chosen. undefined: the usual way.
 */
export async function chooseUnnamed(
  configs: Configs,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly provider: string; readonly note: string } | undefined> {
  const isOpenAiConfigured = configs.some(({ id }) => id === "openai");
  if (isOpenAiConfigured || !needsLogin(configs, "openai", env)) return undefined;
  if ((await (await import("./codex-login.ts")).codexLogin(env)).kind === "key") return undefined;
  const { openAccounts, usableProviders } = await import("@heddle/models/accounts");
  await using accounts = openAccounts({ home: heddleHome(env), env, configs });
  const usable = usableProviders(configs, env, await accounts.stored().catch(ignoreStore));
  const [only, second] = usable;
  if (only === undefined || (only === "openai" && second === undefined)) return undefined;
  if (second === undefined)
    return { provider: only, note: `no provider is configured; using ${only}, the only one with a key or a login` };
  throw new HeddleError(
    "provider.configuration-required",
    `no provider is configured, and ${usable.join(", ")} could be used; choose one: heddle config set model_provider ${only}`,
  );
}

/** What is wrong with the store is reported when it is needed. */
function ignoreStore(error: unknown): [] {
  if (isHeddleError(error)) return [];
  throw error;
}
