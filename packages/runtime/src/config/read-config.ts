/**
 * Reads config.toml: Heddle's own or, where there is none, Codex's. A value of the wrong kind, a mistyped key or an unknown
 * one in a table of Heddle's alone is an error that names file, line and what to write. Nothing in a workspace is
 * configuration. What judges the keys is loaded only for a text that has not been judged before.
 */
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { heddleHome } from "@heddle/models";
import { HeddleError, hostFaultOr, reasonOf } from "@heddle/protocol";
import type { CheckedConfig } from "./check-config.ts";
import { isKnownGood, rememberGood } from "./known-good.ts";
import { parseToml } from "./parse-toml.ts";
import type { ConfigFile } from "./schema.ts";

export interface LoadedConfig {
  readonly config: ConfigFile;
  /** The file it came from; undefined when there is none. */
  readonly file: string | undefined;
  /** Keys of it that have no effect here. */
  readonly passedOver: readonly string[];
}

export interface LoadOptions {
  /** `--ignore-user-config`. */
  readonly isIgnored?: boolean;
  /** Only keys that Codex or Heddle knows. */
  readonly isStrict?: boolean;
  /** Codex keeps a profile in a file of its own beside config.toml. */
  readonly profile?: string | undefined;
  /** What a file would say, to be judged before it does. */
  readonly draft?: { readonly file: string; readonly text: string };
}

export { heddleHome };

export async function makeHome(env: NodeJS.ProcessEnv): Promise<string> {
  const home = heddleHome(env);
  await mkdir(home, { recursive: true, mode: 0o700 });
  return home;
}

export function codexHome(env: NodeJS.ProcessEnv): string {
  const home = env["CODEX_HOME"];
  return home === undefined || home === "" ? path.join(homedir(), ".codex") : path.resolve(home);
}

export function ownConfigFile(env: NodeJS.ProcessEnv): string {
  return path.join(heddleHome(env), "config.toml");
}

export async function loadConfig(env: NodeJS.ProcessEnv, options: LoadOptions = {}): Promise<LoadedConfig> {
  if (options.isIgnored === true) return NONE;
  const own = ownConfigFile(env);
  const { draft } = options;
  const textOf = (file: string): string | undefined => (file === draft?.file ? draft.text : readConfigText(file));
  const ownText = textOf(own);
  if (ownText !== undefined) return placed({ ...(await ownConfig(ownText, own, options)), file: own }, own);
  const codex = path.join(codexHome(env), "config.toml");
  const codexText = textOf(codex);
  const common =
    codexText === undefined ? NONE : placed({ ...(await parseCodex(codexText, codex, options)), file: codex }, codex);
  const { profile } = options;
  if (profile === undefined || common.config.profiles?.[profile] !== undefined || !/^[\w-]+$/.test(profile))
    return common;
  const file = path.join(codexHome(env), `${profile}.config.toml`);
  const text = readConfigText(file);
  if (text === undefined) return common;
  const layer = placed(await parseCodex(text, file, options), file);
  const passedOver = [...new Set([...common.passedOver, ...layer.passedOver])];
  return { config: withLayer(common.config, profile, layer.config), file, passedOver };
}

const NONE: LoadedConfig = { config: {}, file: undefined, passedOver: [] };

type Profile = NonNullable<ConfigFile["profiles"]>[string];

/** Where the base instructions are read from, in place of their text. */
export function instructionsFileOf(config: Profile): string | undefined {
  return config.model_instructions_file ?? config.experimental_instructions_file;
}

/** A file that a configuration names is relative to that configuration. */
export function withPaths(config: ConfigFile, folder: string): ConfigFile {
  const placed = <T extends Profile>(table: T): T => {
    const file = instructionsFileOf(table);
    return file === undefined ? table : { ...table, model_instructions_file: path.resolve(folder, file) };
  };
  const profiles = Object.entries(config.profiles ?? {}).map(([name, table]) => [name, placed(table)]);
  return { ...placed(config), ...(profiles.length === 0 ? {} : { profiles: Object.fromEntries(profiles) }) };
}

function placed<T extends { readonly config: ConfigFile }>(checked: T, file: string): T {
  return { ...checked, config: withPaths(checked.config, path.dirname(file)) };
}

/** A profile's file over the common one: tables are joined key by key, anything else is replaced. */
function withLayer(config: ConfigFile, profile: string, layer: ConfigFile): ConfigFile {
  return {
    ...config,
    ...layer,
    model_providers: { ...config.model_providers, ...layer.model_providers },
    mcp_servers: { ...config.mcp_servers, ...layer.mcp_servers },
    projects: { ...config.projects, ...layer.projects },
    // So that choosing it finds it; what it says is in force already.
    profiles: { ...config.profiles, [profile]: {} },
  };
}

async function ownConfig(text: string, file: string, options: LoadOptions): Promise<CheckedConfig> {
  const cache = path.join(path.dirname(file), "cache");
  // The checks change nothing in a text without keys that are passed over, and only such a text is remembered.
  if (isKnownGood(cache, text)) return { config: parseToml(text, file), passedOver: [] };
  const found = (await import("./check-config.ts")).parseOwn(text, file, options);
  if (found.passedOver.length === 0) rememberGood(cache, text);
  return found;
}

async function parseCodex(text: string, file: string, options: LoadOptions): Promise<CheckedConfig> {
  return (await import("./check-config.ts")).parseCodex(text, file, options);
}

/**
 * undefined when there is none. A small local file at the very beginning of a run: waiting for a thread to read it takes
 * longer than reading it.
 */
export function readConfigText(file: string): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) {
      return undefined;
    }
    const why = reasonOf(error);
    throw new HeddleError(hostFaultOr(error, "config.invalid"), `${file} cannot be read: ${why}`, { cause: error });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new HeddleError("config.invalid", `${file} is not UTF-8 text; fix it or move it away`, { cause: error });
  }
}
