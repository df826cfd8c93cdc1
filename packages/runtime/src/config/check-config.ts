/** Judges what a configuration says, key by key, and says of a mistake where it is and what to write instead. */
import path from "node:path";
import { BUILT_IN_PROVIDERS, catalogProvider } from "@heddle/models";
import { didYouMean, nearest, HeddleError, PLAIN } from "@heddle/protocol";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { parseToml } from "./parse-toml.ts";
import type { LoadOptions } from "./read-config.ts";
import { CODEX_ONLY_KEYS, ConfigFile } from "./schema.ts";
import { isTable, lineOfKey, splitKey } from "./toml-lines.ts";

export interface Overrides {
  readonly config: ConfigFile;
  /** Keys that have no effect here. */
  readonly passedOver: readonly string[];
}

/** Everything before the first equals sign that stands outside quotes. */
const KEY = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^="'])*(?==)/;

interface OverrideOptions extends LoadOptions {
  /** What the user wrote before the key; errors begin with it. */
  readonly writtenAfter?: string;
}

export function parseOverrides(overrides: readonly string[], options: OverrideOptions = {}): Overrides {
  const entries = overrides.map((override): Entry => {
    const equals = KEY.exec(override)?.[0].length ?? 0;
    const key = splitKey(override.slice(0, Math.max(0, equals)).trim());
    if (equals >= 1 && key.length > 0) return { key, value: tomlValue(override.slice(equals + 1)) };
    throw new HeddleError("usage.invalid", `-c "${override}" is not key=value; write -c model="gpt-5.1" for example`);
  });
  return checkEntries(entries, options);
}

/** Values as a client of a server sends them: nested, or under keys that are paths; null says nothing. */
export function checkValues(values: Readonly<Record<string, unknown>>): ConfigFile {
  const entries = Object.entries(values).map(([key, value]) => ({
    key: splitKey(key.trim()),
    value: withoutNulls(value),
  }));
  return checkEntries(
    entries.filter(({ key, value }) => key.length > 0 && value !== undefined),
    { writtenAfter: "config" },
  ).config;
}

interface Entry {
  readonly key: readonly string[];
  readonly value: unknown;
}

function checkEntries(entries: readonly Entry[], { writtenAfter = "-c", isStrict }: OverrideOptions): Overrides {
  const raw: Record<string, unknown> = Object.create(null);
  const passedOver: string[] = [];
  for (const { key, value } of entries) {
    const [first = ""] = key;
    // Codex knows one program under this name; a table of sinks has names below it.
    if (isCodexOnly(first) && !(first === "notify" && key.length > 1)) continue;
    if (isForeign(first) && isStrict !== true) passedOver.push(first);
    else setAt(raw, key, value);
  }
  return { config: checked(raw, (key) => `${writtenAfter} ${key.join(".")}`), passedOver: [...new Set(passedOver)] };
}

function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (!isTable(value)) return value;
  const entries = Object.entries(value).map(([key, child]) => [key, withoutNulls(child)] as const);
  return Object.fromEntries(entries.filter(([, child]) => child !== undefined));
}

function isCodexOnly(key: string): boolean {
  return CODEX_ONLY_KEYS.has(key) || key.startsWith("experimental_");
}

/** Not one of ours, and not near one either: a slip of the finger must not pass for a key of another program. */
function isForeign(key: string): boolean {
  const known = knownKeys([]);
  return !known.includes(key) && nearest(key, known) === undefined && /^[a-z]\w*$/.test(key);
}

/** The whole text of Heddle's own file, checked. */
export function parseOwn(text: string, file: string): ConfigFile {
  const config = checked(parseToml(text, file), (key) => positionOf(text, file, key));
  for (const [name, table] of Object.entries(config.model_providers ?? {})) {
    const isHosted = table.auth?.type === "vertex" || table.auth?.type === "bedrock";
    if (table.base_url !== undefined || isHosted || BUILT_IN_PROVIDERS.some(({ id }) => id === name)) continue;
    if (catalogProvider(path.dirname(file), name) !== undefined) continue;
    const where = positionOf(text, file, ["model_providers", name]);
    throw new HeddleError(
      "config.invalid",
      `${where}: model_providers.${name} has no address; add base_url = "https://…"`,
    );
  }
  for (const [name, { command, url }] of Object.entries(config.mcp_servers ?? {})) {
    if ((command === undefined) !== (url === undefined)) continue;
    const where = positionOf(text, file, ["mcp_servers", name]);
    throw new HeddleError(
      "config.invalid",
      `${where}: mcp_servers.${name} needs either command, for a program to start, or url, for a server to reach`,
    );
  }
  return config;
}

/**
 * Codex means something else by them, or keeps the trust they need elsewhere: Heddle runs only hooks of its own
 * configuration, and tells only sinks of its own what happens.
 */
const OWN_ONLY: ReadonlySet<string> = new Set(["hooks", "notify", "inbox"]);

/** Codex's file has many keys that mean nothing here; they are dropped before the rest is checked. */
export function parseCodex(text: string, file: string, { isStrict }: Pick<LoadOptions, "isStrict">): ConfigFile {
  const whole = parseToml(text, file);
  const raw: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(whole)) {
    if (Object.hasOwn(ConfigFile.shape, key) && !OWN_ONLY.has(key)) raw[key] = value;
    else if (isStrict === true && key !== "hooks" && !isCodexOnly(key)) {
      throw new HeddleError("config.invalid", `${positionOf(text, file, [key])}: unknown key "${key}"`);
    }
  }
  // Codex allows a table of finer rules here; its author wants to be asked.
  if (typeof raw["approval_policy"] === "object") raw["approval_policy"] = "on-request";
  if (isTable(raw["model_providers"])) raw["model_providers"] = withTokenCommands(raw["model_providers"]);
  return checked(onlyKnown(ConfigFile, raw), (key) => positionOf(text, file, key));
}

/** Codex knows one kind of `auth`, a program and its arguments. */
function withTokenCommands(providers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(providers).map(([id, table]) => {
      const auth = isTable(table) ? table["auth"] : undefined;
      if (!isTable(table) || !isTable(auth) || typeof auth["command"] !== "string") return [id, table];
      const args = Array.isArray(auth["args"]) ? auth["args"] : [];
      const everyMs = typeof auth["refresh_interval_ms"] === "number" ? auth["refresh_interval_ms"] : 0;
      const command = {
        type: "command",
        command: [auth["command"], ...args],
        ...(auth["timeout_ms"] === undefined ? {} : { timeout_ms: auth["timeout_ms"] }),
        ...(everyMs < 1000 ? {} : { refresh_seconds: Math.round(everyMs / 1000) }),
      };
      return [id, { ...table, auth: command }];
    }),
  );
}

/** Keys that a program gives as one object, as the file would hold them. */
export function checkTable(table: Readonly<Record<string, unknown>>): ConfigFile {
  return checked(table, (key) => `config.${key.join(".")}`);
}

type PositionOf = (key: readonly string[]) => string;

function checked(raw: unknown, where: PositionOf): ConfigFile {
  const result = ConfigFile.safeParse(raw, PLAIN);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new HeddleError(
    "config.invalid",
    issue === undefined ? "the configuration is not valid" : explain(issue, where),
  );
}

function positionOf(text: string, file: string, key: readonly string[]): string {
  const line = lineOfKey(text, key);
  return line === undefined ? file : `${file}:${line}`;
}

function explain(issue: z.core.$ZodIssue, where: PositionOf): string {
  const key = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const [unknown = ""] = issue.keys;
    const known = knownKeys(key);
    return `${where([...key, unknown])}: unknown key "${unknown}"${didYouMean(unknown, known) || `; known here: ${known.join(", ")}`}`;
  }
  // As TOML names them.
  const message = issue.message.replace(/ a string$/, " a string in quotes").replace(/ an object$/, " a table");
  return `${where(key)}: ${key.join(".")} ${message}`;
}

function knownKeys(key: readonly string[]): readonly string[] {
  let schema: z.ZodType | undefined = ConfigFile;
  for (const part of key) schema = schema === undefined ? undefined : childOf(schema, part);
  const inner = schema === undefined ? undefined : unwrapped(schema);
  if (inner instanceof z.ZodDiscriminatedUnion) return [...new Set(shapesOf(inner).flatMap(Object.keys))];
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

function shapesOf({ options }: z.ZodDiscriminatedUnion): readonly Readonly<Record<string, unknown>>[] {
  return options.flatMap((option) => (option instanceof z.ZodObject ? [option.shape] : []));
}

function unwrapped(schema: z.ZodType): z.ZodType {
  const inner: unknown = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return inner instanceof z.ZodType ? inner : schema;
}

function childOf(schema: z.ZodType, key: string): z.ZodType | undefined {
  const inner = unwrapped(schema);
  const child: unknown =
    inner instanceof z.ZodObject
      ? inner.shape[key]
      : inner instanceof z.ZodDiscriminatedUnion
        ? shapesOf(inner).find((shape) => Object.hasOwn(shape, key))?.[key]
        : inner instanceof z.ZodRecord
          ? inner.valueType
          : inner instanceof z.ZodArray
            ? inner.element
            : undefined;
  return child instanceof z.ZodType ? child : undefined;
}

/** The value of `key = text`, or the bare text where that is not TOML. */
export function tomlValue(text: string): unknown {
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

/** A value without the keys that its schema does not name, at every depth. */
function onlyKnown(schema: z.ZodType, value: unknown): unknown {
  if (!isTable(value)) return value;
  const isOpen = unwrapped(schema) instanceof z.ZodRecord;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, child]) => {
      const childSchema = childOf(schema, key);
      return childSchema === undefined ? (isOpen ? [[key, child]] : []) : [[key, onlyKnown(childSchema, child)]];
    }),
  );
}
