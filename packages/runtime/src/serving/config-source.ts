/**
 * The configuration as clients of a server see and change it: Heddle's own file and, above it, what the command line says.
 * Values that open something (headers, variables of servers) are never shown, only that they are set.
 */
import { createHash } from "node:crypto";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { ConfigEdit, ConfigLayer, ConfigSource } from "@heddle/server";
import { parseOwn } from "../config/check-config.ts";
import { changeConfig, leavesOf, valueAt } from "../config/edit-config.ts";
import { profileOf, readConfiguration, type ConfigChoices, type Configuration } from "../config/layers.ts";
import { loadConfig, ownConfigFile, readConfigText } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { writeWhole } from "../config/edit-config.ts";

export interface ConfigSourceOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly choices: ConfigChoices;
  /** What the file says from now on. */
  readonly onChange: (file: ConfigFile) => void;
}

/** Tables whose values are secrets, or may be. */
const HIDDEN_TABLES: ReadonlySet<string> = new Set(["http_headers", "query_params", "env"]);
const HIDDEN = "[hidden]";

export function configSource(options: ConfigSourceOptions): ConfigSource {
  const { env, choices } = options;
  const file = ownConfigFile(env);
  // One after the other: each is made from what the one before has written.
  let last: Promise<unknown> = Promise.resolve();
  return {
    file,
    async read() {
      const configuration = await readConfiguration(choices, env);
      const { config } = configuration;
      const layers = layersOf(configuration, env);
      return { config: hidden(config), layers: layers.map((layer) => ({ ...layer, config: hidden(layer.config) })) };
    },
    write(edits, expectedVersion) {
      const writing = last.then(() => write(options, { file, edits, expectedVersion }));
      last = writing.catch(() => undefined);
      return writing;
    },
  };
}

/** The first one wins, in the order in which settings are resolved. */
function layersOf(configuration: Configuration, env: NodeJS.ProcessEnv): readonly ConfigLayer[] {
  const { file, overrides, path, choices } = configuration;
  const text = path === undefined ? "" : (readConfigText(path) ?? "");
  const userLayer = (profile: string | null, config: ConfigLayer["config"]): ConfigLayer => ({
    name: { type: "user", file: path ?? ownConfigFile(env), profile },
    version: versionOf(text),
    config,
  });
  const profile = profileOf(configuration, choices.profile);
  const name = choices.profile ?? overrides.profile ?? file.profile ?? null;
  const flags: ConfigLayer = {
    name: { type: "sessionFlags" },
    version: versionOf(JSON.stringify(overrides)),
    config: overrides,
  };
  return [
    ...(Object.keys(overrides).length === 0 ? [] : [flags]),
    ...(Object.keys(profile).length === 0 ? [] : [userLayer(name, profile)]),
    userLayer(null, file),
  ];
}

interface WriteRequest {
  readonly file: string;
  readonly edits: readonly ConfigEdit[];
  readonly expectedVersion: string | undefined;
}

async function write(
  options: ConfigSourceOptions,
  { file, edits, expectedVersion }: WriteRequest,
): ReturnType<ConfigSource["write"]> {
  const { env, choices, onChange } = options;
  if (choices.isIgnored === true) throw readonlyLayer("this server was started with --ignore-user-config");
  const { file: inForce } = await loadConfig(env, choices);
  if (inForce !== undefined && inForce !== file) {
    throw readonlyLayer(`${inForce} is used, which is not Heddle's; create ${file} first`);
  }
  const before = readConfigText(file) ?? "";
  if (expectedVersion !== undefined && expectedVersion !== versionOf(before)) {
    const message = "Configuration was modified since last read. Fetch latest version and retry.";
    throw failed("configVersionConflict", message);
  }
  const after = changed(before, edits, file);
  if (after !== before) {
    await writeWhole(file, after);
    onChange((await loadConfig(env, choices)).config);
  }
  return { version: versionOf(after), overruled: await overruled(options, edits) };
}

function changed(before: string, edits: readonly ConfigEdit[], file: string): string {
  try {
    const after = edits.reduce((text, edit) => {
      if (JSON.stringify(edit.value ?? null).includes(JSON.stringify(HIDDEN))) {
        throw new HeddleError("config.invalid", `${edit.key.join(".")} holds a value that was hidden when it was read`);
      }
      return changeConfig(text, edit, file);
    }, before);
    parseOwn(after, file);
    return after;
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    throw failed("configValidationError", `Invalid configuration: ${error.message}`, error);
  }
}

async function overruled(
  options: ConfigSourceOptions,
  edits: readonly ConfigEdit[],
): Promise<Awaited<ReturnType<ConfigSource["write"]>>["overruled"]> {
  const [above] = layersOf(await readConfiguration(options.choices, options.env), options.env);
  if (above === undefined || above.name.type !== "sessionFlags") return undefined;
  for (const { key } of edits) {
    const value = valueAt(hidden(above.config), key);
    if (value !== undefined) return { layer: above, value, key: key.join(".") };
  }
  return undefined;
}

function versionOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

function hidden(config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const leaves = leavesOf(config).map(({ key, value }) => {
    const isHidden = key.length > 2 && HIDDEN_TABLES.has(key.at(-2) ?? "");
    return { key, value: isHidden ? HIDDEN : value };
  });
  const shown: Record<string, unknown> = {};
  for (const { key, value } of leaves) put(shown, key, value);
  return shown;
}

function put(target: Record<string, unknown>, [first = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    Object.defineProperty(target, first, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  const child = Object.hasOwn(target, first) ? target[first] : undefined;
  const table = typeof child === "object" && child !== null ? { ...child } : {};
  put(table, rest, value);
  put(target, [first], table);
}

function readonlyLayer(why: string): HeddleError {
  return failed("configLayerReadonly", `Only writes to the user config are allowed: ${why}`);
}

/** The codes are those of the original. */
function failed(code: string, message: string, cause?: unknown): HeddleError {
  return new HeddleError("config.invalid", message, { cause, details: { config_write_error_code: code } });
}
