/**
 * From configuration and flags to what a turn runs with. Later wins: file, profile, `-c`, flag. The provider and the model
 * are checked here, before a home is touched; nothing is ever exchanged for something else silently.
 */
import { BUILT_IN_PROVIDERS, resolveProvider, type Provider, type ProviderConfig } from "@heddle/models";
import {
  resolveSettings as resolveLayers,
  type SettingsAnswer,
  type SettingsLayer,
  type SettingsPatch,
  type SettingsQuestion,
  type StoredSettings,
} from "@heddle/agent/settings";
import { DEFAULT_MODEL, EMBEDDED, requireRunnerName } from "@heddle/agent/runners";
import { defined, type SandboxMode, type TurnSettings } from "@heddle/protocol";
import { canServe, chooseLocal, chooseModel, chooseProvider } from "./choose-model.ts";
import { withRunners } from "./named-runners.ts";
import { chooseUnnamed, selectedModel, withLazyLogins, withLogin } from "./logins.ts";
import { providerAuth } from "./provider-auth.ts";
import { patchOfConfig } from "./config-patch.ts";
import { chooseEnvelope } from "./envelopes.ts";
import { keptInstructions } from "./instructions.ts";
import { effectiveConfig, profileOf, type Layers } from "../config/layers.ts";
import type { ConfigFile, ProviderTable } from "../config/schema.ts";

/** The words of a command line, as far as they say what one turn runs with. */
export interface Choices {
  readonly runner?: string | undefined;
  readonly model?: string | undefined;
  readonly profile?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  readonly envelope?: string | undefined;
  readonly ceiling?: string | undefined;
  /** The owner has marked this folder as trusted: unless something says otherwise, the agent may write in it. */
  readonly isTrustedFolder?: boolean;
  /** A model on this machine, and who serves it when that is said. */
  readonly local?: { readonly provider: string | undefined };
  /** What the thread says; only its model is taken on. */
  readonly stored?: StoredSettings | undefined;
  /** The only hosts that commands reach. */
  readonly networkHosts?: readonly string[] | undefined;
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
  /** undefined: an agent program asks its models itself. */
  readonly provider: Provider | undefined;
  /** What was decided without being asked for. */
  readonly notes: readonly string[];
}

const WIRES = { responses: "openai-responses", chat: "openai-chat", anthropic: "anthropic", gemini: "gemini" } as const;

const UNATTENDED = { approvalPolicy: "never", asksUser: false } as const;

/** For one run of a command: what its line says of the configuration, too, counts more than what the thread says. */
export async function resolveSettings(layers: Layers, choices: Choices, env: NodeJS.ProcessEnv): Promise<Resolved> {
  const { isTrustedFolder, stored, scriptFile, local, addedRoots, outputSchema } = choices;
  const { runner, model, sandboxMode, envelope, ceiling, networkHosts, webSearch } = choices;
  const isPlayed = scriptFile !== undefined || local !== undefined;
  const resolved = await settle(
    {
      config: effectiveConfig(layers, choices.profile),
      layers: {
        config: [defaultLayer(isTrustedFolder), { source: "file", values: patchOfConfig(layers.file) }],
        stored: stored === undefined ? undefined : (isPlayed ? boundsOf : modelOf)(stored),
        asked: [
          ...callerLayers(layers, choices.profile),
          // `exec` has no user to ask.
          {
            source: "flag",
            values: { runner, model, sandboxMode, envelope, ceiling, networkHosts, webSearch, ...UNATTENDED },
          },
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

/** A script has no model to keep; where the thread is and how far it may go stays. */
function boundsOf(stored: StoredSettings): StoredSettings {
  const pick = ({ envelope, ceiling }: SettingsPatch): SettingsPatch => ({ envelope, ceiling });
  return { ...stored, turn: pick(stored.turn), thread: pick(stored.thread) };
}

/** A sandbox mode is chosen for each run of a command; an envelope that was named, a ceiling and instructions stay. */
function modelOf(stored: StoredSettings): StoredSettings {
  const pick = (patch: SettingsPatch): SettingsPatch => {
    const { runner, provider, model, effort, envelope, ceiling, disabledPlugins } = patch;
    return { runner, provider, model, effort, envelope, ceiling, disabledPlugins, ...keptInstructions(patch) };
  };
  return { ...stored, turn: pick(stored.turn), thread: pick(stored.thread) };
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
  const layers = withRunners(
    isScripted ? { ...question.layers, stored: withoutModel(stored) } : question.layers,
    config.runners ?? {},
  );
  const { values, sources, isProviderOpen } = resolveLayers(layers);
  const isPlayed = played.scriptFile !== undefined || played.local !== undefined;
  const runner = isPlayed ? EMBEDDED : (values.runner ?? EMBEDDED);
  requireRunnerName(config.runners ?? {}, runner);
  const configs = providerConfigs(config, played, env);
  const chosen =
    runner === EMBEDDED
      ? await chooseAsked({ values, sources, isProviderOpen }, { configs, config, played, mayLackKey, env })
      : ofOutside(runner, { config, configs, values });
  const { providerId, model, providers, provider } = chosen;
  const {
    effort,
    mode,
    contextTokens,
    compactAtTokens,
    asksUser,
    guideNames,
    guideBytes,
    mcpServers = [],
    disabledPlugins = [],
    environment,
    searchOptions,
  } = values;
  // As in Codex: who lets commands reach everything lets searches reach the web of today. A word of its own counts more.
  const implied = values.sandboxMode === "danger-full-access" && values.impliedSearch ? "live" : values.impliedSearch;
  const { webSearch = implied } = values;
  const searchSource = sources[values.webSearch === undefined ? "impliedSearch" : "webSearch"] ?? "default";
  const settings: TurnSettings = {
    ...keptInstructions(values),
    ...defined({ guideNames, guideBytes }),
    ...(runner === EMBEDDED ? {} : { runner }),
    provider: providerId,
    model,
    ...(effort === undefined ? {} : { effort }),
    sandboxMode: values.sandboxMode ?? "read-only",
    ...(await chooseEnvelope(values, layers, env)),
    networkAccess: values.networkHosts === undefined && values.networkAccess === true,
    ...(values.networkHosts === undefined ? {} : { networkHosts: [...values.networkHosts] }),
    writableRoots: [...new Set(values.writableRoots)],
    approvalPolicy: values.approvalPolicy ?? "never",
    ...defined({ contextTokens, compactAtTokens, environment }),
    ...(mode === "plan" ? { mode } : {}),
    ...(asksUser === true ? { asksUser } : {}),
    ...(webSearch === undefined || webSearch === "disabled"
      ? {}
      : { webSearch, ...defined({ searchOptions }), ...(OWNERS.has(searchSource) ? { isSearchByOwner: true } : {}) }),
    ...(mcpServers.length === 0 ? {} : { mcpServers: [...mcpServers] }),
    ...(disabledPlugins.length === 0 ? {} : { disabledPlugins: [...disabledPlugins] }),
  };
  return { settings, sources, providers, provider, notes: chosen.notes };
}

interface Asked {
  readonly providerId: string;
  readonly model: string;
  readonly providers: readonly ProviderConfig[];
  readonly provider: Provider | undefined;
  readonly notes: readonly string[];
}

interface Asking {
  readonly configs: readonly ProviderConfig[];
  readonly config: ConfigFile;
  readonly played: Pick<Choices, "scriptFile" | "local">;
  readonly mayLackKey: Choices["mayLackKey"];
  readonly env: NodeJS.ProcessEnv;
}

/** Whom Heddle's own loop asks, with its login. */
async function chooseAsked(
  { values, sources, isProviderOpen }: SettingsAnswer,
  { configs, config, played, mayLackKey, env }: Asking,
): Promise<Asked> {
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
  const notes = [unnamed?.note, note].filter((text) => text !== undefined);
  return { providerId, model, providers, provider, notes };
}

/** An agent program has its own providers and its own login. */
function ofOutside(
  runner: string,
  { config, configs, values }: Pick<Asking, "config" | "configs"> & Pick<SettingsAnswer, "values">,
): Asked {
  const model = values.model ?? config.runners?.[runner]?.model ?? DEFAULT_MODEL;
  return { providerId: runner, model, providers: configs, provider: undefined, notes: [] };
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
