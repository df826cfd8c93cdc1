/**
 * From configuration and flags to what a turn runs with. Later wins: file, profile, `-c`, flag. The provider and the model
 * are checked here, before a home is touched; nothing is ever exchanged for something else without being told.
 */
import {
  BUILT_IN_PROVIDERS,
  catalogProvider,
  heddleHome,
  modelInfo,
  resolveProvider,
  type Provider,
  type ProviderConfig,
} from "@heddle/models";
import { didYouMean, HeddleError, type SandboxMode, type TurnSettings } from "@heddle/protocol";
import { chooseUnnamed, selectedModel, withLazyLogins, withLogin } from "./logins.ts";
import { providerAuth } from "./provider-auth.ts";
import { effectiveConfig, profileOf, type Layers } from "../config/layers.ts";
import type { ConfigFile, ProviderTable } from "../config/schema.ts";

export interface Choices {
  readonly model?: string | undefined;
  readonly profile?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  /** A key that is missing is found out by the first request. */
  readonly mayLackKey?: boolean | undefined;
  /** The owner has marked this folder as trusted: unless something says otherwise, the agent may write in it. */
  readonly isTrustedFolder?: boolean;
  /** A model on this machine, and who serves it when that is said. */
  readonly local?: { readonly provider: string | undefined };
  /** What the thread used last; taken on where nothing else is named. */
  readonly inherited?: Pick<TurnSettings, "provider" | "model" | "effort"> | undefined;
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
  /** What was decided without being asked for. */
  readonly notes: readonly string[];
}

/** What a maker's models are asked for when nobody names one. */
const DEFAULT_MODELS: Readonly<Record<string, string>> = {
  openai: "gpt-5.5",
  anthropic: "claude-sonnet-5-5",
  gemini: "gemini-3.8-flash",
  ollama: "gpt-oss:20b",
  lmstudio: "openai/gpt-oss-20b",
  scripted: "scripted",
  "openai-codex": "gpt-5.5",
};

const WIRES = { responses: "openai-responses", chat: "openai-chat", anthropic: "anthropic", gemini: "gemini" } as const;

export async function resolveSettings(layers: Layers, choices: Choices, env: NodeJS.ProcessEnv): Promise<Resolved> {
  const config = effectiveConfig(layers, choices.profile);
  const inherited = isNamed(layers, choices) ? undefined : choices.inherited;
  const configs = providerConfigs(config, choices, env);
  const isPlayed = choices.scriptFile !== undefined || choices.local !== undefined;
  const named = choices.model ?? (isPlayed ? undefined : config.model);
  const isOpen = inherited === undefined && !isPlayed && config.model_provider === undefined;
  const selected = isOpen && named !== undefined ? await selectedModel(configs, named, env) : undefined;
  const unnamed = isOpen && named === undefined ? await chooseUnnamed(configs, env) : undefined;
  const providerId = inherited?.provider ?? selected?.provider ?? unnamed?.provider ?? chooseProvider(config, choices);
  const providers =
    choices.mayLackKey === true ? withLazyLogins(configs, env) : await withLogin(configs, providerId, env);
  const provider = resolveProvider(providers, providerId, env);
  const model = chooseModel(provider, selected?.model ?? choices.model ?? inherited?.model ?? named, env);
  // A script with a mistake in it is found now, not at the first request.
  if (provider.wire === "scripted") await provider.script();
  const workspaceWrite = config.sandbox_workspace_write ?? {};
  const effort = inherited?.effort ?? config.model_reasoning_effort;
  const settings: TurnSettings = {
    provider: providerId,
    model,
    ...(effort === undefined ? {} : { effort }),
    sandboxMode:
      choices.sandboxMode ??
      config.sandbox_mode ??
      (choices.isTrustedFolder === true ? "workspace-write" : "read-only"),
    networkAccess: workspaceWrite.network_access ?? false,
    writableRoots: [...new Set([...(workspaceWrite.writable_roots ?? []), ...choices.addedRoots])],
    // `exec` has nobody to ask.
    approvalPolicy: "never",
    ...contextSettings(config),
    ...(config.sandbox_ceiling === undefined ? {} : { ceiling: config.sandbox_ceiling }),
    ...(choices.outputSchema === undefined ? {} : { outputSchema: choices.outputSchema }),
  };
  return { settings, providers, provider, notes: unnamed === undefined ? [] : [unnamed.note] };
}

function contextSettings(config: ConfigFile): Pick<TurnSettings, "contextTokens" | "compactAtTokens"> {
  const { model_context_window: contextTokens, model_auto_compact_token_limit: compactAtTokens } = config;
  return {
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(compactAtTokens === undefined ? {} : { compactAtTokens }),
  };
}

/** A model, a provider or an effort is chosen for this run, so the thread's own are not taken on. */
function isNamed({ file, overrides }: Layers, choices: Choices): boolean {
  const profile = profileOf({ file, overrides }, choices.profile);
  const chosen = [overrides, profile].flatMap((layer) => [
    layer.model,
    layer.model_provider,
    layer.model_reasoning_effort,
    "openai_base_url" in layer ? layer.openai_base_url : undefined,
  ]);
  return [choices.model, choices.scriptFile, choices.local, ...chosen].some((value) => value !== undefined);
}

export function providerConfigs(
  config: ConfigFile,
  choices: Pick<Choices, "scriptFile" | "local">,
  env: NodeJS.ProcessEnv,
): readonly ProviderConfig[] {
  const configs: ProviderConfig[] = Object.entries(config.model_providers ?? {}).map(([id, table]) =>
    providerConfig(id, table),
  );
  const openaiUrl = config.openai_base_url ?? (env["OPENAI_BASE_URL"] || undefined);
  const openai: ProviderConfig = {
    id: "openai",
    ...(openaiUrl === undefined ? {} : { baseUrl: openaiUrl }),
    // Callers of Codex set this one; it is meant for exactly this process.
    ...((env["CODEX_API_KEY"] ?? "") === "" ? {} : { envKey: "CODEX_API_KEY" }),
  };
  // A table of its own says it more exactly than the two short forms.
  const table = configs.findIndex(({ id }) => id === "openai");
  if (table >= 0) configs[table] = { ...openai, ...configs[table], id: "openai" };
  else if (Object.keys(openai).length > 1) configs.push(openai);
  const localUrl = choices.local === undefined ? undefined : localAddress(env);
  const local = chooseLocal(config, choices);
  if (localUrl !== undefined && !configs.some(({ id }) => id === local)) configs.push({ id: local, baseUrl: localUrl });
  if (choices.scriptFile !== undefined) configs.push({ id: "scripted", scriptFile: choices.scriptFile });
  return configs;
}

/** Codex's two variables for a model server that is not at its usual place. */
function localAddress(env: NodeJS.ProcessEnv): string | undefined {
  const port = env["CODEX_OSS_PORT"] ?? "";
  return env["CODEX_OSS_BASE_URL"] || (port === "" ? undefined : `http://127.0.0.1:${port}/v1`);
}

function chooseLocal(config: ConfigFile, { local }: Pick<Choices, "local">): string {
  return local?.provider ?? config.oss_provider ?? "ollama";
}

function providerConfig(id: string, table: ProviderTable): ProviderConfig {
  const isBuiltIn = BUILT_IN_PROVIDERS.some((config) => config.id === id);
  const wire = table.wire_api === undefined ? undefined : WIRES[table.wire_api];
  return {
    id,
    ...(table.name === undefined ? {} : { name: table.name }),
    // Without an address of its own it changes an entry that is known, which has its wire.
    ...(wire === undefined && (isBuiltIn || table.base_url === undefined) ? {} : { wire: wire ?? "openai-responses" }),
    ...(table.base_url === undefined ? {} : { baseUrl: table.base_url }),
    ...(table.env_key === undefined ? {} : { envKey: table.env_key }),
    ...(table.auth === undefined ? {} : { auth: providerAuth(table.auth) }),
    ...(table.enabled === undefined ? {} : { isEnabled: table.enabled }),
    ...(table.account === undefined ? {} : { account: table.account }),
    ...(table.adopt_codex_login === undefined ? {} : { adoptsCodexLogin: table.adopt_codex_login }),
    ...(table.http_headers === undefined ? {} : { headers: table.http_headers }),
    ...(table.env_http_headers === undefined ? {} : { envHeaders: table.env_http_headers }),
    ...(table.query_params === undefined ? {} : { query: table.query_params }),
    ...attemptsOf(table),
    ...(table.stream_idle_timeout_ms === undefined ? {} : { idleTimeoutMs: table.stream_idle_timeout_ms }),
  };
}

/** With both, each answer that is asked for may be sent for so often, as Codex does; with one, that one is the budget. */
function attemptsOf(table: ProviderTable): Pick<ProviderConfig, "maxAttempts" | "requestAttempts"> {
  const { request_max_retries: request, stream_max_retries: stream } = table;
  if (request !== undefined && stream !== undefined) return { maxAttempts: stream + 1, requestAttempts: request + 1 };
  const only = request ?? stream;
  return only === undefined ? {} : { maxAttempts: only + 1 };
}

function chooseProvider(config: ConfigFile, choices: Choices): string {
  if (choices.scriptFile !== undefined) return "scripted";
  if (choices.local !== undefined) return chooseLocal(config, choices);
  return config.model_provider ?? makerOf(choices.model ?? config.model) ?? "openai";
}

function chooseModel(provider: Provider, named: string | undefined, env: NodeJS.ProcessEnv): string {
  const model = named ?? DEFAULT_MODELS[provider.id];
  if (model === undefined) {
    throw new HeddleError("model.unknown", `name a model for provider "${provider.id}": -m MODEL`);
  }
  checkModel(provider, model, env);
  return model;
}

/** Who makes a model of this name; asked of a provider that says nothing itself. */
function makerOf(model: string | undefined): string | undefined {
  if (model === undefined) return undefined;
  const { family } = modelInfo({ wire: "openai-chat", vendor: undefined, family: undefined }, model);
  return family === "other" ? undefined : family;
}

/** A maker's own address serves only its own models. Any other address may serve any name. */
function checkModel(provider: Provider, model: string, env: NodeJS.ProcessEnv): void {
  const builtIn = BUILT_IN_PROVIDERS.find(({ id }) => id === provider.id);
  const maker = builtIn?.vendor;
  if (maker === undefined || provider.baseUrl !== builtIn?.baseUrl || makerOf(model) === maker) return;
  const [other = "", ...rest] = model.split("/");
  const isOther = rest.length > 0 && catalogProvider(heddleHome(env), other) !== undefined;
  if (isOther) {
    const meant = `${other}:${rest.join("/")}`;
    throw new HeddleError(
      "model.unknown",
      `${provider.name} has no model "${model}"; for the provider ${other}: -m ${meant}`,
    );
  }
  const example = DEFAULT_MODELS[maker] ?? "";
  const hint = didYouMean(model, Object.values(DEFAULT_MODELS)) || `; write -m ${example} for example`;
  throw new HeddleError("model.unknown", `${provider.name} has no model "${model}"${hint}`);
}
