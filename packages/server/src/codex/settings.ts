/** What a client asks of the next turn, and who decides what that comes to. */
import { changeSettings } from "@heddle/agent";
import {
  SETTING_KEYS,
  withCompanions,
  storedForm,
  storedKey,
  type SettingsAnswer,
  type SettingsPatch,
  type StoredSettings,
} from "@heddle/agent/settings";
import {
  isHeddleError,
  type By,
  type EnvironmentPolicy,
  type McpServerConfig,
  type TurnSettings,
} from "@heddle/protocol";
import type { ServerContext } from "../rpc/call.ts";
import type { LoadedThread } from "./loaded.ts";

export interface SettingsRequest {
  /** Where the turn works; whether the owner trusts it decides the default sandbox mode. */
  readonly workspace?: string | undefined;
  /** The stored settings of the thread; absent: it is new. */
  readonly stored?: StoredSettings | undefined;
  readonly patch?: SettingsPatch | undefined;
  /** A provider without a key is refused by the first request only. */
  readonly mayLackKey?: boolean | undefined;
}

export interface ResolvedSettings {
  readonly settings: TurnSettings;
  readonly sources: SettingsAnswer["sources"];
  /** The provider searches the web for this model, when it is asked to. */
  readonly canSearch: boolean;
}

/** Given by the program that starts the server. Failures are typed. */
export interface SettingsSource {
  resolve(request: SettingsRequest): Promise<TurnSettings>;
  /** The same, with where each value comes from. */
  explain(request: SettingsRequest): Promise<ResolvedSettings>;
  /** What commands outside any thread see of the environment. */
  environment(): EnvironmentPolicy;
  /** Keys of the configuration, dotted or nested, as a client sends them: what it asks for with them. */
  patchOf(config: Readonly<Record<string, unknown>>): SettingsPatch;
  /** MCP servers among the same keys, for the thread alone; undefined: none are named. */
  serversOf(config: Readonly<Record<string, unknown>>): Promise<readonly McpServerConfig[] | undefined>;
  /** Whether the same keys let clients change a running turn; undefined: they do not say. */
  changesTurns(config: Readonly<Record<string, unknown>>): boolean | undefined;
  /** Those of the same keys that are passed over. */
  unusedOf(config: Readonly<Record<string, unknown>>): readonly string[];
}

/** What a turn without further settings runs with; undefined: no provider or key is configured. */
export async function defaultSettings(settings: SettingsResolver): Promise<TurnSettings | undefined> {
  try {
    return await settings.resolve({});
  } catch (error) {
    if (isHeddleError(error)) return undefined;
    throw error;
  }
}

/** For doors that only begin turns. */
export type SettingsResolver = Pick<SettingsSource, "resolve"> & Partial<Pick<SettingsSource, "explain">>;

type Thread = Pick<LoadedThread, "threadId" | "workspace">;

export async function nextSettings(
  { heddle, settings }: Pick<ServerContext, "heddle" | "settings">,
  { threadId, workspace }: Thread,
  { patch, clientId }: { readonly patch?: SettingsPatch; readonly clientId?: string | undefined } = {},
): Promise<TurnSettings> {
  const stored = await heddle.storedSettings(threadId, clientId);
  // As in the original: a thread can be created without a key, and its first turn reports it.
  return settings.resolve({ workspace, stored, patch, mayLackKey: true });
}

/** Puts what has changed on record, for every door; answers whether anything has. */
export async function storeChanges(
  { heddle }: ServerContext,
  threadId: string,
  change: { readonly changes: Readonly<Record<string, unknown>> } & By,
): Promise<boolean> {
  if (Object.keys(change.changes).length === 0) return false;
  await changeSettings(heddle.journal, threadId, change);
  return true;
}

/** The difference, in the keys of the journal. */
export function changesBetween(before: TurnSettings, after: TurnSettings): Readonly<Record<string, unknown>> {
  const [old, now] = [patchOf(before), patchOf(after)];
  const changed = SETTING_KEYS.filter((key) => JSON.stringify(old[key]) !== JSON.stringify(now[key]));
  const gone = changed.filter((key) => now[key] === undefined).map((key) => [storedKey(key), null]);
  return {
    ...storedForm(Object.fromEntries(withCompanions(changed).map((key) => [key, now[key]]))),
    ...Object.fromEntries(gone),
  };
}

function patchOf(settings: TurnSettings): SettingsPatch {
  return { ...settings, mode: settings.mode ?? "default" };
}
