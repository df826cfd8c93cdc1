/**
 * The configuration as clients of a server see and change it: the file in force, Heddle's own or Codex's, and above it what
 * the command line says. Keys without effect are shown and written like any other. Values that open something (headers,
 * variables of servers, tokens) are never shown, only that they are set.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { ConfigEdit, ConfigLayer, ConfigSource } from "@heddle/server";
import { changeConfig, leavesOf, valueAt, writeWhole } from "../config/edit-config.ts";
import { isTableOfCodex } from "../config/codex-keys.ts";
import { profileOf, readConfiguration, type ConfigChoices, type Configuration } from "../config/layers.ts";
import { parseToml } from "../config/parse-toml.ts";
import { codexHome, ownConfigFile, readConfigText } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { isTable } from "../config/toml-lines.ts";

export interface ConfigSourceOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly choices: ConfigChoices;
  /** What the file says from now on. */
  readonly onChange: (file: ConfigFile) => void;
}

/** Tables whose values are secrets, or may be. */
const HIDDEN_TABLES: ReadonlySet<string> = new Set(["http_headers", "query_params", "env"]);
/** Keys of Codex that hold a secret themselves; Heddle's name a variable. */
const HIDDEN_KEYS = /(token|secret|password|api_key)$/;
const HIDDEN = "[hidden]";

export function configSource(options: ConfigSourceOptions): ConfigSource {
  const { env, choices } = options;
  // One after the other: each is made from what the one before has written.
  let last: Promise<unknown> = Promise.resolve();
  return {
    get file() {
      return fileInForce(env);
    },
    async read() {
      await last;
      const configuration = await readConfiguration(choices, env);
      const layers = layersOf(configuration, env).map((layer) => ({ ...layer, config: hidden(layer.config) }));
      const below = layers.toReversed().map(({ config }) => config);
      return { config: joined([...below, hidden(configuration.config)]), layers };
    },
    write(edits, expectedVersion) {
      const writing = last.then(() => write(options, edits, expectedVersion));
      last = writing.catch(() => undefined);
      return writing;
    },
  };
}

/** Codex's where there is no other: whoever asks is written for Codex, and is told which file it was. */
function fileInForce(env: NodeJS.ProcessEnv): string {
  const [own, codex] = [ownConfigFile(env), path.join(codexHome(env), "config.toml")];
  return readConfigText(own) === undefined && readConfigText(codex) !== undefined ? codex : own;
}

/** The first one wins, in the order in which settings are resolved. */
function layersOf(configuration: Configuration, env: NodeJS.ProcessEnv): readonly ConfigLayer[] {
  const { file, overrides, path: read, choices } = configuration;
  const userLayer = (of: string, profile: string | null, config?: ConfigLayer["config"]): ConfigLayer => {
    const text = readConfigText(of) ?? "";
    return {
      name: { type: "user", file: of, profile },
      version: versionOf(text),
      config: config ?? parseToml(text, of),
    };
  };
  const base = fileInForce(env);
  const profile = profileOf(configuration, choices.profile);
  const name = choices.profile ?? overrides.profile ?? file.profile ?? null;
  const flags: ConfigLayer = {
    name: { type: "sessionFlags" },
    version: versionOf(JSON.stringify(overrides)),
    config: overrides,
  };
  return [
    ...(Object.keys(overrides).length === 0 ? [] : [flags]),
    ...(Object.keys(profile).length === 0 ? [] : [userLayer(base, name, profile)]),
    ...(read === undefined || read === base ? [] : [userLayer(read, name)]),
    ...(choices.isIgnored === true ? [] : [userLayer(base, null)]),
  ];
}

/** Somebody who edits the file by hand saves now and then. */
const MAX_TRIES = 5;

async function write(
  options: ConfigSourceOptions,
  edits: readonly ConfigEdit[],
  expectedVersion: string | undefined,
): ReturnType<ConfigSource["write"]> {
  const { env, choices, onChange } = options;
  if (choices.isIgnored === true) throw readonlyLayer("this server was started with --ignore-user-config");
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const file = fileInForce(env);
    const stored = readConfigText(file);
    const before = stored ?? "";
    if (expectedVersion !== undefined && expectedVersion !== versionOf(before)) throw conflict();
    const { after, configuration } = await changed(options, before, { file, edits });
    if (after !== before && !(await writeWhole(file, after, stored))) continue;
    if (after !== before) onChange(configuration.file);
    return { version: versionOf(after), overruled: overruled(configuration, edits, env) };
  }
  throw conflict();
}

/** The text with its edits, and what it comes to with everything around it: what a server cannot run with is not written. */
async function changed(
  { env, choices }: ConfigSourceOptions,
  before: string,
  { file, edits }: { readonly file: string; readonly edits: readonly ConfigEdit[] },
): Promise<{ readonly after: string; readonly configuration: Configuration }> {
  try {
    const after = edits.reduce((text, edit) => {
      if (JSON.stringify(edit.value ?? null).includes(JSON.stringify(HIDDEN))) {
        throw new HeddleError("config.invalid", `${edit.key.join(".")} holds a value that was hidden when it was read`);
      }
      refuseUnfit(edit);
      return changeConfig(text, edit, file);
    }, before);
    return { after, configuration: await readConfiguration({ ...choices, draft: { file, text: after } }, env) };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    throw failed("configValidationError", `Invalid configuration: ${error.message}`, error);
  }
}

/** What the schema does not judge, because the key has no effect here: the other program must still be able to read its file. */
function refuseUnfit({ key, value }: ConfigEdit): void {
  if (value !== null && !isTable(value) && isTableOfCodex(key)) {
    throw new HeddleError("config.invalid", `${key.join(".")} is a table; write the keys in it`);
  }
  const empty = isTable(value) ? pathToNull(value, key) : undefined;
  if (empty === undefined) return;
  const message = `${empty.join(".")} has no value; leave it out, or write null for the key itself`;
  throw new HeddleError("config.invalid", message);
}

function pathToNull(value: unknown, key: readonly string[]): readonly string[] | undefined {
  if (value === null) return key;
  if (!isTable(value)) return undefined;
  for (const [name, child] of Object.entries(value)) {
    const found = pathToNull(child, [...key, name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function overruled(
  configuration: Configuration,
  edits: readonly ConfigEdit[],
  env: NodeJS.ProcessEnv,
): Awaited<ReturnType<ConfigSource["write"]>>["overruled"] {
  const [above] = layersOf(configuration, env);
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
  const shown: Record<string, unknown> = {};
  for (const { key, value } of leavesOf(config)) {
    const isHidden =
      (key.length > 2 && HIDDEN_TABLES.has(key.at(-2) ?? "")) ||
      (typeof value === "string" && (HIDDEN_KEYS.test(key.at(-1) ?? "") || opensByItself(value)));
    put(shown, key, isHidden ? HIDDEN : value);
  }
  return shown;
}

/** An address with a name, a password or a query: any of them may be a key. */
function opensByItself(value: string): boolean {
  const url = value.includes("://") ? URL.parse(value) : null;
  return url !== null && `${url.username}${url.password}${url.search}` !== "";
}

/** Later wins, leaf by leaf. */
function joined(configs: readonly Readonly<Record<string, unknown>>[]): Readonly<Record<string, unknown>> {
  const whole: Record<string, unknown> = {};
  for (const { key, value } of configs.flatMap((config) => leavesOf(config))) put(whole, key, value);
  return whole;
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

function conflict(): HeddleError {
  const message = "Configuration was modified since last read. Fetch latest version and retry.";
  return failed("configVersionConflict", message);
}

/** The codes are those of the original. */
function failed(code: string, message: string, cause?: unknown): HeddleError {
  return new HeddleError("config.invalid", message, { cause, details: { config_write_error_code: code } });
}
