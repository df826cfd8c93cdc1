/**
 * What the next turn runs with, for every door: the configuration, over it what the thread says, over that what is asked for
 * now. Later wins value by value, and every value knows where it comes from. Pure: which provider serves a model that is
 * named without one is left to whoever knows the providers.
 */
import { companionsOf, SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";
import type { StoredSettings } from "./stored.ts";

export type SettingSource =
  | "default"
  | "file"
  | "profile"
  /** `-c KEY=VALUE`. */
  | "override"
  /** The last turn of the thread. */
  | "turn"
  /** A change of the thread's settings. */
  | "thread"
  | "flag"
  | "request";

export interface SettingsLayer {
  readonly source: SettingSource;
  readonly values: SettingsPatch;
}

export interface SettingsQuestion {
  /** Lowest first. */
  readonly config: readonly SettingsLayer[];
  /** Absent: the thread is new. */
  readonly stored?: StoredSettings | undefined;
  /** What is asked for now, lowest first. */
  readonly asked: readonly SettingsLayer[];
}

export interface SettingsAnswer {
  readonly values: SettingsPatch;
  readonly sources: Readonly<Partial<Record<SettingKey, SettingSource>>>;
  /** The model was named above the provider and may belong to another one. */
  readonly isProviderOpen: boolean;
}

export function resolveSettings({ config, stored, asked }: SettingsQuestion): SettingsAnswer {
  const layers = [...config, ...storedLayers(stored, asked), ...asked];
  const values = new Map<SettingKey, unknown>();
  const levels = new Map<SettingKey, number>();
  for (const [level, layer] of layers.entries()) {
    for (const key of SETTING_KEYS) {
      if (layer.values[key] === undefined) continue;
      values.set(key, layer.values[key]);
      levels.set(key, level);
    }
  }
  return {
    values: Object.fromEntries(values),
    sources: Object.fromEntries([...levels].map(([key, level]) => [key, layers[level]?.source])),
    isProviderOpen: (levels.get("provider") ?? 0) < (levels.get("model") ?? 0),
  };
}

/** What the thread says, without what goes with something that is asked for otherwise. */
function storedLayers(stored: StoredSettings | undefined, asked: readonly SettingsLayer[]): readonly SettingsLayer[] {
  if (stored === undefined) return [];
  const isAsked = (key: SettingKey): boolean => asked.some(({ values }) => values[key] !== undefined);
  const provider = stored.thread.provider ?? stored.turn.provider;
  const isMoved = asked.some(({ values }) => values.provider !== undefined && values.provider !== provider);
  const dropped: readonly SettingKey[] = [
    ...(isMoved ? (["model", "effort"] as const) : []),
    ...(isAsked("sandboxMode") ? companionsOf("sandboxMode") : []),
  ];
  return (["turn", "thread"] as const).map((source) => ({ source, values: without(stored[source], dropped) }));
}

function without(patch: SettingsPatch, dropped: readonly SettingKey[]): SettingsPatch {
  return Object.fromEntries(SETTING_KEYS.filter((key) => !dropped.includes(key)).map((key) => [key, patch[key]]));
}
