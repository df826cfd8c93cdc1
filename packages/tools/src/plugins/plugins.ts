/** Plugins of this machine. Not loaded by a run that has none. */
export {
  installedPlugins,
  installPlugin,
  serversOfPlugin,
  uninstallPlugin,
  type InstalledPlugin,
} from "./installed-plugins.ts";
export {
  pathBelow,
  PluginError,
  pluginHooks,
  pluginServers,
  pluginSkills,
  readManifest,
  readPluginJson,
  type PluginFolder,
  type PluginHook,
} from "./plugin-folder.ts";
