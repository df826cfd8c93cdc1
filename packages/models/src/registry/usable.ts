/**
 * Which providers could answer when nobody has chosen one: those with a key in the environment or a login in the store.
 * Model servers of this machine need neither, so they count only where the configuration names them.
 */
import type { Credential } from "../auth/credential.ts";
import { heddleHome } from "../home.ts";
import { isAmbient } from "../provider-auth.ts";
import { keyVariable, type ProviderConfig } from "../providers.ts";
import { createRegistry, modelEntries } from "./registry.ts";

export function usableProviders(
  configs: readonly ProviderConfig[],
  env: Readonly<Record<string, string | undefined>>,
  stored: readonly Pick<Credential, "provider" | "health">[],
): readonly string[] {
  const named = new Set(configs.map(({ id }) => id));
  return modelEntries(createRegistry(configs, heddleHome(env)), stored)
    .filter(({ id, config, isEnabled }) => {
      if (!isEnabled || config.wire === "scripted") return false;
      if (keyVariable(config, env) !== undefined || config.key !== undefined) return true;
      if (config.isLoginOnly === true && config.adoptsCodexLogin === true) return true;
      // What the machine has is asked only for a provider that the configuration names.
      if (isAmbient(config.auth)) return named.has(id);
      if (stored.some(({ provider, health }) => provider === id && health === "ok")) return true;
      return config.envKey === undefined && config.isLoginOnly !== true && named.has(id);
    })
    .map(({ id }) => id);
}
