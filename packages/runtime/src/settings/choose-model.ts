/** Which provider is asked for which model, where that is not said whole; nothing is ever exchanged for something else silently. */
import {
  BUILT_IN_PROVIDERS,
  catalogProvider,
  heddleHome,
  modelInfo,
  type Provider,
  type ProviderConfig,
} from "@heddle/models";
import { didYouMean, HeddleError } from "@heddle/protocol";
import type { ConfigFile } from "../config/schema.ts";
import type { Choices } from "./settings.ts";

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

export function chooseProvider(
  config: ConfigFile,
  played: Pick<Choices, "scriptFile" | "local">,
  model?: string,
): string {
  if (played.scriptFile !== undefined) return "scripted";
  if (played.local !== undefined) return chooseLocal(config, played);
  return config.model_provider ?? makerOf(model) ?? "openai";
}

interface ModelChoice {
  readonly named: string | undefined;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
}

export function chooseModel(provider: Provider, { named, config, env }: ModelChoice): { model: string; note?: string } {
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
export function canServe(
  configs: readonly ProviderConfig[],
  id: string,
  model: string,
  env: NodeJS.ProcessEnv,
): boolean {
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

export function chooseLocal(config: ConfigFile, { local }: Pick<Choices, "local">): string {
  return local?.provider ?? config.oss_provider ?? "ollama";
}
