/**
 * Accounts, as every door uses them: who is logged in where, by what, and how to change that. Secrets go in and never come
 * out: statuses and logins under way name accounts, addresses and words to type, nothing that opens anything.
 */
import { HeddleError } from "@heddle/protocol";
import { DEFAULT_PROFILE, LOCAL_OWNER, type Credential, type CredentialKey } from "./auth/credential.ts";
import { usableCopilot } from "./auth/copilot.ts";
import type { Clock } from "./auth/device-login.ts";
import { openaiIssuer, revokeToken, type Issuer } from "./auth/issuer.ts";
import type { LoginState } from "./auth/login-book.ts";
import { createLogins, type StartedLogin } from "./auth/logins.ts";
import { loginCommand, usableOAuth } from "./auth/refresh.ts";
import { keySource } from "./auth/sources.ts";
import { storeFor } from "./auth/chosen-store.ts";
import type { CredentialStore } from "./auth/store.ts";
import { isAmbient, takesKey, type CredentialSource } from "./provider-auth.ts";
import type { ProviderConfig } from "./providers.ts";
import { accountStatus, programStatus, type AccountStatus } from "./registry/account-status.ts";
import { clientOf, copilotPlacesOf, provideFrom, type Book } from "./registry/book.ts";
import { listModels, type ModelListing } from "./registry/catalogs.ts";
import { openModelCache } from "./registry/model-cache.ts";
import { createRegistry, modelEntries, type ModelProviderEntry, type Registry } from "./registry/registry.ts";

export { DEFAULT_PROFILE, LOCAL_OWNER } from "./auth/credential.ts";
export type { LoginState } from "./auth/login-book.ts";
export type { StartedLogin } from "./auth/logins.ts";
export { openMcpAccounts, type McpAccounts, type McpAccountsOptions, type StartedMcpLogin } from "./mcp-accounts.ts";
export type { AccountStatus } from "./registry/account-status.ts";
export { offerOf, type ModelListing } from "./registry/catalogs.ts";
export { createRegistry, type ProviderEntry, type Registry } from "./registry/registry.ts";
export { parseSelector, selectModel, type Selection } from "./registry/selector.ts";
export { usableProviders } from "./registry/usable.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface AccountsOptions {
  /** Heddle's home. */
  readonly home: string;
  readonly env: Environment;
  readonly configs: readonly ProviderConfig[];
  /** Whose accounts; a server with several people opens one for each. */
  readonly owner?: string;
  /** Hears every secret before it can be used, so that whoever keeps a record can leave it out. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
  /** For tests. */
  readonly ports?: readonly number[];
  readonly clock?: Clock;
}

/** An account: a provider and, where there are several, which one. */
export interface AccountName {
  readonly provider: string;
  readonly profile?: string | undefined;
}

export type StoredAccount = Pick<Credential, "type" | "provider" | "profile" | "health">;

export interface Accounts extends AsyncDisposable {
  readonly registry: Registry;
  /** Every model provider and every stored profile; `programs` also asks the vendors' own programs. */
  list(options?: {
    readonly validate?: boolean;
    readonly programs?: boolean;
    readonly signal?: AbortSignal;
  }): Promise<readonly AccountStatus[]>;
  status(
    name: AccountName,
    options?: { readonly validate?: boolean; readonly signal?: AbortSignal },
  ): Promise<AccountStatus>;
  saveKey(name: AccountName, key: string): Promise<AccountStatus>;
  startLogin(name: AccountName, method: "browser" | "device"): Promise<StartedLogin>;
  loginState(loginId: string): LoginState;
  /** Resolves when the login has ended, however. */
  loginEnded(loginId: string): Promise<LoginState>;
  pasteLogin(loginId: string, text: string): void;
  cancelLogin(loginId: string): Promise<LoginState>;
  /** Renews a login now. */
  refresh(name: AccountName, signal?: AbortSignal): Promise<AccountStatus>;
  /** Revokes what can be revoked, then removes this entry and no other. */
  logout(name: AccountName): Promise<{ readonly wasLoggedIn: boolean; readonly isRevoked: boolean }>;
  models(options?: {
    readonly provider?: string | undefined;
    readonly isForced?: boolean;
    readonly signal?: AbortSignal;
  }): Promise<readonly ModelListing[]>;
  /** What the store holds of this owner, without anything that opens anything. */
  stored(): Promise<readonly StoredAccount[]>;
  /** The entry of a provider with its stored login; as it is where nothing is stored. `auth.*` where that cannot be used. */
  provide(provider: string): Promise<ProviderConfig>;
}

export function openAccounts(options: AccountsOptions): Accounts {
  const { env, owner = LOCAL_OWNER } = options;
  const registry = createRegistry(options.configs, options.home);
  const issuer = openaiIssuer(env);
  const store = storeFor(options);
  const logins = createLogins({ store, issuer, ports: options.ports, clock: options.clock });
  const book: Book = { ...options, owner, registry, issuer, store };
  const keyOf = ({ provider, profile }: AccountName): CredentialKey => {
    const entry = registry.model(provider);
    return { owner, provider: entry.id, profile: profile ?? entry.config.account ?? DEFAULT_PROFILE };
  };
  const status: Accounts["status"] = async (name, asked = {}) => {
    const key = keyOf(name);
    return accountStatus({ book, entry: registry.model(name.provider), profile: key.profile, ...asked });
  };
  return {
    registry,
    status,
    list: (asked = {}) => listAll(book, asked),
    async saveKey(name, key) {
      const entry = registry.model(name.provider);
      await store.change(keyOf(name), () => keyCredential(entry.config, keyOf(name), key));
      return status(name);
    },
    async startLogin(name, method) {
      const entry = registry.model(name.provider);
      if (!entry.authMethods.includes(method)) throw noSuchMethod(entry, method);
      if (entry.config.auth?.type === "copilot") return logins.startCopilot(keyOf(name), copilotPlacesOf(entry.config));
      return logins.start(keyOf(name), method);
    },
    loginState: (loginId) => logins.state(loginId),
    loginEnded: (loginId) => logins.ended(loginId),
    pasteLogin: (loginId, text) => logins.paste(loginId, text),
    cancelLogin: (loginId) => logins.cancel(loginId),
    async refresh(name, signal = AbortSignal.timeout(60_000)) {
      const { config } = registry.model(name.provider);
      const how = { store, key: keyOf(name), signal, isForced: true };
      if (config.auth?.type === "copilot") await usableCopilot({ ...how, places: copilotPlacesOf(config) });
      else await usableOAuth({ ...how, issuer });
      return status(name);
    },
    async logout({ provider, profile = DEFAULT_PROFILE }) {
      // Of a disabled provider too: what is kept of it can always be removed.
      return logout(store, issuer, { owner, provider: registry.find(provider).id, profile });
    },
    async models({ provider, isForced, signal = AbortSignal.timeout(30_000) } = {}) {
      const wanted = provider === undefined ? await everyModelEntry(book) : [registry.model(provider)];
      return Promise.all(wanted.map((entry) => modelsOf(book, entry, { isForced, signal })));
    },
    async stored() {
      const own = (await store.list()).filter((entry) => entry.owner === owner && entry.type !== "mcpOauth");
      return own.map(({ type, provider, profile, health }) => ({ type, provider, profile, health }));
    },
    async provide(provider) {
      const entry = registry.model(provider);
      return provideFrom(book, entry, entry.config.account ?? DEFAULT_PROFILE);
    },
    [Symbol.asyncDispose]: () => logins[Symbol.asyncDispose](),
  };
}

/** What an entry that was provided sends. */
export function sourceOf({ id, key, credential, auth }: ProviderConfig): CredentialSource {
  if (key !== undefined) return keySource({ auth }, key);
  if (credential !== undefined) return credential;
  throw new HeddleError("auth.missing", `not logged in at ${id}; log in with: ${loginCommand(id, DEFAULT_PROFILE)}`);
}

async function everyModelEntry({ registry, store }: Book): Promise<readonly ModelProviderEntry[]> {
  // What is wrong with the store is told for each provider that needs it.
  const stored = await store.list().catch((error: unknown) => {
    if (error instanceof HeddleError) return [];
    throw error;
  });
  return modelEntries(registry, stored).filter(({ isEnabled }) => isEnabled);
}

function keyCredential(config: ProviderConfig, key: CredentialKey, text: string): Credential {
  const value = text.trim();
  const origin = URL.parse(config.baseUrl ?? "")?.origin;
  if (origin === undefined && takesKey(config.auth) && config.isLoginOnly !== true && config.auth?.type !== "bedrock") {
    throw new HeddleError(
      "usage.invalid",
      `first set the address of ${config.name ?? config.id} is: heddle config set model_providers.${config.id}.base_url ADDRESS`,
    );
  }
  if (config.isLoginOnly === true || origin === undefined || isAmbient(config.auth)) {
    throw new HeddleError(
      "usage.invalid",
      `${config.name ?? config.id} takes no key; log in with: ${loginCommand(key.provider, key.profile)}`,
    );
  }
  if (!/^[\u0021-\u007e]{1,8192}$/.test(value)) {
    throw new HeddleError(
      "usage.invalid",
      "this is not a key: a key is one string without spaces or control characters",
    );
  }
  return { type: "apiKey", v: 1, ...key, savedAt: new Date().toISOString(), health: "ok", origin, key: value };
}

function noSuchMethod({ id, name, authMethods }: ModelProviderEntry, method: string): HeddleError {
  const how = authMethods.includes("apiKey") ? `heddle login ${id} --api-key-stdin` : authMethods.join(", ");
  return new HeddleError("usage.invalid", `${name} has no login by ${method}; it has: ${how}`);
}

async function logout(
  store: CredentialStore,
  issuer: Issuer,
  key: CredentialKey,
): Promise<{ readonly wasLoggedIn: boolean; readonly isRevoked: boolean }> {
  let wasLoggedIn = false;
  let isRevoked = false;
  await store.change(key, async (entry) => {
    wasLoggedIn = entry !== undefined;
    if (entry?.type === "oauth" && entry.issuer === issuer.url) {
      const token = entry.refreshToken ?? entry.accessToken;
      const kind = entry.refreshToken === undefined ? "access_token" : "refresh_token";
      // At its best: whoever wants to be logged out here is, whatever the issuer says.
      isRevoked = await revokeToken(issuer, token, kind, AbortSignal.timeout(5_000)).catch(() => false);
    }
    return undefined;
  });
  return { wasLoggedIn, isRevoked };
}

async function listAll(
  book: Book,
  options: { readonly validate?: boolean; readonly programs?: boolean; readonly signal?: AbortSignal },
): Promise<readonly AccountStatus[]> {
  const stored = (await book.store.list()).filter(({ owner }) => owner === book.owner);
  const statuses = modelEntries(book.registry, stored).flatMap((entry) => {
    const used = entry.config.account ?? DEFAULT_PROFILE;
    const profiles = stored.filter(({ provider }) => provider === entry.id).map(({ profile }) => profile);
    return [...new Set([used, ...profiles])].map((profile) => accountStatus({ book, entry, profile, ...options }));
  });
  const programs = book.registry.entries.filter((entry) => entry.kind === "runner");
  const asked = options.programs === true ? programs.map((entry) => programStatus(entry, book.env)) : [];
  return Promise.all([...statuses, ...asked]);
}

async function modelsOf(
  book: Book,
  entry: ModelProviderEntry,
  { isForced, signal }: { readonly isForced: boolean | undefined; readonly signal: AbortSignal },
): Promise<ModelListing> {
  const { client, problem } = await clientOf(book, entry).then(
    (found) => ({ client: found, problem: undefined }),
    (error: unknown) => {
      if (!(error instanceof HeddleError)) throw error;
      return { client: undefined, problem: { code: error.code, message: error.message } };
    },
  );
  const cache = openModelCache(book.home);
  const listing = await listModels({ config: entry.config, client, owner: book.owner, cache, isForced, signal });
  return problem === undefined ? listing : { ...listing, problem };
}
