/** The layers of a configuration, read once: the file with its profiles, and above it what the caller says. */
import { HeddleError } from "@heddle/protocol";
import type { CheckedConfig } from "./check-config.ts";
import { codexHome, loadConfig, ownConfigFile, withPaths, type LoadOptions } from "./read-config.ts";
import type { ConfigFile, EnvironmentTable, McpServerTable, NotifyTable, ProviderTable } from "./schema.ts";
import type { RunnerTable } from "./runner-table.ts";

/** What a caller says about the configuration, on the command line or where it opens an engine. */
export interface ConfigChoices extends LoadOptions {
  /** `-c KEY=VALUE`: the value is TOML, or text. */
  readonly overrides?: readonly string[];
}

export interface Layers {
  readonly file: ConfigFile;
  readonly overrides: ConfigFile;
}

export interface Configuration extends Layers {
  readonly choices: ConfigChoices;
  /** The file it came from; undefined when there is none. */
  readonly path: string | undefined;
  /** Codex's home, where its file is the one; else undefined. */
  readonly codexHome: string | undefined;
  /** File, profile and overrides as one. */
  readonly config: ConfigFile;
  /** What is wrong with it and stops nothing. */
  readonly warnings: readonly string[];
}

export async function readConfiguration(choices: ConfigChoices, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const { config: overrides, passedOver } = await readOverrides(choices);
  const loaded = await loadConfig(env, choices);
  const { config: file, file: path } = loaded;
  const unused = [...passedOver.map((key) => `-c ${key}`), ...loaded.passedOver];
  const warnings = unused.length === 0 ? [] : [`keys of the configuration that have no effect here: ${named(unused)}`];
  const config = effectiveConfig({ file, overrides }, choices.profile);
  warnings.push(...deprecatedSearch(config));
  const home = path === undefined || path === ownConfigFile(env) ? undefined : codexHome(env);
  return { choices, path, codexHome: home, file, overrides, config, warnings };
}

function deprecatedSearch({ features = {} }: ConfigFile): readonly string[] {
  return Object.keys(features)
    .filter((name) => name.startsWith("web_search"))
    .map((name) => `features.${name} is deprecated; write web_search = "live", "indexed", "cached" or "disabled"`);
}

const MAX_NAMED = 12;

/** A configuration that was made for Codex may have many. */
function named(keys: readonly string[]): string {
  const more = keys.length - MAX_NAMED;
  return `${keys.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Most runs have none, and what reads them need not be loaded then. */
async function readOverrides({ overrides = [], ...loading }: ConfigChoices): Promise<CheckedConfig> {
  if (overrides.length === 0) return { config: {}, passedOver: [] };
  const { config, passedOver } = (await import("./check-config.ts")).parseOverrides(overrides, loading);
  return { config: withPaths(config, process.cwd()), passedOver };
}

type Profile = NonNullable<ConfigFile["profiles"]>[string];

export function profileOf({ file, overrides }: Layers, named: string | undefined): Profile {
  const name = named ?? overrides.profile ?? file.profile;
  const profiles = { ...file.profiles, ...overrides.profiles };
  const profile = name === undefined ? {} : Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile !== undefined) return profile;
  const known = Object.keys(profiles);
  const hint = known.length === 0 ? "the configuration has none" : `known are ${known.join(", ")}`;
  throw new HeddleError("config.invalid", `there is no profile "${name}"; ${hint}`);
}

/** File, profile and `-c` as one. */
export function effectiveConfig(layers: Layers, named: string | undefined): ConfigFile {
  return mergeConfig(mergeConfig(layers.file, profileOf(layers, named)), layers.overrides);
}

/** Tables are joined key by key, anything else is replaced. */
export function mergeConfig(below: ConfigFile, above: ConfigFile): ConfigFile {
  return {
    ...below,
    ...above,
    sandbox_workspace_write: { ...below.sandbox_workspace_write, ...above.sandbox_workspace_write },
    model_providers: mergeTables<ProviderTable>(below.model_providers, above.model_providers),
    mcp_servers: mergeTables<McpServerTable>(below.mcp_servers, above.mcp_servers),
    projects: mergeTables(below.projects, above.projects),
    runners: mergeTables<RunnerTable>(below.runners, above.runners),
    shell_environment_policy: joinEnvironment(below.shell_environment_policy, above.shell_environment_policy),
    sandbox_limits: { ...below.sandbox_limits, ...above.sandbox_limits },
    day_limits: {
      ...below.day_limits,
      ...above.day_limits,
      workspaces: mergeTables(below.day_limits?.workspaces, above.day_limits?.workspaces),
    },
    tasks: { ...below.tasks, ...above.tasks },
    inbox: { ...below.inbox, ...above.inbox },
    notify: mergeTables<NotifyTable>(below.notify, above.notify),
  };
}

function joinEnvironment(below: EnvironmentTable = {}, above: EnvironmentTable = {}): EnvironmentTable {
  const set = { ...below.set, ...above.set };
  return { ...below, ...above, ...(Object.keys(set).length === 0 ? {} : { set }) };
}

type Tables<T> = Readonly<Record<string, T>>;

function mergeTables<T extends object>(below: Tables<T> = {}, above: Tables<T> = {}): Record<string, T> {
  const merged: Record<string, T> = { ...below };
  for (const [name, table] of Object.entries(above)) merged[name] = { ...below[name], ...table };
  return merged;
}
