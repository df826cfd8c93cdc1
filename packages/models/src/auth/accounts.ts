/**
 * Accounts, as every door uses them: who is logged in where, how, and how to change that. Secrets go in and never come out:
 * statuses and running logins name accounts, addresses and codes to enter, nothing that opens anything.
 */
import { HeddleError } from "@heddle/protocol";
import { DEFAULT_PROFILE, LOCAL_OWNER, type Credential, type CredentialKey } from "./credential.ts";
import { usableCopilot } from "./copilot.ts";
import type { Clock } from "./device-login.ts";
import { openaiIssuer, revokeToken, type Issuer } from "./issuer.ts";
import { removeLogin, type LoginState, type RemovedLogin } from "./login-book.ts";
import { createLogins, type StartedLogin } from "./logins.ts";
import { loginCommand, usableOAuth } from "./refresh.ts";
import { keySource } from "./sources.ts";
import { storeFor } from "./chosen-store.ts";
import { isAmbient, takesKey, type CredentialSource, type Environment } from "../providers/provider-auth.ts";
import type { ProviderConfig } from "../providers/providers.ts";
import { accountStatus, programStatus, type AccountStatus, type StatusQuery } from "../registry/account-status.ts";
import { clientOf, copilotEndpointsOf, provideFrom, type Book } from "../registry/book.ts";
import { listModels, type ModelListing } from "../registry/catalogs.ts";
import { openModelCache } from "../registry/model-cache.ts";
import { createRegistry, modelEntries, type ModelProviderEntry, type Registry } from "../registry/registry.ts";

export { DEFAULT_PROFILE, LOCAL_OWNER } from "./credential.ts";
export type { LoginState } from "./login-book.ts";
export type { StartedLogin } from "./logins.ts";
export { openMcpAccounts, type McpAccounts, type McpAccountsOptions, type StartedMcpLogin } from "./mcp-accounts.ts";
export type { AccountStatus } from "../registry/account-status.ts";
export { offerOf, type ModelListing } from "../registry/catalogs.ts";
export { createRegistry, usableProviders, type ProviderEntry, type Registry } from "../registry/registry.ts";
export { parseSelector, selectModel, type Selection } from "../registry/selector.ts";

export interface AccountsOptions {
  readonly home: string;
  readonly env: Environment;
  readonly configs: readonly ProviderConfig[];
  /** Whose accounts; a server with several users opens one for each. */
  readonly owner?: string;
  /** Gets every secret before it is used, so that it can be kept out of records. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
  /** For tests. */
  readonly ports?: readonly number[];
  readonly clock?: Clock;
}

export interface AccountName {
  readonly provider: string;
  readonly profile?: string | undefined;
}

export interface ListOptions extends Pick<StatusQuery, "validate" | "signal"> {
  readonly programs?: boolean;
}

export type StoredAccount = Pick<Credential, "type" | "provider" | "profile" | "health">;

export interface Accounts extends AsyncDisposable {
  readonly registry: Registry;
  /** Every model provider and every stored profile; `programs` also asks the vendors' own programs. */
  list(options?: ListOptions): Promise<readonly AccountStatus[]>;
  status(name: AccountName, options?: Omit<ListOptions, "programs">): Promise<AccountStatus>;
  saveKey(name: AccountName, key: string): Promise<AccountStatus>;
  startLogin(name: AccountName, method: "browser" | "device"): Promise<StartedLogin>;
  loginState(loginId: string): LoginState;
  loginEnded(loginId: string): Promise<LoginState>;
  pasteLogin(loginId: string, text: string): void;
  cancelLogin(loginId: string): Promise<LoginState>;
  refresh(name: AccountName, signal?: AbortSignal): Promise<AccountStatus>;
  /** Revokes what can be revoked, then removes this entry and no other. */
  logout(name: AccountName): Promise<RemovedLogin>;
  models(options?: {
    readonly provider?: string | undefined;
    readonly isForced?: boolean;
    readonly signal?: AbortSignal;
  }): Promise<readonly ModelListing[]>;
  /** What the store holds of this owner, without secrets. */
  stored(): Promise<readonly StoredAccount[]>;
  /** The entry of a provider with its stored login, if there is one. Throws `auth.*` where that cannot be used. */
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
      if (entry.config.auth?.type === "copilot")
        return logins.startCopilot(keyOf(name), copilotEndpointsOf(entry.config));
      return logins.start(keyOf(name), method);
    },
    loginState: (loginId) => logins.state(loginId),
    loginEnded: (loginId) => logins.ended(loginId),
    pasteLogin: (loginId, text) => logins.paste(loginId, text),
    cancelLogin: (loginId) => logins.cancel(loginId),
    async refresh(name, signal = AbortSignal.timeout(60_000)) {
      const { config } = registry.model(name.provider);
      const how = { store, key: keyOf(name), signal, isForced: true };
      if (config.auth?.type === "copilot") await usableCopilot({ ...how, endpoints: copilotEndpointsOf(config) });
      else await usableOAuth({ ...how, issuer });
      return status(name);
    },
    async logout({ provider, profile = DEFAULT_PROFILE }) {
      // Of a disabled provider too: what is stored of it can always be removed.
      const key = { owner, provider: registry.find(provider).id, profile };
      return removeLogin(store, key, (entry, signal) => revoke(issuer, entry, signal));
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

export function sourceOf({ id, key, credential, auth }: ProviderConfig): CredentialSource {
  if (key !== undefined) return keySource({ auth }, key);
  if (credential !== undefined) return credential;
  throw new HeddleError("auth.missing", `not logged in at ${id}; log in with: ${loginCommand(id, DEFAULT_PROFILE)}`);
}

async function everyModelEntry({ registry, store }: Book): Promise<readonly ModelProviderEntry[]> {
  // An error of the store is reported for each provider that needs it.
  const stored = await store.list().catch((error: unknown) => {
    if (error instanceof HeddleError) return [];
    throw error;
  });
  return modelEntries(registry, stored).filter(({ isEnabled }) => isEnabled);
}

function keyCredential(config: ProviderConfig, key: CredentialKey, text: string): Credential {
  const value = text.trim();
  const origin = URL.parse(config.baseUrl ?? "")?.origin;
  const { id, name = id, auth, isLoginOnly } = config;
  const refuse = (message: string): HeddleError => new HeddleError("usage.invalid", message);
  if (origin === undefined && takesKey(auth) && isLoginOnly !== true && auth?.type !== "bedrock")
    throw refuse(`first set the address of ${name}: heddle config set model_providers.${id}.base_url ADDRESS`);
  if (isLoginOnly === true || origin === undefined || isAmbient(auth))
    throw refuse(`${name} takes no key; log in with: ${loginCommand(key.provider, key.profile)}`);
  if (!/^[\u0021-\u007e]{1,8192}$/.test(value))
    throw refuse("this is not a key: a key is one string without spaces or control characters");
  return { type: "apiKey", v: 1, ...key, savedAt: new Date().toISOString(), health: "ok", origin, key: value };
}

function noSuchMethod({ id, name, authMethods }: ModelProviderEntry, method: string): HeddleError {
  const how = authMethods.includes("apiKey") ? `heddle login ${id} --api-key-stdin` : authMethods.join(", ");
  return new HeddleError("usage.invalid", `${name} has no login by ${method}; it has: ${how}`);
}

async function revoke(issuer: Issuer, entry: Credential, signal: AbortSignal): Promise<boolean> {
  if (entry.type !== "oauth" || entry.issuer !== issuer.url) return false;
  const kind = entry.refreshToken === undefined ? "access_token" : "refresh_token";
  return revokeToken(issuer, entry.refreshToken ?? entry.accessToken, kind, signal);
}

async function listAll(book: Book, options: ListOptions): Promise<readonly AccountStatus[]> {
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
