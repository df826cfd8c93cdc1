/**
 * What the next turn runs with, for every door: the configuration, over it the thread's settings, over that the
 * request. Later wins value by value, and every value has its source. Pure: the caller decides which provider serves a
 * model that is named without one.
 */
import type { EnvironmentPolicy } from "@heddle/protocol";
import { companionsOf, LEADING_KEYS, SETTING_KEYS, type SettingKey, type SettingsPatch } from "./patch.ts";
import { EMBEDDED } from "../runners/config.ts";
import type { StoredSettings } from "./stored.ts";

export type SettingSource = "default" | "file" | "profile" | "override" | "turn" | "thread" | "flag" | "request";

export interface SettingsLayer {
  readonly source: SettingSource;
  readonly values: SettingsPatch;
}

export interface SettingsQuestion {
  readonly config: readonly SettingsLayer[];
  readonly stored?: StoredSettings | undefined;
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
  const runners = runnersUpTo(layers);
  for (const [level, layer] of layers.entries()) {
    const isOfOther = runners[level] !== runners.at(-1);
    for (const key of SETTING_KEYS) {
      if (layer.values[key] === undefined || (isOfOther && OF_RUNNER.has(key))) continue;
      values.set(key, layer.values[key]);
      levels.set(key, level);
    }
  }
  // A sandbox mode is an envelope too: what was named last counts.
  if ((levels.get("envelope") ?? 0) < (levels.get("sandboxMode") ?? 0)) {
    values.delete("envelope");
    levels.delete("envelope");
  }
  // One that says more or less about the network as a whole than the list before it.
  if ((levels.get("networkHosts") ?? 0) < (levels.get("networkAccess") ?? 0)) {
    values.delete("networkHosts");
    levels.delete("networkHosts");
  }
  const environment = joinedEnvironment(layers.flatMap(({ values: { environment: one } }) => one ?? []));
  return {
    values: { ...Object.fromEntries(values), ...(environment === undefined ? {} : { environment }) },
    sources: Object.fromEntries([...levels].map(([key, level]) => [key, layers[level]?.source])),
    isProviderOpen: (levels.get("provider") ?? 0) < (levels.get("model") ?? 0),
  };
}

/** A model that was named for one runner means nothing to another. */
const OF_RUNNER: ReadonlySet<SettingKey> = new Set(["provider", "model", "effort", "summary", "verbosity"]);

/** The runner in force at each layer. */
function runnersUpTo(layers: readonly SettingsLayer[]): readonly string[] {
  let now: string = EMBEDDED;
  return layers.map(({ values }) => (now = values.runner ?? now));
}

/** Later wins, key by key, in `set` too. */
function joinedEnvironment(policies: readonly EnvironmentPolicy[]): EnvironmentPolicy | undefined {
  if (policies.length === 0) return undefined;
  const set = Object.assign({}, ...policies.map((policy) => policy.set));
  return { ...Object.assign({}, ...policies), ...(Object.keys(set).length === 0 ? {} : { set }) };
}

/** The thread's settings, without companions of something that the request sets. */
function storedLayers(stored: StoredSettings | undefined, asked: readonly SettingsLayer[]): readonly SettingsLayer[] {
  if (stored === undefined) return [];
  const isAsked = (key: SettingKey): boolean => asked.some(({ values }) => values[key] !== undefined);
  const provider = stored.thread.provider ?? stored.turn.provider;
  const isMoved = asked.some(({ values }) => values.provider !== undefined && values.provider !== provider);
  const dropped: readonly SettingKey[] = [
    ...(isMoved ? (["model", "effort"] as const) : []),
    ...LEADING_KEYS.filter(isAsked).flatMap(companionsOf),
  ];
  return (["turn", "thread"] as const).map((source) => ({ source, values: without(stored[source], dropped) }));
}

function without(patch: SettingsPatch, dropped: readonly SettingKey[]): SettingsPatch {
  return Object.fromEntries(SETTING_KEYS.filter((key) => !dropped.includes(key)).map((key) => [key, patch[key]]));
}
