/** What can be shown of an account, and whether its credential can be used. */
import { defined, HeddleError } from "@heddle/protocol";
import { readCodexKey, readCodexLogin } from "../auth/codex-auth.ts";
import {
  DEFAULT_PROFILE,
  type ApiKeyCredential,
  type CopilotCredential,
  type OAuthCredential,
} from "../auth/credential.ts";
import { expiryOf, isExpired } from "../auth/tokens.ts";
import { vendorStatus } from "../auth/vendor-status.ts";
import { isAmbient, listsModels, type Outgoing } from "../providers/provider-auth.ts";
import { keyVariable, type Provider } from "../providers/providers.ts";
import { clientOf, isOpenAiItself, type Book } from "./book.ts";
import { askModelList } from "./catalogs.ts";
import type { AuthMethod, ModelProviderEntry, RunnerEntry } from "./registry.ts";

export interface AccountStatus {
  readonly provider: string;
  readonly kind: "model" | "runner";
  readonly name: string;
  readonly profile: string;
  readonly isEnabled: boolean;
  readonly methods: readonly AuthMethod[];
  /** There is a credential that seems usable; after validation, one that was accepted. */
  readonly isLoggedIn: boolean;
  /** What a run would use: a variable, the store, Codex's login, the vendor's program, the machine's own credentials, nothing. */
  readonly source: "environment" | "store" | "codex" | "program" | "machine" | "none";
  /** Which of the machine's credentials: a file, a variable, a command. */
  readonly place?: string;
  /** What to do where the machine has none. */
  readonly hint?: string;
  /** The variable, where that is the source. */
  readonly variable?: string;
  /** Something is stored, but the environment wins. */
  readonly isShadowed?: boolean;
  readonly health: "ok" | "reconnect_required" | "expired" | "refused" | "unreachable" | "unknown";
  readonly isValidated: boolean;
  readonly email?: string;
  readonly plan?: string;
  readonly accountId?: string;
  readonly expiresAt?: string;
  readonly problem?: string;
}

export interface StatusQuery {
  readonly book: Book;
  readonly entry: ModelProviderEntry;
  readonly profile: string;
  readonly validate?: boolean;
  readonly signal?: AbortSignal;
}

export async function accountStatus(query: StatusQuery): Promise<AccountStatus> {
  const found = await foundStatus(query);
  if (query.validate !== true || !found.isLoggedIn || !found.isEnabled) return found;
  return validated(query, found);
}

async function foundStatus({ book, entry, profile }: StatusQuery): Promise<AccountStatus> {
  const { config } = entry;
  const base = {
    provider: entry.id,
    kind: "model",
    name: entry.name,
    profile,
    isEnabled: entry.isEnabled,
    methods: entry.authMethods,
    isValidated: false,
  } as const;
  const found = await book.store.get({ owner: book.owner, provider: entry.id, profile });
  const stored = found?.type === "mcpOauth" ? undefined : found;
  const isUsed = profile === (config.account ?? DEFAULT_PROFILE);
  const variable = isUsed ? keyVariable(config, book.env) : undefined;
  if (variable !== undefined) {
    const isShadowed = stored === undefined ? {} : { isShadowed: true };
    return { ...base, isLoggedIn: true, source: "environment", variable, health: "unknown", ...isShadowed };
  }
  if (isAmbient(config.auth)) return { ...base, ...(await machineStatus(book, entry)) };
  if (config.adoptsCodexLogin === true && isUsed) return { ...base, ...(await adoptedStatus(book)) };
  if (stored !== undefined) return { ...base, ...storedStatus(stored) };
  if (isUsed && isOpenAiItself(config) && (await readCodexKey(book.env)) !== undefined) {
    return { ...base, isLoggedIn: true, source: "codex", health: "unknown" };
  }
  const needsNone = entry.authMethods.includes("none");
  return { ...base, isLoggedIn: needsNone, source: "none", health: "unknown" };
}

type Facts = Pick<AccountStatus, "isLoggedIn" | "source" | "health"> & Partial<AccountStatus>;

/** Whether there is something to use, without a request. */
async function machineStatus(book: Book, entry: ModelProviderEntry): Promise<Facts> {
  try {
    const { keySource: place } = await clientOf(book, entry);
    return { isLoggedIn: true, source: "machine", health: "unknown", ...defined({ place }) };
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    return { isLoggedIn: false, source: "machine", health: "unknown", problem: error.code, hint: error.message };
  }
}

function storedStatus(entry: ApiKeyCredential | OAuthCredential | CopilotCredential): Facts {
  if (entry.type === "apiKey") return { isLoggedIn: entry.health === "ok", source: "store", health: entry.health };
  const isOver = isExpired(entry, Date.now()) && entry.refreshToken === undefined;
  const health = entry.health === "ok" && isOver ? "expired" : entry.health;
  const { email, accountId } = entry.type === "oauth" ? entry : {};
  return {
    isLoggedIn: health === "ok",
    source: "store",
    health,
    ...defined({ email, plan: entry.plan, accountId, expiresAt: isoTime(expiryOf(entry)), problem: entry.problem }),
  };
}

async function adoptedStatus({ env }: Book): Promise<Facts> {
  const login = await readCodexLogin(env);
  if (login === undefined) return { isLoggedIn: false, source: "codex", health: "unknown" };
  const isOver = isExpired({ accessToken: login.accessToken }, Date.now());
  return {
    isLoggedIn: !isOver,
    source: "codex",
    health: isOver ? "expired" : "ok",
    ...defined({ email: login.email, plan: login.plan, expiresAt: isoTime(login.expiresAt) }),
  };
}

function isoTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

/** With one request that costs nothing. It may renew a login. */
async function validated(query: StatusQuery, found: AccountStatus): Promise<AccountStatus> {
  const { book, entry, profile, signal = AbortSignal.timeout(30_000) } = query;
  try {
    const client = await clientOf(book, entry, found.source === "store" ? profile : undefined);
    if (!listsModels(client)) return await validatedByToken(client, found, signal);
    const { status } = await askModelList(client, signal);
    const now = await foundStatus(query);
    if (status === 401 || status === 403) return { ...now, isValidated: true, isLoggedIn: false, health: "refused" };
    if (status >= 200 && status < 300) return { ...now, isValidated: true, health: "ok" };
    return { ...now, health: "unreachable", problem: `status_${status}` };
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    const { code, details } = error;
    if (code.startsWith("provider.")) return { ...found, health: "unreachable", problem: code };
    if (!code.startsWith("auth.")) return { ...found, health: "unknown", problem: code };
    const health = details["health"] === "reconnect_required" ? "reconnect_required" : "refused";
    return { ...found, isValidated: true, isLoggedIn: false, health, problem: code };
  }
}

/** Where there is no list, getting a token shows as much. A key that only signs shows nothing. */
async function validatedByToken(client: Provider, found: AccountStatus, signal: AbortSignal): Promise<AccountStatus> {
  if (client.credential === undefined || client.auth === "bedrock") return found;
  const outgoing: Outgoing = { method: "GET", url: new URL(client.baseUrl), headers: {}, body: "" };
  await client.credential.headers(client.wire, signal, outgoing);
  return { ...found, isValidated: true, health: "ok" };
}

export async function programStatus(
  { id, name, program, authMethods }: RunnerEntry,
  env: Book["env"],
): Promise<AccountStatus> {
  const { state } = await vendorStatus(program, env);
  return {
    provider: id,
    kind: "runner",
    name,
    profile: DEFAULT_PROFILE,
    isEnabled: true,
    methods: authMethods,
    isLoggedIn: state === "loggedIn",
    source: "program",
    health: state === "loggedIn" ? "ok" : "unknown",
    isValidated: state === "loggedIn" || state === "loggedOut",
    problem: state,
  };
}
