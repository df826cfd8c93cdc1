/** What the configuration adds to a turn: MCP servers and hooks, in the words the agent takes them in. */
import type { HookConfig, McpServerConfig } from "@heddle/protocol";
import type { ConfigFile, HookTable } from "../config/schema.ts";
import type { HeddleOptions, SkillChoices } from "@heddle/agent";

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

/** `[sandbox_limits]`, as the engine takes it. */
export function limitOptions({ sandbox_limits: limits = {} }: ConfigFile): Partial<HeddleOptions> {
  const { processes, memory_mb: memoryMb, idle_sandboxes: count, idle_sec: idleSec } = limits;
  return {
    sandboxLimits: { processes, memoryBytes: memoryMb === undefined ? undefined : memoryMb * 2 ** 20 },
    idleSandboxes: { count, ms: idleSec === undefined ? undefined : Math.ceil(idleSec * 1000) },
  };
}

/** Which skills the configuration switches off. */
/** Both are asked each time: they may change while a server runs. */
export function skillChoices(
  disabled: () => readonly string[],
  extraRoots: () => readonly string[] = () => [],
): SkillChoices {
  return { extraRoots, isEnabled: ({ name, path }) => !disabled().includes(name) && !disabled().includes(path) };
}
