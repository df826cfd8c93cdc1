/** What the configuration adds to a turn: MCP servers and hooks, in the words the agent takes them in. */
import type { CollectRule } from "@heddle/journal/blobs";
import type { HookConfig, McpServerConfig } from "@heddle/protocol";
import type { ConfigFile, HookTable } from "../config/schema.ts";
import type { HeddleOptions, MessageRules, SkillChoices } from "@heddle/agent";

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

/** `[messages]`. */
export function messageRules({ messages = {} }: ConfigFile): MessageRules {
  const { tools: hasTools = false, wake: wakes = false, envelope = OBSERVE } = messages;
  return { hasTools, wakes, envelope };
}

const OBSERVE = "observe";
const MAX_OPEN_CHILDREN = 6;
const MAX_CHILD_DEPTH = 2;

/** `[sandbox_limits]`, `[day_limits]`, `[agents]` and `[messages]`, as the engine takes them. */
export function limitOptions(config: ConfigFile): Partial<HeddleOptions> {
  const { sandbox_limits: limits = {}, features, agents } = config;
  const { processes, memory_mb: memoryMb, cpu_sec: cpuSec, idle_sandboxes: count, idle_sec: idleSec } = limits;
  const { max_threads: maxOpen = MAX_OPEN_CHILDREN, max_depth: maxDepth = MAX_CHILD_DEPTH } = agents ?? {};
  return {
    messages: messageRules(config),
    childThreads: features?.multi_agent === true ? { maxOpen, maxDepth } : undefined,
    sandboxLimits: { processes, memoryBytes: memoryMb === undefined ? undefined : memoryMb * 2 ** 20, cpuSec },
    idleSandboxes: { count, ms: idleSec === undefined ? undefined : Math.ceil(idleSec * 1000) },
    outputRule: outputRule(config),
    dayLimits: dayLimits(config),
  };
}

function dayLimits({ day_limits: limits = {} }: ConfigFile): NonNullable<HeddleOptions["dayLimits"]> {
  const { cost_usd: costUsd, tokens, turns, workspaces = {} } = limits;
  const byFolder = Object.entries(workspaces).map(([folder, own]) => [
    folder,
    { costUsd: own.cost_usd, tokens: own.tokens },
  ]);
  return { costUsd, tokens, turns, workspaces: Object.fromEntries(byFolder) };
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Which whole outputs of commands the home keeps. */
export function outputRule({ outputs = {} }: Pick<ConfigFile, "outputs">): CollectRule {
  const { max_mb: maxMb, max_days: maxDays } = outputs;
  return {
    maxBytes: maxMb === undefined ? undefined : maxMb * 2 ** 20,
    maxAgeMs: maxDays === undefined ? undefined : maxDays * DAY_MS,
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
