/** A table of `[mcp_servers]`, checked, as the agent takes it. Loaded only where there is one. */
import { isKeyVariable } from "@heddle/models";
import { HeddleError, PLAIN, reasonOf, type McpServerInput } from "@heddle/protocol";
import { McpServerConfig } from "@heddle/protocol/mcp";
import type { McpServerTable } from "../config/schema.ts";

export function mcpServer(name: string, table: McpServerTable, env: NodeJS.ProcessEnv): McpServerConfig {
  const parsed = McpServerConfig.safeParse(inputOf(name, table, env), PLAIN);
  if (parsed.success) return parsed.data;
  throw invalid(name, reasonOf(parsed.error));
}

/**
 * Servers that a client brings to its thread. They run with the network of the thread, and no key of a provider that this
 * process holds is handed to them.
 */
export function broughtServers(
  tables: Readonly<Record<string, McpServerTable>>,
  env: NodeJS.ProcessEnv,
): readonly McpServerConfig[] {
  for (const [name, table] of Object.entries(tables)) {
    const { env_vars = [], bearer_token_env_var = "", env_http_headers = {} } = table;
    const key = [...env_vars, bearer_token_env_var, ...Object.values(env_http_headers)].find(isKeyVariable);
    const problem =
      key !== undefined
        ? `names ${key}, which may be the key of a provider; send the value in env or http_headers`
        : table.network_access === true
          ? "asks for network_access; a server that a client brings has the network of its thread"
          : undefined;
    if (problem !== undefined) throw invalid(name, problem);
  }
  return Object.entries(tables).flatMap(([name, table]) =>
    table.enabled === false ? [] : [mcpServer(name, table, env)],
  );
}

function inputOf(name: string, table: McpServerTable, env: NodeJS.ProcessEnv): McpServerInput {
  const common = { name, ...limits(table), ...approvals(table) };
  if ((table.command === undefined) === (table.url === undefined)) {
    throw invalid(name, "needs either command, for a program to start, or url, for a server to reach");
  }
  return table.url === undefined
    ? {
        ...common,
        command: table.command ?? "",
        ...(table.args === undefined ? {} : { args: table.args }),
        env: { ...named(table.env_vars ?? [], env), ...table.env },
        ...(table.cwd === undefined ? {} : { cwd: table.cwd }),
        ...(table.network_access === undefined ? {} : { network: table.network_access }),
      }
    : {
        ...common,
        url: table.url,
        headers: { ...table.http_headers, ...headersFrom(table.env_http_headers ?? {}, env) },
        ...(table.bearer_token_env_var === undefined ? {} : { bearerTokenEnv: table.bearer_token_env_var }),
        ...login(table),
      };
}

function login({ scopes, oauth_resource: resource, oauth }: McpServerTable): Partial<McpServerInput> {
  return {
    ...(scopes === undefined ? {} : { scopes }),
    ...(resource === undefined ? {} : { oauthResource: resource }),
    ...(oauth?.client_id === undefined ? {} : { oauthClientId: oauth.client_id }),
    ...(oauth?.callback_port === undefined ? {} : { oauthCallbackPort: oauth.callback_port }),
  };
}

function limits(table: McpServerTable): Partial<McpServerInput> {
  const startupMs = table.startup_timeout_ms ?? seconds(table.startup_timeout_sec);
  const toolMs = seconds(table.tool_timeout_sec);
  return {
    ...(startupMs === undefined ? {} : { startupTimeoutMs: startupMs }),
    ...(toolMs === undefined ? {} : { toolTimeoutMs: toolMs }),
    ...(table.enabled_tools === undefined ? {} : { enabledTools: table.enabled_tools }),
    ...(table.disabled_tools === undefined ? {} : { disabledTools: table.disabled_tools }),
    ...(table.required === undefined ? {} : { required: table.required }),
  };
}

function seconds(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.ceil(value * 1000);
}

type Mode = NonNullable<McpServerTable["default_tools_approval_mode"]>;

function approvals(table: McpServerTable): Partial<McpServerInput> {
  const word = (mode: Mode): "auto" | "prompt" | "deny" => (mode === "approve" ? "auto" : mode);
  const byTool = Object.entries(table.tools ?? {}).flatMap(([tool, { approval_mode: mode }]) =>
    mode === undefined ? [] : [[tool, word(mode)] as const],
  );
  const mode = table.default_tools_approval_mode;
  return { ...(mode === undefined ? {} : { approval: word(mode) }), toolApproval: Object.fromEntries(byTool) };
}

function named(variables: readonly string[], env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(variables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** A variable that is not set sends no header. */
function headersFrom(variables: Readonly<Record<string, string>>, env: NodeJS.ProcessEnv): Record<string, string> {
  const set = Object.entries(variables).map(([header, variable]) => [header, env[variable]?.trim() ?? ""] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== ""));
}

function invalid(name: string, why: string): HeddleError {
  return new HeddleError("config.invalid", `mcp_servers.${name} ${why}`);
}
