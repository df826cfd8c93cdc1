/** `heddle config`: looks at the configuration in force, and changes one key of Heddle's own file without touching the rest. */
import { didYouMean, EXIT, HeddleError, visibleLine } from "@heddle/protocol";
import { loadConfig, ownConfigFile, readConfigText } from "@heddle/runtime/config";
import {
  isScalar,
  isTable,
  keyText,
  leavesOf,
  parseOverrides,
  parseOwn,
  setTomlKey,
  splitKey,
  tomlText,
  tomlValue,
  unsetTomlKey,
  valueAt,
  writeWhole,
  type TomlScalar,
} from "@heddle/runtime/config-edit";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput, type Output } from "../print/output.ts";

const VERBS = ["get", "set", "unset", "list", "path"] as const;

export const configCommand: Command = {
  usage: "config list | config get KEY | config set KEY VALUE | config unset KEY | config path",
  about:
    "Shows the configuration in force, or changes one key of Heddle's own config.toml; comments and order stay as they\n" +
    "are. KEY is dotted, VALUE is TOML or text, as with -c. A change that would make the file wrong is refused.",
  subcommands: VERBS,
  options: [{ name: "json", help: "JSON instead of TOML" }],
  examples: [
    "heddle config list",
    "heddle config get model",
    "heddle config set model gpt-5.5",
    "heddle config set model_providers.local.base_url http://127.0.0.1:8080/v1",
    `heddle config set 'projects."/home/me/project".trust_level' trusted`,
  ],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const out = openOutput(process.stdout);
  const [verb, key, value, ...more] = args.positionals;
  if (verb === "path" && key === undefined) {
    await out.write(`${ownConfigFile(env)}\n`);
    return EXIT.ok;
  }
  if (verb === "list" && key === undefined) return list(args, env, out);
  if (verb === "get" && key !== undefined && value === undefined) return get(key, args, env, out);
  if (verb === "set" && key !== undefined && value !== undefined && more.length === 0) {
    return change(env, keyOf(key), valueOf(key, value));
  }
  if (verb === "unset" && key !== undefined && value === undefined) return change(env, keyOf(key), undefined);
  const hint = verb === undefined ? "" : didYouMean(verb, VERBS);
  throw usage(`write heddle config list, get KEY, set KEY VALUE, unset KEY or path${hint}`);
}

async function list(args: ParsedArgs, env: NodeJS.ProcessEnv, out: Output): Promise<number> {
  const { config, file } = await loadConfig(env);
  if (args.has("json")) {
    await out.write(toLine(config));
    return EXIT.ok;
  }
  process.stderr.write(file === undefined ? "# no config.toml; every setting has its default\n" : `# ${file}\n`);
  await out.write(tableText(config));
  return EXIT.ok;
}

function tableText(table: Readonly<Record<string, unknown>>): string {
  return leavesOf(table)
    .map(({ key, value }) => `${keyText(key)} = ${visibleLine(tomlText(value))}\n`)
    .join("");
}

async function get(key: string, args: ParsedArgs, env: NodeJS.ProcessEnv, out: Output): Promise<number> {
  const wanted = keyOf(key);
  const { config } = await loadConfig(env);
  const value = valueAt(config, wanted);
  if (value === undefined) {
    process.stderr.write(`heddle: ${visibleLine(key)} is not set\n`);
    return EXIT.turnFailed;
  }
  if (args.has("json")) await out.write(toLine(value));
  else if (isTable(value)) await out.write(tableText(value));
  else await out.write(`${typeof value === "string" ? visibleLine(value) : tomlText(value)}\n`);
  return EXIT.ok;
}

async function change(env: NodeJS.ProcessEnv, key: readonly string[], value: TomlScalar | undefined): Promise<number> {
  const file = ownConfigFile(env);
  const before = readConfigText(file);
  const text = before ?? "";
  // A file that is wrong already is named with its line, not made worse.
  parseOwn(text, file);
  const after = value === undefined ? unsetTomlKey(text, key) : setTomlKey(text, key, value);
  parseOwn(after, file);
  const { file: replaced } = await loadConfig(env);
  if (after !== text && !(await writeWhole(file, after, before))) {
    throw new HeddleError("store.busy", `${file} was changed meanwhile, and stays as it is; run the command again`);
  }
  if (before === undefined && replaced !== undefined) {
    process.stderr.write(`heddle: ${file} is used from now on, and ${replaced} is no longer read\n`);
  }
  return EXIT.ok;
}

/** Checked as `-c` checks it, so that a mistyped key is found before anything is read. */
function keyOf(text: string): readonly string[] {
  const key = splitKey(text);
  if (key.length === 0)
    throw usage(`"${text}" is not a key; write one such as model or sandbox_workspace_write.network_access`);
  return key;
}

function valueOf(key: string, text: string): TomlScalar {
  parseOverrides([`${key}=${text}`], { isOwnOnly: true, writtenAfter: "config set" });
  const value = tomlValue(text);
  if (isScalar(value)) return value;
  throw usage(`${key} takes one value; set the keys of a table one by one`);
}
