/** What installed plugins bring to a turn; read again for every turn. */
import { existsSync } from "node:fs";
import type { McpServerConfig } from "@heddle/protocol";
import { pluginsRoot } from "@heddle/tools";
import type * as Plugins from "@heddle/tools/plugins";

interface Without {
  /** Ids of plugins that the thread does without; absent: none. */
  readonly disabled?: readonly string[] | undefined;
}

/** Of each plugin; most homes have none, and load nothing for it. */
export async function installedWith<T>(
  home: string,
  read: (plugin: Plugins.InstalledPlugin, plugins: typeof Plugins) => Promise<T>,
  { disabled = [] }: Without = {},
): Promise<readonly T[]> {
  if (!existsSync(pluginsRoot(home))) return [];
  const plugins = await import("@heddle/tools/plugins");
  const enabled = (await plugins.installedPlugins(home)).filter(({ id }) => !disabled.includes(id));
  return Promise.all(enabled.map((plugin) => read(plugin, plugins)));
}

/** Those of the configuration come first: a name that they have is theirs. */
export async function withPluginServers(
  home: string,
  configured: readonly McpServerConfig[],
  without: Without = {},
): Promise<readonly McpServerConfig[]> {
  const more = await installedWith(home, (plugin, { serversOfPlugin }) => serversOfPlugin(plugin), without);
  const byName = new Map(more.flat().map((server) => [server.name, server]));
  for (const { name } of configured) byName.delete(name);
  return [...configured, ...byName.values()];
}
