/**
 * `experimentalFeature/*`: what clients of the original look for by name. A feature that Heddle has is on, one that it has
 * not is off; neither is switched while the server runs.
 */
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import { requireLoaded } from "../thread-facts.ts";

const PRESENT = [
  "shell_tool",
  "view_image",
  "unified_exec",
  "unified_exec_tty",
  "hooks",
  "plugins",
  "collaboration_modes",
  "goals",
  "steer",
  "sqlite",
  "tool_call_mcp_elicitation",
] as const;

/** In the order of the original, `multi_agent` stands between these and those below. */
const ABSENT_BEFORE = [
  "apps",
  "browser_use",
  "computer_use",
  "guardian_approval",
  "image_generation",
  "in_app_browser",
  "memories",
] as const;

const ABSENT = [
  "realtime_conversation",
  "remote_control",
  "remote_plugin",
  "step_model_switching",
  "tool_suggest",
] as const;

/** Child threads, where the owner lets threads start others. */
const CHILD_THREADS = "multi_agent";

function featuresOf({ heddle }: ServerContext) {
  return [
    ...PRESENT.map((name) => feature(name, "stable", true)),
    ...ABSENT_BEFORE.map((name) => feature(name, "removed", false)),
    ...(heddle.mayStartThreads
      ? [{ ...feature(CHILD_THREADS, "stable", true), defaultEnabled: false }]
      : [feature(CHILD_THREADS, "removed", false)]),
    ...ABSENT.map((name) => feature(name, "removed", false)),
  ];
}

function feature(name: string, stage: "stable" | "removed", enabled: boolean) {
  return { name, stage, displayName: null, description: null, announcement: null, enabled, defaultEnabled: enabled };
}

export const listFeatures: Handler<"experimentalFeature/list"> = async ({ threadId, ...page }, { server }) => {
  if (typeof threadId === "string") requireLoaded(server, threadId);
  const { data, nextCursor } = pageOf(featuresOf(server), page, ({ name }) => name);
  return { result: { data, nextCursor } };
};

/** Answers what was changed, as the original does for a feature that it does not switch: nothing. */
export const setFeatures: Handler<"experimentalFeature/enablement/set"> = async () => ({ result: { enablement: {} } });
