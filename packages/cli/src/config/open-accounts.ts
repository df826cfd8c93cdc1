/** The accounts of whoever sits at this machine, with the providers of the configuration in force. */
import { openAccounts, type Accounts, type AccountsOptions } from "@heddle/models/accounts";
import { heddleHome, loadConfig } from "./read-config.ts";
import { effectiveConfig, providerConfigs } from "./settings.ts";

export async function openOwnAccounts(
  env: NodeJS.ProcessEnv,
  { onSecrets }: Pick<AccountsOptions, "onSecrets"> = {},
): Promise<Accounts> {
  const { config: file } = await loadConfig(env);
  const config = effectiveConfig({ file, overrides: {} }, undefined);
  return openAccounts({ home: heddleHome(env), env, configs: providerConfigs(config, {}, env), onSecrets });
}
