/** `plugin/*`: which plugins the folders of a client and its user have, and what is in them. None is installed. */
import path from "node:path";
import { foldersFromRoot } from "@heddle/agent";
import { isHeddleError } from "@heddle/protocol";
import type { Call, Handler } from "../../rpc/call.ts";
import { absolutePath, fileRules } from "../../host/file-rules.ts";
import {
  MARKETPLACE_FILE,
  PluginError,
  readMarketplace,
  readParts,
  type Marketplace,
  type Plugin,
} from "../../host/plugins.ts";
import { refuse } from "../thread-facts.ts";

const MAX_FOLDERS = 20;

export const listPlugins: Handler<"plugin/list"> = async (params, call) => {
  const cwds = (params.cwds ?? []).map(absolutePath);
  if (cwds.length > MAX_FOLDERS) throw refuse(`plugin/list takes at most ${MAX_FOLDERS} folders`);
  const home = call.server.host.env["HOME"];
  const roots = [...(home === undefined ? [] : [home]), ...cwds.flatMap((cwd) => foldersFromRoot(cwd))];
  const kinds = params.marketplaceKinds ?? ["local"];
  const files = kinds.includes("local") ? [...new Set(roots.map((root) => path.join(root, MARKETPLACE_FILE)))] : [];
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
      marketplaces: marketplaces.map(shownMarketplace),
      marketplaceLoadErrors: problems,
      featuredPluginIds: [],
    },
  };
};

function messageOf(error: unknown): string {
  if (error instanceof PluginError || isHeddleError(error)) return error.message;
  throw error;
}

function shownMarketplace(marketplace: Marketplace): Readonly<Record<string, unknown>> {
  const { name, file, displayName, plugins } = marketplace;
  return {
    name,
    path: file,
    interface: displayName === undefined ? null : { displayName },
    plugins: plugins.map((plugin) => summaryOf(plugin, marketplace)),
  };
}

/** Nothing can be installed: what would be in force is named by the client, or by the configuration. */
export const listInstalled: Handler<"plugin/installed"> = async () => ({
  result: { marketplaces: [], marketplaceLoadErrors: [] },
});

export const reconcilePlugins: Handler<"plugin/reconcile"> = async () => ({
  result: { changedPlugins: [], failedRemotePluginIds: [], failedMaterializationRemotePluginIds: [] },
});

export const readPlugin: Handler<"plugin/read"> = async (params, call) => {
  const { marketplace, plugin } = await requirePlugin(params, call);
  const { skills, hooks, mcpServers } = await readParts(plugin, fileRules(call));
  const summary = summaryOf(plugin, marketplace);
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
        hooks: hooks.events.flatMap(([event, groups]) =>
          groups.flatMap((count, group) =>
            Array.from({ length: count }, (_, index) => ({
              key: `${summary.id}:${hooks.file}:${snakeCase(event)}:${group}:${index}`,
              eventName: `${event.charAt(0).toLowerCase()}${event.slice(1)}`,
            })),
          ),
        ),
        apps: [],
        appTemplates: [],
        mcpServers,
        scheduledTasks: null,
      },
    },
  };
};

function snakeCase(event: string): string {
  return event.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

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

function summaryOf({ entry, manifest, folder }: Plugin, marketplace: Marketplace) {
  return {
    id: `${entry.name}@${marketplace.name}`,
    remotePluginId: null,
    version: null,
    localVersion: manifest.version ?? null,
    name: entry.name,
    shareContext: null,
    source: { type: "local", path: folder },
    installed: false,
    installedAt: null,
    enabled: false,
    installPolicy: entry.policy?.installation ?? "AVAILABLE",
    installPolicySource: null,
    mustShowInstallationInterstitial: null,
    authPolicy: entry.policy?.authentication ?? "ON_INSTALL",
    availability: "AVAILABLE",
    disabledReason: null,
    eligiblePlanTypes: null,
    interface: { ...NO_INTERFACE, category: entry.category ?? null },
    keywords: manifest.keywords ?? [],
  };
}
