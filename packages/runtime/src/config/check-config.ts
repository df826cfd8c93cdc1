/** Judges what a configuration says, key by key, and says of a mistake where it is and what to write instead. */
import path from "node:path";
import { BUILT_IN_PROVIDERS, catalogProvider } from "@heddle/models";
import { didYouMean, nearest, HeddleError, PLAIN } from "@heddle/protocol";
import { TomlError } from "smol-toml";
import { z } from "zod";
import { parseToml, tomlIn } from "./parse-toml.ts";
import type { LoadOptions } from "./read-config.ts";
import { isOfCodex } from "./codex-keys.ts";
import { ConfigFile } from "./schema.ts";
import { isTable, lineOfKey, splitKey } from "./toml-lines.ts";

export interface CheckedConfig {
  readonly config: ConfigFile;
  /** Keys that have no effect here: those of Codex, and those that nobody knows. */
  readonly passedOver: readonly string[];
}

/** Everything before the first equals sign that stands outside quotes. */
const KEY = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^="'])*(?==)/;

interface OverrideOptions extends LoadOptions {
  /** What the user wrote before the key; errors begin with it. */
  readonly writtenAfter?: string;
  /** A key without effect is refused, too. */
  readonly isOwnOnly?: boolean;
}

export function parseOverrides(overrides: readonly string[], options: OverrideOptions = {}): CheckedConfig {
  const entries = overrides.map((override): Entry => {
    const equals = KEY.exec(override)?.[0].length ?? 0;
    const key = splitKey(override.slice(0, Math.max(0, equals)).trim());
    if (equals >= 1 && key.length > 0) return { key, value: tomlValue(override.slice(equals + 1)) };
    throw new HeddleError("usage.invalid", `-c "${override}" is not key=value; write -c model="gpt-5.1" for example`);
  });
  return checkEntries(entries, options);
}

/** Values as a client of a server sends them: nested, or under keys that are paths; null says nothing. */
export function checkValues(values: Readonly<Record<string, unknown>>): CheckedConfig {
  const entries = Object.entries(values).map(([key, value]) => ({
    key: splitKey(key.trim()),
    value: withoutNulls(value),
  }));
  return checkEntries(
    entries.filter(({ key, value }) => key.length > 0 && value !== undefined),
    { writtenAfter: "config" },
  );
}

interface Entry {
  readonly key: readonly string[];
  readonly value: unknown;
}

function checkEntries(entries: readonly Entry[], options: OverrideOptions): CheckedConfig {
  const { writtenAfter = "-c", isStrict, isOwnOnly } = options;
  const raw: Record<string, unknown> = Object.create(null);
  // What Codex means by a key takes nothing of what Heddle means by it away.
  const isPassedOver = ({ key, value }: Entry): boolean => key.length === 1 && isTheirs(key.join(), value);
  const theirs = isOwnOnly === true ? [] : entries.filter(isPassedOver);
  for (const { key, value } of entries.filter((entry) => !theirs.includes(entry))) setAt(raw, key, value);
  const mayPass = isOwnOnly === true ? () => false : passes(isStrict);
  const found = checked(raw, { where: (key) => `${writtenAfter} ${key.join(".")}`, mayPass });
  return { ...found, passedOver: [...theirs.map(({ key }) => key.join()), ...found.passedOver] };
}

function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (!isTable(value)) return value;
  const entries = Object.entries(value).map(([key, child]) => [key, withoutNulls(child)] as const);
  return Object.fromEntries(entries.filter(([, child]) => child !== undefined));
}

type MayPass = (key: readonly string[]) => boolean;

/** `--strict-config` refuses what Codex would refuse. */
function passes(isStrict: boolean | undefined): MayPass {
  return isStrict === true ? isOfCodex : () => true;
}

/** The whole text of Heddle's own file, checked. */
export function parseOwn(text: string, file: string, { isStrict }: Pick<LoadOptions, "isStrict"> = {}): CheckedConfig {
  const found = checked(parseToml(text, file), {
    where: (key) => positionOf(text, file, key),
    mayPass: passes(isStrict),
  });
  const { config } = found;
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
  return found;
}

/**
 * Codex means something else by them, or keeps the trust they need elsewhere: Heddle runs only hooks of its own
 * configuration, and tells only sinks of its own what happens.
 */
const OWN_ONLY: ReadonlySet<string> = new Set(["hooks", "notify", "inbox"]);

export function parseCodex(text: string, file: string, { isStrict }: Pick<LoadOptions, "isStrict">): CheckedConfig {
  const whole = Object.entries(parseToml(text, file));
  const own = whole.filter(([key]) => OWN_ONLY.has(key)).map(([key]) => key);
  const rest = Object.fromEntries(whole.filter(([key]) => !OWN_ONLY.has(key)));
  const found = checked(rest, { where: (key) => positionOf(text, file, key), mayPass: passes(isStrict) });
  return { ...found, passedOver: [...own, ...found.passedOver] };
}

/** What Codex writes in another form than Heddle, in Heddle's; keys under which it means something else are taken out. */
function fromCodex(raw: Readonly<Record<string, unknown>>): {
  readonly value: Readonly<Record<string, unknown>>;
  readonly passedOver: readonly string[];
} {
  const entries = Object.entries(raw);
  const value = Object.fromEntries(
    entries
      .filter(([key, child]) => !isTheirs(key, child))
      .map(([key, child]): [string, unknown] => {
        // A table of finer rules: its author wants to be asked.
        if (key === "approval_policy" && isTable(child)) return [key, "on-request"];
        return [key, key === "model_providers" && isTable(child) ? withTokenCommands(child) : child];
      }),
  );
  return { value, passedOver: entries.filter(([key, child]) => isTheirs(key, child)).map(([key]) => key) };
}

function isTheirs(key: string, value: unknown): boolean {
  return (key === "hooks" && isTable(value)) || (key === "notify" && Array.isArray(value));
}

/** Codex knows one kind of `auth`, which needs no name: a program and its arguments. */
function withTokenCommands(providers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(providers).map(([id, table]) => {
      const auth = isTable(table) ? table["auth"] : undefined;
      if (!isTable(table) || !isTable(auth) || auth["type"] !== undefined || typeof auth["command"] !== "string") {
        return [id, table];
      }
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
  return checked(table, { where: (key) => `config.${key.join(".")}`, mayPass: () => true }).config;
}

interface Checking {
  /** Where a key is written, for messages. */
  readonly where: (key: readonly string[]) => string;
  /** Whether a key that is unknown here is passed over. */
  readonly mayPass: MayPass;
}

function checked(raw: Readonly<Record<string, unknown>>, { where, mayPass }: Checking): CheckedConfig {
  const { value, passedOver } = fromCodex(raw);
  const unknown = unknownKeys(ConfigFile, value);
  for (const key of unknown) {
    const [last = "", table] = [key.at(-1), knownKeys(key.slice(0, -1))];
    // A slip of the finger must not pass for a key of another program: a wall would fall by it.
    if (mayPass(key) && !isSlip(last, table)) continue;
    throw new HeddleError("config.invalid", `${where(key)}: ${unknownKey(last, table)}`);
  }
  const result = ConfigFile.safeParse(value, PLAIN);
  if (result.success) {
    return { config: result.data, passedOver: [...passedOver, ...new Set(unknown.map((key) => key.join(".")))] };
  }
  const [issue] = result.error.issues;
  throw new HeddleError(
    "config.invalid",
    issue === undefined ? "the configuration is not valid" : explain(issue, where),
  );
}

/** One letter more, less, other, or two swapped; in a shorter word that is as likely another word. */
function isSlip(word: string, known: readonly string[]): boolean {
  return word.length > 4 && nearest(word, known, 1) !== undefined;
}

function positionOf(text: string, file: string, key: readonly string[]): string {
  const line = lineOfKey(text, key);
  return line === undefined ? file : `${file}:${line}`;
}

function explain(issue: z.core.$ZodIssue, where: Checking["where"]): string {
  const key = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const [unknown = ""] = issue.keys;
    return `${where([...key, unknown])}: ${unknownKey(unknown, knownKeys(key))}`;
  }
  // As TOML names them.
  const message = issue.message.replace(/ a string$/, " a string in quotes").replace(/ an object$/, " a table");
  return `${where(key)}: ${key.join(".")} ${message}`;
}

function unknownKey(key: string, known: readonly string[]): string {
  return `unknown key "${key}"${didYouMean(key, known) || `; known here: ${known.join(", ")}`}`;
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
  if (inner instanceof z.ZodUnion && !(inner instanceof z.ZodDiscriminatedUnion))
    return inner.options.find((option) => option instanceof z.ZodObject) ?? inner;
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
    return tomlIn(`value = ${text}`)["value"];
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

/** Keys that the tables of this value have and their schemas do not name, as far as such keys may be Codex's. */
function unknownKeys(schema: z.ZodType, value: unknown, above: readonly string[] = []): readonly (readonly string[])[] {
  const inner = unwrapped(schema);
  if (!isTable(value) || !(inner instanceof z.ZodRecord || isShared(inner))) return [];
  return Object.entries(value).flatMap(([name, child]) => {
    const key = [...above, name];
    const known = childOf(inner, name);
    return known === undefined ? [key] : unknownKeys(known, child, key);
  });
}

function isShared(schema: z.ZodType): boolean {
  return schema instanceof z.ZodObject && schema.def.catchall === undefined;
}
