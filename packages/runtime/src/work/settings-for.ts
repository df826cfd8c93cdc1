/** What the turns of a task run with: what its spec says, over the configuration that `heddle exec` goes by. */
import type { TurnSettings } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { SettingsSource } from "@heddle/server";

/** Fails as exec does, before anything is asked of a model: no key, no such provider or model. */
export async function settingsForTask(source: SettingsSource, spec: TaskSpec): Promise<TurnSettings> {
  const settings = await source.resolve({
    workspace: spec.workspace,
    patch: {
      model: spec.model,
      provider: spec.provider,
      effort: spec.effort,
      sandboxMode: spec.sandbox,
      approvalPolicy: spec.approval,
    },
  });
  // The sandbox of a task is what its own file says. Checks see the host outside the workspace as it is, so an agent that may
  // write there would write what judges it.
  return { ...settings, networkAccess: spec.network, writableRoots: [] };
}
