/** What must never be stored, for commands that write to the record and open no engine with the whole configuration. */
import { keysInUse } from "@heddle/agent";
import { isHeddleError } from "@heddle/protocol";
import { mcpServersOf } from "../settings/extensions.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import { providerConfigs } from "../settings/settings.ts";

export async function knownSecrets(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const { config } = await loadConfig(env).catch(withoutConfig);
  const providers = providerConfigs(config, {}, env);
  const mcpServers = await mcpServersOf(config, env).catch(withoutServers);
  return keysInUse({ home: heddleHome(env), providers, env, mcpServers });
}

/** These commands use nothing of the configuration: one that is wrong does not stop them. */
function withoutConfig(error: unknown): { readonly config: Record<string, never> } {
  if (isHeddleError(error)) return { config: {} };
  throw error;
}

function withoutServers(error: unknown): [] {
  if (isHeddleError(error)) return [];
  throw error;
}
