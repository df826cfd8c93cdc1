/** What a configuration says of the settings of a turn. */
import type { SettingsPatch } from "@heddle/agent/settings";
import type { ConfigFile } from "../config/schema.ts";
import { environmentOf } from "./environment.ts";
import { instructionsOfConfig } from "./instructions.ts";
import { searchOfConfig } from "./search.ts";

export function patchOfConfig(config: ConfigFile): SettingsPatch {
  const { approval_policy: policy, sandbox_workspace_write: write = {} } = config;
  return {
    runner: config.runner,
    provider: config.model_provider,
    model: config.model,
    effort: config.model_reasoning_effort,
    sandboxMode: config.sandbox_mode,
    envelope: config.envelope,
    ceiling: config.ceiling ?? config.sandbox_ceiling,
    networkAccess: write.network_access,
    networkHosts: write.network_hosts,
    writableRoots: write.writable_roots,
    approvalPolicy: policy === "on-failure" ? "on-request" : policy,
    contextTokens: config.model_context_window,
    compactAtTokens: config.model_auto_compact_token_limit,
    asksUser: config.ask_user,
    ...instructionsOfConfig(config),
    environment: environmentOf(config),
    webSearch: config.web_search,
    ...searchOfConfig(config),
  };
}
