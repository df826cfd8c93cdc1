/**
 * From configuration and flags to what a turn runs with. Later wins: file, profile, `-c`, flag. The provider and the model
 * are checked here, before a home is touched; nothing is ever exchanged for something else silently.
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
import {
  resolveSettings as resolveLayers,
  type SettingsAnswer,
  type SettingsLayer,
  type SettingsPatch,
  type SettingsQuestion,
  type StoredSettings,
} from "@heddle/agent/settings";
import { defined, didYouMean, HeddleError, type SandboxMode, type TurnSettings } from "@heddle/protocol";
import { chooseUnnamed, selectedModel, withLazyLogins, withLogin } from "./logins.ts";
import { providerAuth } from "./provider-auth.ts";
import { environmentOf } from "./environment.ts";
import { instructionsOfConfig, keptInstructions } from "./instructions.ts";
import { searchOfConfig } from "./search.ts";
import { effectiveConfig, profileOf, type Layers } from "../config/layers.ts";
import type { ConfigFile, ProviderTable } from "../config/schema.ts";

/** The words of a command line, as far as they say what one turn runs with. */
export interface Choices {
  readonly model?: string | undefined;
  readonly profile?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  /** The owner has marked this folder as trusted: unless something says otherwise, the agent may write in it. */
  readonly isTrustedFolder?: boolean;
  /** A model on this machine, and who serves it when that is said. */
  readonly local?: { readonly provider: string | undefined };
  /** What the thread says; only its model is taken on. */
  readonly stored?: StoredSettings | undefined;
  /** Absolute. */
  readonly addedRoots: readonly string[];
  /** A script to play instead of asking a model. */
  readonly scriptFile?: string | undefined;
  readonly outputSchema?: unknown;
  readonly webSearch?: SettingsPatch["webSearch"];
  /** A key that is missing is found out by the first request. */
  readonly mayLackKey?: boolean | undefined;
}

export interface Resolved {
  readonly settings: TurnSettings;
  readonly sources: SettingsAnswer["sources"];
  readonly providers: readonly ProviderConfig[];
  readonly provider: Provider;
  /** What was decided without being asked for. */
  readonly notes: readonly string[];
}

/** The model of each provider when none is named. */
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

/** For one run of a command: what its line says of the configuration, too, counts more than what the thread says. */
export async function resolveSettings(layers: Layers, choices: Choices, env: NodeJS.ProcessEnv): Promise<Resolved> {
  const { model, sandboxMode, isTrustedFolder, stored, scriptFile, local, addedRoots, outputSchema, webSearch } =
    choices;
  const isPlayed = scriptFile !== undefined || local !== undefined;
  const resolved = await settle(
    {
      config: effectiveConfig(layers, choices.profile),
      layers: {
        config: [defaultLayer(isTrustedFolder), { source: "file", values: patchOfConfig(layers.file) }],
        stored: stored === undefined || isPlayed ? undefined : modelOf(stored),
        asked: [
          ...callerLayers(layers, choices.profile),
          // `exec` has no user to ask.
          { source: "flag", values: { model, sandboxMode, approvalPolicy: "never", asksUser: false, webSearch } },
        ],
      },
      played: choices,
      mayLackKey: choices.mayLackKey,
    },
    env,
  );
  const { settings } = resolved;
  return {
    ...resolved,
    settings: {
      ...settings,
      writableRoots: [...new Set([...settings.writableRoots, ...addedRoots])],
      ...(outputSchema === undefined ? {} : { outputSchema }),
    },
  };
}

export function defaultLayer(isTrustedFolder: boolean | undefined): SettingsLayer {
  const sandboxMode = isTrustedFolder === true ? "workspace-write" : "read-only";
  return {
    source: "default",
    values: { sandboxMode, networkAccess: false, writableRoots: [], approvalPolicy: "on-request" },
  };
}

/** What was given at the start of this process, over the file. */
export function callerLayers(layers: Layers, profile: string | undefined): readonly SettingsLayer[] {
  return [
    { source: "profile", values: patchOfConfig(profileOf(layers, profile)) },
    { source: "override", values: patchOfConfig(layers.overrides) },
  ];
}

/** A sandbox is chosen for each run of a command; instructions stay. */
function modelOf(stored: StoredSettings): StoredSettings {
  const pick = (patch: SettingsPatch): SettingsPatch => {
    const { provider, model, effort } = patch;
    return { provider, model, effort, ...keptInstructions(patch) };
  };
  return { ...stored, turn: pick(stored.turn), thread: pick(stored.thread) };
}

export function patchOfConfig(config: ConfigFile): SettingsPatch {
  const { approval_policy: policy, sandbox_workspace_write: write = {} } = config;
  return {
    provider: config.model_provider,
    model: config.model,
    effort: config.model_reasoning_effort,
    sandboxMode: config.sandbox_mode,
    networkAccess: write.network_access,
    writableRoots: write.writable_roots,
    approvalPolicy: policy === "on-failure" ? "on-request" : policy,
    contextTokens: config.model_context_window,
    compactAtTokens: config.model_auto_compact_token_limit,
    asksUser: config.ask_user,
    ...instructionsOfConfig(config),
    environment: environmentOf(config),
    webSearch: config.web_search,
    ...searchOfConfig(config),
  };
}

export interface Settling {
  /** The configuration of the owner and of the request as one. */
  readonly config: ConfigFile;
  readonly layers: SettingsQuestion;
  readonly played?: Pick<Choices, "scriptFile" | "local"> | undefined;
  readonly mayLackKey?: Choices["mayLackKey"];
}

/** The one way from layers to what a turn runs with: the provider and the model are chosen and checked here. */
export async function settle(question: Settling, env: NodeJS.ProcessEnv): Promise<Resolved> {
  const { config, played = {}, mayLackKey } = question;
  const stored = question.layers.stored;
  const isScripted = (stored?.thread.provider ?? stored?.turn.provider) === "scripted";
  const layers = isScripted ? { ...question.layers, stored: withoutModel(stored) } : question.layers;
  const { values, sources, isProviderOpen } = resolveLayers(layers);
  const configs = providerConfigs(config, played, env);
  const isPlayed = played.scriptFile !== undefined || played.local !== undefined;
  const named = isPlayed && sources.model !== "flag" ? undefined : values.model;
  const isOfThread = sources.provider === "turn" || sources.provider === "thread";
  const isOpen = !isPlayed && (values.provider === undefined || (isProviderOpen && isOfThread));
  const selected = isOpen && named !== undefined ? await selectedModel(configs, named, env) : undefined;
  const isServed =
    values.provider !== undefined && named !== undefined && canServe(configs, values.provider, named, env);
  const kept = isPlayed || (isOpen && !isServed) ? undefined : values.provider;
  const unnamed = isOpen && named === undefined ? await chooseUnnamed(configs, env) : undefined;
  const providerId =
    selected?.provider ?? kept ?? unnamed?.provider ?? chooseProvider(config, played, selected?.model ?? named);
  const providers = mayLackKey === true ? withLazyLogins(configs, env) : await withLogin(configs, providerId, env);
  const provider = resolveProvider(providers, providerId, env);
  const { model, note } = chooseModel(provider, { named: selected?.model ?? named, config, env });
  // A script with a mistake in it is found now, not at the first request.
  if (provider.wire === "scripted") await provider.script();
  const {
    effort,
    mode,
    contextTokens,
    compactAtTokens,
    asksUser,
    guideNames,
    guideBytes,
    mcpServers = [],
    environment,
    searchOptions,
  } = values;
  const { webSearch = values.impliedSearch } = values;
  const searchSource = sources[values.webSearch === undefined ? "impliedSearch" : "webSearch"] ?? "default";
  const settings: TurnSettings = {
    ...keptInstructions(values),
    ...defined({ guideNames, guideBytes }),
    provider: providerId,
    model,
    ...(effort === undefined ? {} : { effort }),
    sandboxMode: values.sandboxMode ?? "read-only",
    networkAccess: values.networkAccess ?? false,
    writableRoots: [...new Set(values.writableRoots)],
    approvalPolicy: values.approvalPolicy ?? "never",
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(compactAtTokens === undefined ? {} : { compactAtTokens }),
    ...(mode === "plan" ? { mode } : {}),
    ...(asksUser === true ? { asksUser } : {}),
    ...(webSearch === undefined || webSearch === "disabled"
      ? {}
      : { webSearch, ...defined({ searchOptions }), ...(OWNERS.has(searchSource) ? { isSearchByOwner: true } : {}) }),
    ...(mcpServers.length === 0 ? {} : { mcpServers: [...mcpServers] }),
    ...(environment === undefined ? {} : { environment }),
    ...(config.sandbox_ceiling === undefined ? {} : { ceiling: config.sandbox_ceiling }),
  };
  const notes = [unnamed?.note, note].filter((text) => text !== undefined);
  return { settings, sources, providers, provider, notes };
}

/** What only the owner of the machine writes; clients and threads are the others. */
const OWNERS: ReadonlySet<string> = new Set([
  "file",
  "profile",
  "override",
  "flag",
] satisfies SettingsLayer["source"][]);

/** A script that was played once is not played on. */
function withoutModel(stored: StoredSettings | undefined): StoredSettings | undefined {
  if (stored === undefined) return undefined;
  const none = { provider: undefined, model: undefined, effort: undefined };
  return { ...stored, turn: { ...stored.turn, ...none }, thread: { ...stored.thread, ...none } };
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

/** Codex's two variables for a model server that is not at its usual address. */
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
    ...keyOf(table),
    ...(table.auth === undefined ? {} : { auth: providerAuth(table.auth) }),
    ...(table.enabled === undefined ? {} : { isEnabled: table.enabled }),
    ...(table.account === undefined ? {} : { account: table.account }),
    ...(table.adopt_codex_login === undefined ? {} : { adoptsCodexLogin: table.adopt_codex_login }),
    ...(table.http_headers === undefined ? {} : { headers: table.http_headers }),
    ...(table.env_http_headers === undefined ? {} : { envHeaders: table.env_http_headers }),
    ...(table.query_params === undefined ? {} : { query: table.query_params }),
    ...pricesOf(table),
    ...attemptsOf(table),
    ...(table.stream_idle_timeout_ms === undefined ? {} : { idleTimeoutMs: table.stream_idle_timeout_ms }),
  };
}

/** Callers of Codex set the first one; it is meant for exactly this process. */
const OPENAI_VARIABLES = ["CODEX_API_KEY", "OPENAI_API_KEY"];

function keyOf(table: ProviderTable): Pick<ProviderConfig, "envKey" | "usesOpenAiKey"> {
  if (table.env_key !== undefined) return { envKey: table.env_key };
  return table.requires_openai_auth === true ? { envKey: OPENAI_VARIABLES, usesOpenAiKey: true } : {};
}

function pricesOf({ prices }: ProviderTable): Pick<ProviderConfig, "prices"> {
  if (prices === undefined) return {};
  const rates = Object.entries(prices).map(([model, { input, output, cached_input: cached, cache_write: written }]) => [
    model,
    { input, output, cached: cached ?? input, cacheWrite: written ?? input },
  ]);
  return { prices: Object.fromEntries(rates) };
}

/** As in Codex each counts by itself: one that is not given is as without a word. */
function attemptsOf(table: ProviderTable): Pick<ProviderConfig, "maxAttempts" | "requestAttempts"> {
  const { request_max_retries: request, stream_max_retries: stream } = table;
  return {
    ...(stream === undefined ? {} : { maxAttempts: stream + 1 }),
    ...(request === undefined ? {} : { requestAttempts: request + 1 }),
  };
}

function chooseProvider(config: ConfigFile, played: Pick<Choices, "scriptFile" | "local">, model?: string): string {
  if (played.scriptFile !== undefined) return "scripted";
  if (played.local !== undefined) return chooseLocal(config, played);
  return config.model_provider ?? makerOf(model) ?? "openai";
}

interface ModelChoice {
  readonly named: string | undefined;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
}

function chooseModel(provider: Provider, { named, config, env }: ModelChoice): { model: string; note?: string } {
  const model = named ?? DEFAULT_MODELS[provider.id];
  if (model !== undefined) {
    checkModel(provider, model, env);
    return { model };
  }
  const maker =
    config.model_providers?.[provider.id]?.base_url === undefined ? undefined : MAKER_OF_WIRE[provider.wire];
  const usual = maker === undefined ? undefined : DEFAULT_MODELS[maker];
  if (usual !== undefined) return { model: usual, note: `no model is named; asking ${provider.name} for ${usual}` };
  throw new HeddleError("model.unknown", `name a model for provider "${provider.id}": -m MODEL`);
}

/** As with Codex, a provider of the owner's own is asked for the usual model of those who speak as it does. */
const MAKER_OF_WIRE: Partial<Record<Provider["wire"], string>> = {
  "openai-responses": "openai",
  "openai-chat": "openai",
  anthropic: "anthropic",
  gemini: "gemini",
};

/** Who makes a model of this name; asked of a provider that says nothing itself. */
function makerOf(model: string | undefined): string | undefined {
  if (model === undefined) return undefined;
  const { family } = modelInfo({ wire: "openai-chat", vendor: undefined, family: undefined }, model);
  return family === "other" ? undefined : family;
}

/** The provider is still known, and nothing says that it has no such model. */
function canServe(configs: readonly ProviderConfig[], id: string, model: string, env: NodeJS.ProcessEnv): boolean {
  const builtIn = BUILT_IN_PROVIDERS.find((config) => config.id === id);
  const own = configs.find((config) => config.id === id);
  if (builtIn === undefined) return own !== undefined || catalogProvider(heddleHome(env), id) !== undefined;
  return foreignMaker({ id, baseUrl: own?.baseUrl ?? builtIn.baseUrl }, model) === undefined;
}

/** A maker's own address serves only its own models. Any other address may serve any name. */
function foreignMaker({ id, baseUrl }: { readonly id: string; readonly baseUrl?: string | undefined }, model: string) {
  const builtIn = BUILT_IN_PROVIDERS.find((config) => config.id === id);
  const maker = builtIn?.vendor;
  return maker === undefined || baseUrl !== builtIn?.baseUrl || makerOf(model) === maker ? undefined : maker;
}

function checkModel(provider: Provider, model: string, env: NodeJS.ProcessEnv): void {
  const maker = foreignMaker(provider, model);
  if (maker === undefined) return;
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
