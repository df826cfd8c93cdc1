/**
 * From configuration and flags to what a turn runs with. Later wins: file, profile, `-c`, flag. The provider and the model
 * are checked here, before a home is touched; nothing is ever exchanged for something else without being told.
 */
import { BUILT_IN_PROVIDERS, modelInfo, resolveProvider, type Provider, type ProviderConfig } from "@heddle/models";
import { HeddleError, type SandboxMode, type TurnSettings } from "@heddle/protocol";
import { didYouMean } from "../suggest.ts";
import type { ConfigFile, ProviderTable } from "./schema.ts";

export interface Choices {
  readonly model?: string | undefined;
  readonly profile?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  /** Absolute. */
  readonly addedRoots: readonly string[];
  /** A script to play instead of asking a model. */
  readonly scriptFile?: string | undefined;
  readonly outputSchema?: unknown;
}

export interface Resolved {
  readonly settings: TurnSettings;
  readonly providers: readonly ProviderConfig[];
  readonly provider: Provider;
}

/** What a maker's models are asked for when nobody names one. */
const DEFAULT_MODELS: Readonly<Record<string, string>> = {
  openai: "gpt-5.5",
  anthropic: "claude-sonnet-5-5",
  gemini: "gemini-3.8-flash",
  scripted: "scripted",
};

const WIRES = { responses: "openai-responses", chat: "openai-chat", anthropic: "anthropic", gemini: "gemini" } as const;

/** What the models package allows in all. */
const MAX_ATTEMPTS = 20;

export async function resolveSettings(
  layers: { readonly file: ConfigFile; readonly overrides: ConfigFile },
  choices: Choices,
  env: NodeJS.ProcessEnv,
): Promise<Resolved> {
  const config = mergeLayers(layers.file, layers.overrides, choices.profile);
  const providers = providerConfigs(config, choices, env);
  const providerId = chooseProvider(config, choices);
  const provider = resolveProvider(providers, providerId, env);
  const model = chooseModel(provider, choices.model ?? (choices.scriptFile === undefined ? config.model : undefined));
  // A script with a mistake in it is found now, not at the first request.
  if (provider.wire === "scripted") await provider.script();
  const workspaceWrite = config.sandbox_workspace_write ?? {};
  const settings: TurnSettings = {
    provider: providerId,
    model,
    ...(config.model_reasoning_effort === undefined ? {} : { effort: config.model_reasoning_effort }),
    sandboxMode: choices.sandboxMode ?? config.sandbox_mode ?? "read-only",
    networkAccess: workspaceWrite.network_access ?? false,
    writableRoots: [...new Set([...(workspaceWrite.writable_roots ?? []), ...choices.addedRoots])],
    // `exec` has nobody to ask.
    approvalPolicy: "never",
    ...(choices.outputSchema === undefined ? {} : { outputSchema: choices.outputSchema }),
  };
  return { settings, providers, provider };
}

function mergeLayers(file: ConfigFile, overrides: ConfigFile, named: string | undefined): ConfigFile {
  const name = named ?? overrides.profile ?? file.profile;
  const profiles = { ...file.profiles, ...overrides.profiles };
  const profile = name === undefined ? {} : profiles[name];
  if (profile === undefined) {
    const known = Object.keys(profiles);
    const hint = known.length === 0 ? "the configuration has none" : `known are ${known.join(", ")}`;
    throw new HeddleError("config.invalid", `there is no profile "${name}"; ${hint}`);
  }
  return {
    ...file,
    ...profile,
    ...overrides,
    sandbox_workspace_write: {
      ...file.sandbox_workspace_write,
      ...profile.sandbox_workspace_write,
      ...overrides.sandbox_workspace_write,
    },
    model_providers: mergeProviders(file.model_providers ?? {}, overrides.model_providers ?? {}),
  };
}

type ProviderTables = Readonly<Record<string, ProviderTable>>;

function mergeProviders(below: ProviderTables, above: ProviderTables): Record<string, ProviderTable> {
  const merged: Record<string, ProviderTable> = { ...below };
  for (const [name, table] of Object.entries(above)) merged[name] = { ...below[name], ...table };
  return merged;
}

export function providerConfigs(
  config: ConfigFile,
  choices: Pick<Choices, "scriptFile">,
  env: NodeJS.ProcessEnv,
): readonly ProviderConfig[] {
  const configs = Object.entries(config.model_providers ?? {}).map(([id, table]) => providerConfig(id, table));
  const openai: ProviderConfig = {
    id: "openai",
    ...(config.openai_base_url === undefined ? {} : { baseUrl: config.openai_base_url }),
    // Callers of Codex set this one; it is meant for exactly this process.
    ...(env["CODEX_API_KEY"] === undefined ? {} : { envKey: "CODEX_API_KEY" }),
  };
  // A table of its own says it more exactly than the two short forms.
  const table = configs.findIndex(({ id }) => id === "openai");
  if (table >= 0) configs[table] = { ...openai, ...configs[table], id: "openai" };
  else if (Object.keys(openai).length > 1) configs.push(openai);
  if (choices.scriptFile !== undefined) configs.push({ id: "scripted", scriptFile: choices.scriptFile });
  return configs;
}

function providerConfig(id: string, table: ProviderTable): ProviderConfig {
  const isBuiltIn = BUILT_IN_PROVIDERS.some((config) => config.id === id);
  const wire = table.wire_api === undefined ? undefined : WIRES[table.wire_api];
  const retries = [table.request_max_retries, table.stream_max_retries].filter((count) => count !== undefined);
  return {
    id,
    ...(table.name === undefined ? {} : { name: table.name }),
    ...(wire === undefined && isBuiltIn ? {} : { wire: wire ?? "openai-responses" }),
    ...(table.base_url === undefined ? {} : { baseUrl: table.base_url }),
    ...(table.env_key === undefined ? {} : { envKey: table.env_key }),
    ...(table.http_headers === undefined ? {} : { headers: table.http_headers }),
    ...(table.env_http_headers === undefined ? {} : { envHeaders: table.env_http_headers }),
    ...(table.query_params === undefined ? {} : { query: table.query_params }),
    // Codex counts retries of the request and of its stream apart; here all attempts are counted together.
    ...(retries.length === 0 ? {} : { maxAttempts: Math.min(MAX_ATTEMPTS, Math.max(...retries) + 1) }),
    ...(table.stream_idle_timeout_ms === undefined ? {} : { idleTimeoutMs: table.stream_idle_timeout_ms }),
  };
}

function chooseProvider(config: ConfigFile, choices: Choices): string {
  if (choices.scriptFile !== undefined) return "scripted";
  return config.model_provider ?? makerOf(choices.model ?? config.model) ?? "openai";
}

function chooseModel(provider: Provider, named: string | undefined): string {
  const model = named ?? DEFAULT_MODELS[provider.id];
  if (model === undefined) {
    throw new HeddleError("model.unknown", `name a model for provider "${provider.id}": -m MODEL`);
  }
  checkModel(provider, model);
  return model;
}

/** Who makes a model of this name; asked of a provider that says nothing itself. */
function makerOf(model: string | undefined): string | undefined {
  if (model === undefined) return undefined;
  const { family } = modelInfo({ wire: "openai-chat", vendor: undefined, family: undefined }, model);
  return family === "other" ? undefined : family;
}

/** A maker's own address serves only its own models. Any other address may serve any name. */
function checkModel(provider: Provider, model: string): void {
  const builtIn = BUILT_IN_PROVIDERS.find(({ id }) => id === provider.id);
  const maker = builtIn?.vendor;
  if (maker === undefined || provider.baseUrl !== builtIn?.baseUrl || makerOf(model) === maker) return;
  const example = DEFAULT_MODELS[maker] ?? "";
  const hint = didYouMean(model, Object.values(DEFAULT_MODELS)) || `; write -m ${example} for example`;
  throw new HeddleError("model.unknown", `${provider.name} has no model "${model}"${hint}`);
}
