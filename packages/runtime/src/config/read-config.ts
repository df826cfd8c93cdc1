/**
 * Reads config.toml. Heddle's own file is strict: a key it does not know or a value of the wrong kind is an error that
 * names file, line and what to write. Without one, Codex's file is read for the keys both know. Nothing in a workspace is
 * configuration. What judges the keys is loaded only for a text that has not been judged before.
 */
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { heddleHome } from "@heddle/models";
import { HeddleError, hostFaultOr, reasonOf } from "@heddle/protocol";
import { isKnownGood, rememberGood } from "./known-good.ts";
import { parseToml } from "./parse-toml.ts";
import type { ConfigFile } from "./schema.ts";

export interface LoadedConfig {
  readonly config: ConfigFile;
  /** The file it came from; undefined when there is none. */
  readonly file: string | undefined;
}

export interface LoadOptions {
  /** `--ignore-user-config`. */
  readonly isIgnored?: boolean;
  /** Codex's file too may hold only keys that Codex or Heddle knows. */
  readonly isStrict?: boolean;
  /** Codex keeps a profile in a file of its own beside config.toml. */
  readonly profile?: string | undefined;
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
  if (options.isIgnored === true) return { config: {}, file: undefined };
  const own = ownConfigFile(env);
  const ownText = readConfigText(own);
  if (ownText !== undefined) return { config: await ownConfig(ownText, own), file: own };
  const codex = path.join(codexHome(env), "config.toml");
  const codexText = readConfigText(codex);
  const config = codexText === undefined ? {} : await parseCodex(codexText, codex, options);
  const { profile } = options;
  if (profile !== undefined && config.profiles?.[profile] === undefined && /^[\w-]+$/.test(profile)) {
    const layer = path.join(codexHome(env), `${profile}.config.toml`);
    const layerText = readConfigText(layer);
    if (layerText !== undefined)
      return { config: withLayer(config, profile, await parseCodex(layerText, layer, options)), file: layer };
  }
  return { config, file: codexText === undefined ? undefined : codex };
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

async function ownConfig(text: string, file: string): Promise<ConfigFile> {
  const cache = path.join(path.dirname(file), "cache");
  // The checks change nothing in what they let pass.
  if (isKnownGood(cache, text)) return parseToml(text, file);
  const config = (await import("./check-config.ts")).parseOwn(text, file);
  rememberGood(cache, text);
  return config;
}

async function parseCodex(text: string, file: string, options: LoadOptions): Promise<ConfigFile> {
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
