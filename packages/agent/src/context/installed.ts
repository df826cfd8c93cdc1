/** What installed plugins bring to a turn; read again for every turn. */
import { existsSync } from "node:fs";
import type { McpServerConfig } from "@heddle/protocol";
import { pluginsRoot } from "@heddle/tools";
import type * as Plugins from "@heddle/tools/plugins";

/** Of each plugin; most homes have none, and load nothing for it. */
export async function installedWith<T>(
  home: string,
  read: (plugin: Plugins.InstalledPlugin, plugins: typeof Plugins) => Promise<T>,
): Promise<readonly T[]> {
  if (!existsSync(pluginsRoot(home))) return [];
  const plugins = await import("@heddle/tools/plugins");
  return Promise.all((await plugins.installedPlugins(home)).map((plugin) => read(plugin, plugins)));
}

/** Those of the configuration come first: a name that they have is theirs. */
export async function withPluginServers(
  home: string,
  configured: readonly McpServerConfig[],
): Promise<readonly McpServerConfig[]> {
  const more = await installedWith(home, (plugin, { serversOfPlugin }) => serversOfPlugin(plugin));
  const byName = new Map(more.flat().map((server) => [server.name, server]));
  for (const { name } of configured) byName.delete(name);
  return [...configured, ...byName.values()];
}
