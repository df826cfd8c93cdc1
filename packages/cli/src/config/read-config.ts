/**
 * Reads config.toml. Heddle's own file is strict: a key it does not know or a value of the wrong kind is an error that
 * names file, line and what to write. Without one, Codex's file is read for the keys both know. Nothing is ever written,
 * and nothing in a workspace is configuration.
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { BUILT_IN_PROVIDERS } from "@heddle/models";
import { HeddleError } from "@heddle/protocol";
import { parse, TomlError } from "smol-toml";
import type { z } from "zod";
import { didYouMean } from "../suggest.ts";
import { CODEX_ONLY_KEYS, ConfigFile } from "./schema.ts";
import { lineOfKey, splitKey } from "./toml-lines.ts";

export interface LoadedConfig {
  readonly config: ConfigFile;
  /** The file it came from; undefined when there is none. */
  readonly file: string | undefined;
}

export function heddleHome(env: NodeJS.ProcessEnv): string {
  const home = env["HEDDLE_HOME"];
  return home === undefined || home === "" ? path.join(homedir(), ".heddle") : path.resolve(home);
}

export async function loadConfig(env: NodeJS.ProcessEnv): Promise<LoadedConfig> {
  const own = path.join(heddleHome(env), "config.toml");
  const ownText = await readText(own);
  if (ownText !== undefined) return { config: parseOwn(ownText, own), file: own };
  const codexHome = env["CODEX_HOME"];
  const codex = path.join(
    codexHome === undefined || codexHome === "" ? path.join(homedir(), ".codex") : path.resolve(codexHome),
    "config.toml",
  );
  const codexText = await readText(codex);
  if (codexText === undefined) return { config: {}, file: undefined };
  return { config: parseCodex(codexText, codex), file: codex };
}

/** `-c key=value`: the value is TOML, or the bare text when it is not. */
export function parseOverrides(overrides: readonly string[]): ConfigFile {
  const raw: Record<string, unknown> = Object.create(null);
  for (const override of overrides) {
    const equals = override.indexOf("=");
    const key = splitKey(override.slice(0, Math.max(0, equals)).trim());
    const [first] = key;
    if (equals < 1 || first === undefined) {
      throw new HeddleError("usage.invalid", `-c "${override}" is not key=value; write -c model="gpt-5.1" for example`);
    }
    if (!CODEX_ONLY_KEYS.has(first) && !first.startsWith("experimental_")) {
      setAt(raw, key, tomlValue(override.slice(equals + 1)));
    }
  }
  return checked(raw, (key) => `-c ${key.join(".")}`);
}

function parseOwn(text: string, file: string): ConfigFile {
  const config = checked(parseToml(text, file), (key) => place(text, file, key));
  for (const [name, table] of Object.entries(config.model_providers ?? {})) {
    if (table.base_url !== undefined || BUILT_IN_PROVIDERS.some(({ id }) => id === name)) continue;
    const where = place(text, file, ["model_providers", name]);
    throw new HeddleError(
      "config.invalid",
      `${where}: model_providers.${name} has no address; add base_url = "https://…"`,
    );
  }
  return config;
}

/** Codex's file has many keys that mean nothing here; they are dropped before the rest is checked. */
function parseCodex(text: string, file: string): ConfigFile {
  const raw = onlyKnown(parseToml(text, file), Object.keys(ConfigFile.shape));
  // Codex allows a table of finer rules here; whoever wrote one wants to be asked.
  if (typeof raw["approval_policy"] === "object") raw["approval_policy"] = "on-request";
  const providerKeys = Object.keys(ConfigFile.shape.model_providers.unwrap().valueType.shape);
  const profileKeys = Object.keys(ConfigFile.shape.profiles.unwrap().valueType.shape);
  const workspaceKeys = Object.keys(ConfigFile.shape.sandbox_workspace_write.unwrap().shape);
  for (const [key, known] of [
    ["model_providers", providerKeys],
    ["profiles", profileKeys],
  ] as const) {
    const tables = raw[key];
    if (!isTable(tables)) continue;
    for (const [name, table] of Object.entries(tables)) if (isTable(table)) tables[name] = onlyKnown(table, known);
  }
  const workspace = raw["sandbox_workspace_write"];
  if (isTable(workspace)) raw["sandbox_workspace_write"] = onlyKnown(workspace, workspaceKeys);
  return checked(raw, (key) => place(text, file, key));
}

async function readText(file: string): Promise<string | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) {
      return undefined;
    }
    const why = error instanceof Error ? error.message : String(error);
    throw new HeddleError("config.invalid", `${file} cannot be read: ${why}`, { cause: error });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new HeddleError("config.invalid", `${file} is not UTF-8 text; mend it or move it away`, { cause: error });
  }
}

function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [why = "not TOML"] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new HeddleError("config.invalid", `${file}:${error.line}: ${why}; mend this line`, { cause: error });
  }
}

type Place = (key: readonly string[]) => string;

function checked(raw: unknown, where: Place): ConfigFile {
  const result = ConfigFile.safeParse(raw);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new HeddleError("config.invalid", issue === undefined ? "the configuration is wrong" : explain(issue, where));
}

function place(text: string, file: string, key: readonly string[]): string {
  const line = lineOfKey(text, key);
  return line === undefined ? file : `${file}:${line}`;
}

function explain(issue: z.core.$ZodIssue, where: Place): string {
  const key = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const [unknown = ""] = issue.keys;
    const known = knownKeys(key);
    return `${where([...key, unknown])}: unknown key "${unknown}"${didYouMean(unknown, known) || `; known here: ${known.join(", ")}`}`;
  }
  const name = key.join(".");
  if (issue.code === "invalid_value") {
    return `${where(key)}: ${name} must be one of ${issue.values.map(String).join(", ")}`;
  }
  if (issue.code === "invalid_type") {
    return `${where(key)}: ${name} must be ${article(issue.expected)}`;
  }
  if (issue.code === "invalid_format" && issue.format === "url") {
    return `${where(key)}: ${name} must be an http or https address`;
  }
  return `${where(key)}: ${name} ${issue.message}`;
}

function article(kind: string): string {
  const word = { string: "a string in quotes", boolean: "true or false", record: "a table", object: "a table" }[kind];
  return word ?? (/^[aeiou]/.test(kind) ? `an ${kind}` : `a ${kind}`);
}

function knownKeys(key: readonly string[]): readonly string[] {
  if (key.length === 0) return Object.keys(ConfigFile.shape);
  if (key.includes("sandbox_workspace_write")) {
    return Object.keys(ConfigFile.shape.sandbox_workspace_write.unwrap().shape);
  }
  const table = key[0] === "profiles" ? ConfigFile.shape.profiles : ConfigFile.shape.model_providers;
  return Object.keys(table.unwrap().valueType.shape);
}

function tomlValue(text: string): unknown {
  try {
    return parse(`value = ${text}`)["value"];
  } catch (error) {
    if (error instanceof TomlError) return text.trim();
    throw error;
  }
}

function setAt(target: Record<string, unknown>, key: readonly string[], value: unknown): void {
  let table = target;
  for (const part of key.slice(0, -1)) {
    const existing = Object.hasOwn(table, part) ? table[part] : undefined;
    const next = isTable(existing) ? existing : Object.create(null);
    table[part] = next;
    table = next;
  }
  const last = key.at(-1);
  if (last !== undefined) table[last] = value;
}

function onlyKnown(table: Record<string, unknown>, known: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).filter(([key]) => known.includes(key)));
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
