/**
 * Who is to carry out a task must exist: its runner, provider and model, and those of each contestant. One rule for every door,
 * asked before a task is stored. Whether there is a key is asked when it runs.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { Layers } from "../config/layers.ts";
import { resolveSettings } from "./settings.ts";

/** `runner.unknown`, `provider.unknown`, `model.unknown` and their like, with the name of the task. */
export async function requireAgents(spec: TaskSpec, layers: Layers, env: NodeJS.ProcessEnv): Promise<void> {
  for (const agent of spec.agents ?? [{}]) {
    const { runner, provider, model } = { ...spec, ...agent };
    if (runner === undefined && provider === undefined && model === undefined) continue;
    const named = provider === undefined ? layers.overrides : { ...layers.overrides, model_provider: provider };
    const choices = { runner, model, mayLackKey: true, addedRoots: [] };
    try {
      await resolveSettings({ ...layers, overrides: named }, choices, env);
    } catch (error) {
      if (!isHeddleError(error) || !/^(?:runner|provider|model)\./.test(error.code)) continue;
      const { code, message, details } = error;
      throw new HeddleError(code, `${spec.name}: ${message}`, { cause: error, details });
    }
  }
}
