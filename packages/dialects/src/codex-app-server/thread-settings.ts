/** The changed settings of a thread as the original sends them. */
import type { TurnSettings } from "@heddle/protocol";
import { collaborationMode, sandboxPolicy, threadSettings } from "./settings.ts";
import type { CodexNotification } from "./shapes.ts";

export function settingsUpdated(threadId: string, settings: TurnSettings, workspace: string): CodexNotification {
  const { activePermissionProfile, approvalsReviewer, multiAgentMode } = threadSettings(settings, workspace);
  const { model, provider, effort = null, summary = null, serviceTier = null, personality = null } = settings;
  return {
    method: "thread/settings/updated",
    params: {
      threadId,
      threadSettings: {
        disabledPluginIds: settings.disabledPlugins ?? [],
        cwd: workspace,
        approvalPolicy: settings.approvalPolicy,
        approvalsReviewer,
        sandboxPolicy: sandboxPolicy(settings),
        activePermissionProfile,
        model,
        modelProvider: provider,
        serviceTier,
        effort,
        summary,
        collaborationMode: collaborationMode(settings),
        multiAgentMode,
        personality,
      },
    },
  };
}
