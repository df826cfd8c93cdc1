/**
 * Model providers (built in, configured and of the catalog) and the vendors' own programs. Names are found with dashes or
 * underscores and by alias; a name that is unknown, disabled or ambiguous is an error that lists the choices.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { VendorProgram } from "../auth/vendor-status.ts";
import { catalogProvider } from "../catalog/lookup.ts";
import type { Credential } from "../auth/credential.ts";
import { heddleHome } from "../home.ts";
import { isAmbient, type Environment } from "../providers/provider-auth.ts";
import {
  BUILT_IN_PROVIDERS,
  findConfig,
  keyVariable,
  resolveProvider,
  type Provider,
  type ProviderConfig,
} from "../providers/providers.ts";

/** `machine`: credentials of other programs, or printed by a program. */
export type AuthMethod = "apiKey" | "browser" | "device" | "none" | "vendor" | "machine";

interface Entry {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly authMethods: readonly AuthMethod[];
  readonly isEnabled: boolean;
}

/** A model behind Heddle's own loop. */
export interface ModelProviderEntry extends Entry {
  readonly kind: "model";
  readonly config: ProviderConfig;
  /** Throws as `resolveProvider` does. */
  createClient(env: Environment): Provider;
}

/** A program of a vendor with its own login; the runner of that name uses it. */
export interface RunnerEntry extends Entry {
  readonly kind: "runner";
  readonly runner: string;
  readonly program: VendorProgram;
}

export type ProviderEntry = ModelProviderEntry | RunnerEntry;

const ALIASES: Readonly<Record<string, readonly string[]>> = {
  "openai-codex": ["codex", "chatgpt"],
  anthropic: ["claude"],
  gemini: ["google"],
  vertex: ["google-vertex"],
  "vertex-anthropic": ["google-vertex-anthropic"],
  bedrock: ["amazon-bedrock"],
  azure: ["azure-openai"],
  "github-copilot": ["copilot-cli"],
};

const PROGRAMS: readonly RunnerEntry[] = [
  runner("Codex", { id: "codex-cli", program: "codex", statusArgs: ["login", "status"], loginHint: "codex login" }),
  runner("Claude Code", {
    id: "claude-code",
    program: "claude",
    statusArgs: ["auth", "status"],
    loginHint: "claude auth login",
  }),
  runner("GitHub Copilot CLI", { id: "github-copilot", program: "copilot", loginHint: "copilot, then /login" }),
];

function runner(name: string, program: VendorProgram): RunnerEntry {
  const { id } = program;
  const facts = { kind: "runner", isEnabled: true, authMethods: ["vendor"] } as const;
  return { id, name, aliases: ALIASES[id] ?? [], runner: program.program, program, ...facts };
}

export interface Registry {
  /** Built in and configured; those of the catalog are found by name. */
  readonly entries: readonly ProviderEntry[];
  /** By id or alias; `provider.unknown` lists all. */
  find(name: string): ProviderEntry;
  /** The same, for a model provider that may be used: `provider.disabled` otherwise. */
  model(name: string): ModelProviderEntry;
}

export function createRegistry(configs: readonly ProviderConfig[], home: string): Registry {
  const ids = [...new Set([...BUILT_IN_PROVIDERS, ...configs].map(({ id }) => id))];
  const entries: readonly ProviderEntry[] = [...ids.map((id) => modelEntry(configs, id, home)), ...PROGRAMS];
  const find = (name: string): ProviderEntry => {
    const exact = entries.find(({ id }) => id === name);
    if (exact !== undefined) return exact;
    const wanted = normal(name);
    const alike = entries.filter(({ id }) => normal(id) === wanted);
    const found =
      alike.length > 0 ? alike : entries.filter(({ aliases }) => aliases.some((alias) => normal(alias) === wanted));
    const [only, second] = found;
    if (only !== undefined && second === undefined) return only;
    if (only === undefined && catalogProvider(home, wanted) !== undefined) return modelEntry(configs, wanted, home);
    const known = (found.length > 0 ? found : entries).map(({ id }) => id).toSorted();
    const why =
      found.length > 0
        ? `"${name}" may mean ${known.join(" or ")}`
        : `there is no provider "${name}"; known are ${known.join(", ")}, and those of: heddle models --all`;
    throw new HeddleError("provider.unknown", why);
  };
  return {
    entries,
    find,
    model(name) {
      const entry = find(name);
      if (entry.kind !== "model") {
        throw new HeddleError(
          "provider.unknown",
          `${entry.name} is a program of its own; log in with: ${entry.program.loginHint}`,
        );
      }
      if (entry.isEnabled) return entry;
      throw new HeddleError(
        "provider.disabled",
        `${entry.name} is disabled; enable it with: heddle config set model_providers.${entry.id}.enabled true`,
        { details: { provider: entry.id } },
      );
    },
  };
}

/** Model providers, with those of the catalog that have a stored key. */
export function modelEntries(
  registry: Registry,
  stored: readonly { readonly provider: string; readonly type?: string }[],
): readonly ModelProviderEntry[] {
  const own = registry.entries.filter((entry) => entry.kind === "model").filter(({ id }) => id !== "scripted");
  const known = new Set(registry.entries.map(({ id }) => id));
  const names = new Set(stored.filter(({ type }) => type !== "mcpOauth").map(({ provider }) => provider));
  const chosen = [...names].filter((name) => !known.has(name)).flatMap((name) => entryOrNone(registry, name));
  return [...own, ...chosen.filter((entry) => entry.kind === "model")];
}

/** A key may outlive the provider it was stored for. */
function entryOrNone(registry: Registry, name: string): readonly ProviderEntry[] {
  try {
    return [registry.find(name)];
  } catch (error) {
    if (isHeddleError(error)) return [];
    throw error;
  }
}

function modelEntry(configs: readonly ProviderConfig[], id: string, home: string): ModelProviderEntry {
  const config = findConfig(configs, id, home);
  return {
    kind: "model",
    id,
    name: config.name ?? id,
    aliases: ALIASES[id] ?? [],
    authMethods: authMethods(config),
    isEnabled: config.isEnabled !== false,
    config,
    createClient: (env) => resolveProvider(configs, id, env),
  };
}

function authMethods(config: ProviderConfig): readonly AuthMethod[] {
  const { isLoginOnly, envKey, account, adoptsCodexLogin, auth } = config;
  if (auth?.type === "copilot") return ["device"];
  if (isAmbient(auth)) return ["machine"];
  if (isLoginOnly === true) return adoptsCodexLogin === true ? ["vendor"] : ["browser", "device"];
  return envKey === undefined && account === undefined ? ["none"] : ["apiKey"];
}

function normal(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/**
 * Which providers could answer when none is chosen: those with a key in the environment or a stored login. Model servers of
 * this machine need neither, so they count only where the configuration names them.
 */
export function usableProviders(
  configs: readonly ProviderConfig[],
  env: Environment,
  stored: readonly Pick<Credential, "provider" | "health">[],
): readonly string[] {
  const named = new Set(configs.map(({ id }) => id));
  return modelEntries(createRegistry(configs, heddleHome(env)), stored)
    .filter(({ id, config, isEnabled }) => {
      if (!isEnabled || config.wire === "scripted") return false;
      if (keyVariable(config, env) !== undefined || config.key !== undefined) return true;
      if (config.isLoginOnly === true && config.adoptsCodexLogin === true) return true;
      // Credentials of the machine are used only for a provider that the configuration names.
      if (isAmbient(config.auth)) return named.has(id);
      if (stored.some(({ provider, health }) => provider === id && health === "ok")) return true;
      return config.envKey === undefined && config.isLoginOnly !== true && named.has(id);
    })
    .map(({ id }) => id);
}
