/** What a client asks of the next turn, and who decides what that comes to. */
import type { SettingsAnswer, SettingsPatch, StoredSettings } from "@heddle/agent/settings";
import { isHeddleError, type TurnSettings } from "@heddle/protocol";

export interface SettingsRequest {
  /** Where the turn works; whether its owner trusts it decides what may be written when nobody says. */
  readonly workspace?: string | undefined;
  /** What the thread says; absent: it is new. */
  readonly stored?: StoredSettings | undefined;
  /** What is asked for now. */
  readonly patch?: SettingsPatch | undefined;
  /** A provider without a key is refused by the first request only. */
  readonly mayLackKey?: boolean | undefined;
}

export interface ResolvedSettings {
  readonly settings: TurnSettings;
  readonly sources: SettingsAnswer["sources"];
}

/** Configuration belongs to whoever starts the server. Failures are typed. */
export interface SettingsSource {
  resolve(request: SettingsRequest): Promise<TurnSettings>;
  /** The same, with where each value comes from. */
  explain(request: SettingsRequest): Promise<ResolvedSettings>;
  /** Keys of the configuration, dotted or nested, as a client sends them: what it asks for with them. */
  patchOf(config: Readonly<Record<string, unknown>>): SettingsPatch;
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
export type SettingsResolver = Pick<SettingsSource, "resolve">;
