/** A runner that is named where a provider could be: `claude-code:opus`, or what a thread of that runner has kept. */
import { runnerBehind, type RunnerConfigs } from "@heddle/agent/runners";
import type { SettingsPatch, SettingsQuestion } from "@heddle/agent/settings";

export function withRunners(layers: SettingsQuestion, configs: RunnerConfigs): SettingsQuestion {
  const named = (patch: SettingsPatch): SettingsPatch => withRunner(patch, configs);
  const { config, stored, asked } = layers;
  return {
    config: config.map((layer) => ({ ...layer, values: named(layer.values) })),
    stored: stored && { ...stored, turn: named(stored.turn), thread: named(stored.thread) },
    asked: asked.map((layer) => ({ ...layer, values: named(layer.values) })),
  };
}

function withRunner(patch: SettingsPatch, configs: RunnerConfigs): SettingsPatch {
  const { runner, provider, model } = patch;
  // The provider of an agent program is the program itself.
  if (runner !== undefined && provider === runner) return { ...patch, provider: undefined };
  const byProvider = provider === undefined ? undefined : runnerBehind(configs, provider);
  if (byProvider !== undefined) return { ...patch, provider: undefined, runner: runner ?? byProvider };
  const [, prefix = "", rest] = /^([\w.-]+):(.+)$/.exec(model ?? "") ?? [];
  const byModel = rest === undefined ? undefined : runnerBehind(configs, prefix);
  return byModel === undefined ? patch : { ...patch, model: rest, runner: byModel };
}
