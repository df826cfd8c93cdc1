/** The accounts of the local user, with the providers of the configuration in force. */
import { openAccounts, type Accounts, type AccountsOptions } from "@heddle/models/accounts";
import { effectiveConfig } from "../config/layers.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import { providerConfigs } from "../settings/settings.ts";

export async function openOwnAccounts(
  env: NodeJS.ProcessEnv,
  { onSecrets }: Pick<AccountsOptions, "onSecrets"> = {},
): Promise<Accounts> {
  const { config: file } = await loadConfig(env);
  const config = effectiveConfig({ file, overrides: {} }, undefined);
  return openAccounts({ home: heddleHome(env), env, configs: providerConfigs(config, {}, env), onSecrets });
}
