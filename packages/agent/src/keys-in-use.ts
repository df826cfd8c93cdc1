/** What this process knows from the start and must never store: keys of providers, tokens and headers of MCP servers. */
import { BUILT_IN_PROVIDERS, isKeyVariable } from "@heddle/models";
import type { McpServerConfig } from "@heddle/protocol";
import type { HeddleOptions } from "./heddle.ts";

/** Provider keys are secrets whatever they look like; the journal removes these exact values. */
export function keysInUse({ providers, env, mcpServers = [] }: HeddleOptions): string[] {
  const keys = [...BUILT_IN_PROVIDERS, ...providers].flatMap(({ key, envKey }) => [
    key ?? "",
    ...[envKey ?? []].flat().map((name) => env[name] ?? ""),
  ]);
  return [...keys, ...namedKeys(env), ...mcpSecrets(mcpServers, env)].filter((key) => key !== "");
}

/** Shorter values would blot out ordinary words. */
const MIN_KEY_CHARS = 16;

/** Any of them may be the key of a provider that a turn chooses from the catalog. */
function namedKeys(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, value = ""]) => {
    const key = value.trim();
    return isKeyVariable(name) && key.length >= MIN_KEY_CHARS ? [key] : [];
  });
}

/** Names of variables that hold what nobody else may see. */
const SECRET_NAME = /key|token|secret|passw|credential|auth/i;

/** Values of a server's configuration that must never be stored: its token, its headers, and variables named like keys. */
function mcpSecrets(servers: readonly McpServerConfig[], env: NodeJS.ProcessEnv): string[] {
  return servers.flatMap((server) => {
    if (!("url" in server)) {
      return Object.entries(server.env).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
    }
    const token = server.bearerTokenEnv === undefined ? undefined : env[server.bearerTokenEnv];
    // "Bearer abc": the value alone must not be found either.
    const values = Object.values(server.headers).flatMap((value) => [value, value.split(" ").at(-1) ?? value]);
    return token === undefined ? values : [token, ...values];
  });
}
