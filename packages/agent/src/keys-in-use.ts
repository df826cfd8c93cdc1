/**
 * Secrets that this process knows from the start and must never store: keys of providers, stored logins, tokens and
 * headers of providers and MCP servers.
 */
import { BUILT_IN_PROVIDERS, isKeyVariable, storedSecrets, type ProviderConfig } from "@heddle/models";
import type { Redactor } from "@heddle/journal";
import type { McpServerConfig } from "@heddle/protocol";
import type { HeddleOptions } from "./heddle.ts";
import { serverSecrets } from "./mcp/server-secrets.ts";

/** The journal removes these exact values, whatever they look like. */
export function keysInUse(
  options: Pick<HeddleOptions, "home" | "store" | "providers" | "env" | "mcpServers">,
): string[] {
  const { home, providers, env, mcpServers = [] } = options;
  const keys = [...BUILT_IN_PROVIDERS, ...providers].flatMap(({ key, envKey }) => [
    key ?? "",
    ...[envKey ?? []].flat().map((name) => env[name] ?? ""),
  ]);
  const sent = providers.flatMap((provider) => sentSecrets(provider, env));
  const stored = storedSecrets(home);
  return [
    passwordOf(options.store),
    ...keys,
    ...sent,
    ...stored,
    ...namedKeys(env),
    ...mcpSecrets(mcpServers, env),
  ].filter((key) => key !== "");
}

function passwordOf(store: string | undefined): string {
  const { password = "" } = URL.parse(store ?? "") ?? {};
  return decodeURIComponent(password);
}

/** Whether a variable holds one of them: by its name, however short its value is, or by its value, under any name. */
export function keyCheck(
  { providers, mcpServers = [] }: Pick<HeddleOptions, "providers" | "mcpServers">,
  { known }: Pick<Redactor, "known">,
): (name: string, value: string) => boolean {
  const ofProviders = [...BUILT_IN_PROVIDERS, ...providers].flatMap(({ envKey = [], envHeaders = {} }) => [
    ...[envKey].flat(),
    ...Object.values(envHeaders),
  ]);
  const ofServers = mcpServers.flatMap((server) => ("url" in server ? [server.bearerTokenEnv ?? ""] : []));
  const names = new Set([...ofProviders, ...ofServers]);
  return (name, value) => names.has(name) || isKeyVariable(name) || known.search(value, true).found.length > 0;
}

/**
 * Headers and query values. Those from the environment are secret; in the configuration, a long word without spaces
 * could be a key, whatever its header is called.
 */
function sentSecrets({ headers = {}, envHeaders = {}, query = {} }: ProviderConfig, env: NodeJS.ProcessEnv): string[] {
  const hidden = Object.values(envHeaders).flatMap((name) => [env[name] ?? "", ...longWords(env[name] ?? "")]);
  return [...hidden, ...[...Object.values(headers), ...Object.values(query)].flatMap(longWords)];
}

/** "Bearer abc": the value alone must not be found either. */
function longWords(value: string): string[] {
  return value.split(/\s+/).filter((word) => word.length >= MIN_KEY_CHARS);
}

/** Shorter values would match ordinary words. */
const MIN_KEY_CHARS = 16;

/** Any of them may be the key of a provider from the catalog. */
function namedKeys(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, value = ""]) => {
    const key = value.trim();
    return isKeyVariable(name) && key.length >= MIN_KEY_CHARS ? [key] : [];
  });
}

function mcpSecrets(servers: readonly McpServerConfig[], env: NodeJS.ProcessEnv): string[] {
  return servers.flatMap((server) => {
    const token = "url" in server && server.bearerTokenEnv !== undefined ? env[server.bearerTokenEnv] : undefined;
    return [...(token === undefined ? [] : [token]), ...serverSecrets(server)];
  });
}
