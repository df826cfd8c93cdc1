/** What the configuration adds to a turn: MCP servers and hooks, in the words the agent takes them in. */
import type { HookConfig, McpServerConfig } from "@heddle/protocol";
import type { ConfigFile, HookTable } from "../config/schema.ts";

export async function mcpServersOf(config: ConfigFile, env: NodeJS.ProcessEnv): Promise<readonly McpServerConfig[]> {
  const enabled = Object.entries(config.mcp_servers ?? {}).filter(([, table]) => table.enabled !== false);
  if (enabled.length === 0) return [];
  const { mcpServer } = await import("./mcp-servers.ts");
  return enabled.map(([name, table]) => mcpServer(name, table, env));
}

export function hooksOf(config: ConfigFile): readonly HookConfig[] {
  return (config.hooks ?? []).map(hook);
}

/** undefined: nothing is asked of a model beside turns. */
export function backgroundOf({ background }: ConfigFile): { readonly model?: string | undefined } | undefined {
  return background?.model === "off" ? undefined : { model: background?.model };
}

function hook(table: HookTable): HookConfig {
  return {
    event: table.event,
    command: table.command,
    ...(table.matcher === undefined ? {} : { matcher: table.matcher }),
    ...(table.timeout_ms === undefined ? {} : { timeoutMs: table.timeout_ms }),
    ...(table.on_failure === undefined ? {} : { onFailure: table.on_failure }),
  };
}
