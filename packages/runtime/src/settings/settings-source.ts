/** What a request of a client comes to under the configuration of the server. */
import type { ResolvedSettings, SettingsRequest, SettingsSource } from "@heddle/server";
import { searchProblem } from "@heddle/models";
import { isKeyWithoutEffect } from "@heddle/dialects/codex-app-server";
import { checkValues, type CheckedConfig } from "../config/check-config.ts";
import { isOfCodex } from "../config/codex-keys.ts";
import type { ConfigFile } from "../config/schema.ts";
import { splitKey } from "../config/toml-lines.ts";
import { effectiveConfig, mergeConfig, profileOf, type Layers } from "../config/layers.ts";
import { environmentOf } from "./environment.ts";
import { patchOfConfig } from "./config-patch.ts";
import { callerLayers, defaultLayer, settle } from "./settings.ts";
import { standingOf } from "./workspace.ts";

export interface SourceOptions extends Layers {
  readonly profile: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

export function settingsSource(options: SourceOptions): SettingsSource {
  const explain = (request: SettingsRequest): Promise<ResolvedSettings> => explainFor(options, request);
  return {
    explain,
    environment: () => environmentOf(effectiveConfig(options, options.profile)) ?? {},
    resolve: async (request) => (await explain(request)).settings,
    patchOf(config) {
      const { config: overrides } = clientConfig(config);
      const profile = overrides.profile === undefined ? {} : profileOf({ file: options.file, overrides }, undefined);
      return patchOfConfig(mergeConfig(profile, overrides));
    },
    async serversOf(config) {
      const { servers } = clientConfig(config);
      if (servers === undefined) return undefined;
      return (await import("./mcp-servers.ts")).broughtServers(servers, options.env);
    },
    changesTurns: (config) => clientConfig(config).config.features?.step_model_switching,
    // Libraries send Codex's own keys with every thread, and show a warning as if the agent had said it.
    unusedOf: (config) => clientConfig(config).passedOver.filter((key) => !isOfCodex(splitKey(key))),
  };
}

async function explainFor(options: SourceOptions, request: SettingsRequest): Promise<ResolvedSettings> {
  const { file, overrides, profile, env } = options;
  const { stored, workspace, mayLackKey } = request;
  const config = effectiveConfig({ file, overrides }, profile);
  const isTrusted = workspace !== undefined && (await standingOf(workspace, config.projects)).isTrusted;
  const { settings, sources, provider } = await settle(
    {
      // The owner's alone: what a client sends along adds no provider, and raises no ceiling.
      config,
      layers: {
        // The thread's own choice counts more than what was said when the server started.
        config: [
          defaultLayer(isTrusted),
          { source: "file", values: patchOfConfig(file) },
          ...callerLayers({ file, overrides }, profile),
        ],
        stored,
        asked: [{ source: "request", values: request.patch ?? {} }],
      },
      mayLackKey,
    },
    env,
  );
  return {
    sources,
    settings: stored?.hasClientTools === true ? { ...settings, hasClientTools: true } : settings,
    canSearch: provider !== undefined && searchProblem(provider, settings.model, settings.searchOptions) === undefined,
  };
}

/**
 * Which providers there are and which files are read only the owner decides; clients are told so. They lower the ceiling of
 * their thread by `ceiling`; the key for all threads is the owner's. Their MCP servers are
 * for their threads alone.
 */
function clientConfig(
  values: Readonly<Record<string, unknown>>,
): CheckedConfig & { readonly servers: ConfigFile["mcp_servers"] } {
  const heeded = Object.entries(values).filter(([key]) => !isKeyWithoutEffect(key));
  const { config, passedOver } = checkValues(Object.fromEntries(heeded));
  const {
    model_providers: _providers,
    runners: _runners,
    mcp_servers: servers,
    profiles = {},
    sandbox_ceiling: _ceiling,
    ...asked
  } = config;
  const harmless = Object.entries(profiles).map(([name, profile]) => [name, withoutFiles(profile)]);
  return { config: { ...withoutFiles(asked), profiles: Object.fromEntries(harmless) }, passedOver, servers };
}

type Profile = NonNullable<ConfigFile["profiles"]>[string];

function withoutFiles<T extends Profile>(table: T): T {
  return { ...table, model_instructions_file: undefined, experimental_instructions_file: undefined };
}
