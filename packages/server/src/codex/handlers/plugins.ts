/** `plugin/*`: which plugins the folders of a client and its user have, what is in them, and which are installed. */
import path from "node:path";
import { foldersFromRoot } from "@heddle/agent";
import { isHeddleError } from "@heddle/protocol";
import type { Call, Handler } from "../../rpc/call.ts";
import { absolutePath, fileRules } from "../../host/file-rules.ts";
import {
  installedPlugins,
  installPlugin,
  PluginError,
  pluginHooks,
  pluginServers,
  pluginSkills,
  uninstallPlugin,
  type InstalledPlugin,
} from "@heddle/tools/plugins";
import { MARKETPLACE_FILE, readMarketplace, type Marketplace, type Plugin } from "../../host/plugins.ts";
import { hookKey, lowered } from "./hooks.ts";
import { refuse } from "../thread-facts.ts";
import { unsupportedError } from "../unsupported.ts";

const MAX_FOLDERS = 20;

export const listPlugins: Handler<"plugin/list"> = async (params, call) => {
  const cwds = (params.cwds ?? []).map(absolutePath);
  if (cwds.length > MAX_FOLDERS) throw refuse(`plugin/list takes at most ${MAX_FOLDERS} folders`);
  const home = call.server.host.env["HOME"];
  const roots = [...(home === undefined ? [] : [home]), ...cwds.flatMap((cwd) => foldersFromRoot(cwd))];
  const kinds = params.marketplaceKinds ?? ["local"];
  const files = kinds.includes("local") ? [...new Set(roots.map((root) => path.join(root, MARKETPLACE_FILE)))] : [];
  const installed = await idsOf(call);
  const marketplaces: Marketplace[] = [];
  const problems: { readonly marketplacePath: string; readonly message: string }[] = [];
  for (const file of files) {
    try {
      const found = await readMarketplace(file, fileRules(call));
      if (found !== undefined) marketplaces.push(found);
      problems.push(...(found?.problems ?? []).map((message) => ({ marketplacePath: file, message })));
    } catch (error) {
      problems.push({ marketplacePath: file, message: messageOf(error) });
    }
  }
  return {
    result: {
      marketplaces: marketplaces.map((marketplace) => shownMarketplace(marketplace, installed)),
      marketplaceLoadErrors: problems,
      featuredPluginIds: [],
    },
  };
};

function messageOf(error: unknown): string {
  if (error instanceof PluginError || isHeddleError(error)) return error.message;
  throw error;
}

async function idsOf({ server }: Call): Promise<ReadonlySet<string>> {
  return new Set((await installedPlugins(server.home)).map(({ id }) => id));
}

function shownMarketplace(marketplace: Marketplace, installed: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { name, file, displayName, plugins } = marketplace;
  return {
    name,
    path: file,
    interface: displayName === undefined ? null : { displayName },
    plugins: plugins.map((plugin) => summaryOf(plugin, marketplace, installed)),
  };
}

/** Whatever has become of their marketplaces since. */
export const listInstalled: Handler<"plugin/installed"> = async (_, { server }) => {
  const installed = await installedPlugins(server.home);
  const ids = new Set(installed.map(({ id }) => id));
  const names = [...new Set(installed.map(({ record }) => record.marketplace.name))];
  const marketplaces = names.map((name) => {
    const plugins = installed.filter(({ record }) => record.marketplace.name === name);
    const { file = "", displayName } = plugins[0]?.record.marketplace ?? {};
    return shownMarketplace({ name, file, displayName, plugins: plugins.map(asListed), problems: [] }, ids);
  });
  return { result: { marketplaces, marketplaceLoadErrors: [] } };
};

/** As its marketplace listed it. */
function asListed({ manifest, record }: InstalledPlugin): Plugin {
  const { name, source, category, installation, authentication } = record;
  return { entry: { name, source, category, policy: { installation, authentication } }, manifest, folder: source };
}

/** The act of the user that puts skills and MCP servers of a plugin into force. Its hooks stay out: none is trusted. */
export const addPlugin: Handler<"plugin/install"> = async (params, call) => {
  const { marketplacePath, remoteMarketplaceName } = params;
  if ((typeof marketplacePath === "string") === (typeof remoteMarketplaceName === "string"))
    throw refuse("plugin/install requires exactly one of marketplacePath or remoteMarketplaceName");
  if (typeof remoteMarketplaceName === "string") throw unsupportedError("plugin/install remoteMarketplaceName");
  const { marketplace, plugin } = await requirePlugin(params, call);
  const { name, file, displayName } = marketplace;
  const { entry, folder } = plugin;
  const { installation, authentication } = policyOf(entry);
  if (installation === "NOT_AVAILABLE")
    throw refuse(`plugin \`${entry.name}\` is not available for install in marketplace \`${name}\``);
  const { category } = entry;
  const record = {
    marketplace: { name, file, ...(displayName === undefined ? {} : { displayName }) },
    name: entry.name,
    source: folder,
    ...(typeof category === "string" ? { category } : {}),
    installation,
    authentication,
  };
  await installPlugin(call.server.home, { record, folder }, fileRules(call)).catch((error: unknown) => {
    throw refuse(messageOf(error));
  });
  return { result: { authPolicy: authentication, appsNeedingAuth: [] } };
};

export const removePlugin: Handler<"plugin/uninstall"> = async ({ pluginId }, { server }) => {
  if (await uninstallPlugin(server.home, pluginId)) return { result: {} };
  throw refuse("invalid plugin id: it is name@marketplace, as plugin/installed lists it");
};

export const reconcilePlugins: Handler<"plugin/reconcile"> = async () => ({
  result: { changedPlugins: [], failedRemotePluginIds: [], failedMaterializationRemotePluginIds: [] },
});

export const readPlugin: Handler<"plugin/read"> = async (params, call) => {
  const { marketplace, plugin } = await requirePlugin(params, call);
  const rules = fileRules(call);
  const { skills } = await pluginSkills(plugin, rules);
  const hooks = await pluginHooks(plugin, rules);
  const summary = summaryOf(plugin, marketplace, await idsOf(call));
  const { name } = plugin.entry;
  return {
    result: {
      plugin: {
        marketplaceName: marketplace.name,
        marketplacePath: marketplace.file,
        summary,
        shareUrl: null,
        description: plugin.manifest.description ?? null,
        skills: skills.map((skill) => ({
          name: `${name}:${skill.name}`,
          description: skill.description,
          shortDescription: null,
          interface: null,
          path: skill.path,
          enabled: true,
        })),
        onboardingSkill: null,
        hooks: hooks.map((hook) => ({ key: hookKey(summary.id, hook), eventName: lowered(hook.event) })),
        apps: [],
        appTemplates: [],
        mcpServers: Object.keys(await pluginServers(plugin, rules)),
        scheduledTasks: null,
      },
    },
  };
};

interface Wanted {
  readonly marketplacePath?: string | null | undefined;
  readonly pluginName: string;
}

async function requirePlugin(
  { marketplacePath, pluginName }: Wanted,
  call: Call,
): Promise<{ readonly marketplace: Marketplace; readonly plugin: Plugin }> {
  if (typeof marketplacePath !== "string")
    throw refuse("plugin/read needs marketplacePath: plugins are those of this machine");
  const file = absolutePath(marketplacePath);
  const marketplace = await readMarketplace(file, fileRules(call)).catch((error: unknown) => {
    throw refuse(messageOf(error));
  });
  if (marketplace === undefined) throw refuse(`marketplace file \`${file}\` does not exist`);
  const plugin = marketplace.plugins.find(({ entry }) => entry.name === pluginName);
  if (plugin === undefined)
    throw refuse(`plugin \`${pluginName}\` was not found in marketplace \`${marketplace.name}\``);
  return { marketplace, plugin };
}

const NO_INTERFACE = {
  displayName: null,
  shortDescription: null,
  longDescription: null,
  developerName: null,
  capabilities: [],
  websiteUrl: null,
  privacyPolicyUrl: null,
  termsOfServiceUrl: null,
  defaultPrompt: null,
  brandColor: null,
  composerIcon: null,
  composerIconUrl: null,
  logo: null,
  logoDark: null,
  logoUrl: null,
  logoUrlDark: null,
  screenshots: [],
  screenshotUrls: [],
};

function policyOf({ policy }: Plugin["entry"]) {
  return { installation: policy?.installation ?? "AVAILABLE", authentication: policy?.authentication ?? "ON_INSTALL" };
}

function summaryOf({ entry, manifest, folder }: Plugin, marketplace: Marketplace, installed: ReadonlySet<string>) {
  const id = `${entry.name}@${marketplace.name}`;
  const { installation, authentication } = policyOf(entry);
  return {
    id,
    remotePluginId: null,
    version: null,
    localVersion: manifest.version ?? null,
    name: entry.name,
    shareContext: null,
    source: { type: "local", path: folder },
    installed: installed.has(id),
    installedAt: null,
    enabled: installed.has(id),
    installPolicy: installation,
    installPolicySource: null,
    mustShowInstallationInterstitial: null,
    authPolicy: authentication,
    availability: "AVAILABLE",
    disabledReason: null,
    eligiblePlanTypes: null,
    interface: { ...NO_INTERFACE, category: entry.category ?? null },
    keywords: manifest.keywords ?? [],
  };
}
