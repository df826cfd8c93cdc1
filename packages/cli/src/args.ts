/**
 * Command-line words into options, by a table each command brings. Anything the table does not name is refused with what
 * to write instead; nothing is guessed. Options may stand anywhere; after `--` everything is a word.
 */
import { nearest, HeddleError } from "@heddle/protocol";

export interface OptionSpec {
  readonly name: string;
  readonly short?: string;
  /** Other long names for the same option. */
  readonly aliases?: readonly string[];
  /** The word for the value in help. Absent: the option is a switch. */
  readonly value?: string;
  readonly choices?: readonly string[];
  /** A value is a file or a folder; completions offer those. */
  readonly completes?: "file" | "folder";
  readonly isMultiple?: boolean;
  /** Also takes the words that follow its first value, as long as this says that they belong to it. */
  readonly takesMore?: (word: string) => boolean;
  /** The subcommands that know this option; absent: all do. */
  readonly of?: string | readonly string[];
  /** Understood so that callers of Codex need no change; at the end of the help, and not completed. */
  readonly isForCodex?: boolean;
  readonly help: string;
}

export interface ParsedArgs {
  readonly positionals: readonly string[];
  /** How many words stand before `--`; only those can be the name of a subcommand. */
  readonly positionalsBeforeDashes: number;
  has(name: string): boolean;
  value(name: string): string | undefined;
  values(name: string): readonly string[];
}

/** The subcommands that know an option; none: all do. */
export function ownersOf({ of = [] }: OptionSpec): readonly string[] {
  return typeof of === "string" ? [of] : of;
}

/** What was given and belongs to other subcommands. */
export function foreignOption(
  options: readonly OptionSpec[],
  args: ParsedArgs,
  subcommand: string | undefined,
): { readonly name: string; readonly owners: readonly string[] } | undefined {
  const given = options.find((option) => {
    const owners = ownersOf(option);
    return owners.length > 0 && !(subcommand !== undefined && owners.includes(subcommand)) && args.has(option.name);
  });
  return given === undefined ? undefined : { name: given.name, owners: ownersOf(given) };
}

export const HELP_OPTION: OptionSpec = { name: "help", short: "h", help: "Show this text" };

export function parseCommandArgs(specs: readonly OptionSpec[], args: readonly string[]): ParsedArgs {
  const byName = optionsByName(specs);
  const found = new Map<string, string[]>();
  const positionals: string[] = [];
  let beforeDashes: number | undefined;
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? "";
    if (beforeDashes !== undefined || !/^-./.test(word)) positionals.push(word);
    else if (word === "--") beforeDashes = positionals.length;
    else {
      const read = readOption(byName, args, at);
      for (const { spec, rawName, value } of read.options) keep(found, spec, rawName, value);
      at = read.last;
    }
  }
  return parsed(found, positionals, beforeDashes ?? positionals.length);
}

/**
 * The options before the first word, and the rest. Values are skipped as the table says, so that in `-c a=b exec` the word
 * is `exec`.
 */
export function splitLeadingOptions(
  specs: readonly OptionSpec[],
  args: readonly string[],
): { readonly leading: readonly string[]; readonly rest: readonly string[] } {
  const byName = optionsByName(specs);
  let at = 0;
  while (at < args.length && /^-./.test(args[at] ?? "") && args[at] !== "--")
    at = readOption(byName, args, at).last + 1;
  return { leading: args.slice(0, at), rest: args.slice(at) };
}

/** Both lines of options as one; where only one value can be, `over` has it. */
export function mergeArgs(under: ParsedArgs, over: ParsedArgs, specs: readonly OptionSpec[]): ParsedArgs {
  const found = new Map<string, string[]>();
  for (const { name, isMultiple } of specs) {
    const below = under.values(name);
    const above = over.values(name);
    const values = isMultiple === true ? [...below, ...above] : above.length > 0 ? above : below;
    if (values.length > 0) found.set(name, [...values]);
  }
  return parsed(found, over.positionals, over.positionalsBeforeDashes);
}

export function usage(message: string): HeddleError {
  return new HeddleError("usage.invalid", message);
}

function parsed(found: ReadonlyMap<string, string[]>, positionals: readonly string[], before: number): ParsedArgs {
  return {
    positionals,
    positionalsBeforeDashes: before,
    has: (name) => found.has(name),
    value: (name) => found.get(name)?.at(-1),
    values: (name) => found.get(name) ?? [],
  };
}

type OptionTable = ReadonlyMap<string, OptionSpec>;

/** Long names as `--name`, letters as `-n`. */
function optionsByName(specs: readonly OptionSpec[]): OptionTable {
  const byName = new Map<string, OptionSpec>();
  for (const spec of specs) {
    for (const name of [spec.name, ...(spec.aliases ?? [])]) byName.set(`--${name}`, spec);
    if (spec.short !== undefined) byName.set(`-${spec.short}`, spec);
  }
  return byName;
}

interface FoundOption {
  readonly spec: OptionSpec;
  readonly rawName: string;
  readonly value: string;
}

/** Reads the option at `at`; `last` is the last word that belongs to it. */
function readOption(
  byName: OptionTable,
  args: readonly string[],
  at: number,
): { readonly options: readonly FoundOption[]; readonly last: number } {
  const word = args[at] ?? "";
  if (!word.startsWith("--")) return readLetters(byName, args, at);
  const equals = word.indexOf("=");
  const rawName = equals < 0 ? word : word.slice(0, equals);
  const spec = byName.get(rawName);
  if (spec === undefined) throw unknownOption(rawName, byName);
  return readValue(spec, rawName, { inline: equals < 0 ? undefined : word.slice(equals + 1), args, at });
}

/** `-x`, `-xVALUE`, `-x=VALUE`, and switches written together: `-xy`. */
function readLetters(
  byName: OptionTable,
  args: readonly string[],
  at: number,
): { readonly options: readonly FoundOption[]; readonly last: number } {
  const letters = (args[at] ?? "").slice(1);
  const options: FoundOption[] = [];
  for (let index = 0; index < letters.length; index += 1) {
    const rawName = `-${letters.charAt(index)}`;
    const spec = byName.get(rawName);
    if (spec === undefined) throw unknownOption(rawName, byName);
    if (spec.value === undefined) {
      options.push({ spec, rawName, value: "" });
      continue;
    }
    const rest = letters.slice(index + 1);
    const inline = rest === "" ? undefined : rest.replace(/^=/, "");
    const read = readValue(spec, rawName, { inline, args, at });
    return { options: [...options, ...read.options], last: read.last };
  }
  return { options, last: at };
}

function readValue(
  spec: OptionSpec,
  rawName: string,
  from: { readonly inline: string | undefined; readonly args: readonly string[]; readonly at: number },
): { readonly options: readonly FoundOption[]; readonly last: number } {
  const { inline, args, at } = from;
  if (spec.value === undefined) {
    if (inline !== undefined) throw usage(`${rawName} takes no value; write just ${rawName}`);
    return { options: [{ spec, rawName, value: "" }], last: at };
  }
  const value = inline ?? args[at + 1];
  // A value that looks like the next option is more likely a forgotten value than meant.
  if (value === undefined || value === "" || (inline === undefined && /^-./.test(value))) {
    throw usage(`${rawName} needs a value: ${rawName} ${spec.value}`);
  }
  const values = [value];
  let last = inline === undefined ? at + 1 : at;
  for (let next = args[last + 1]; next !== undefined; next = args[last + 1]) {
    if (next.startsWith("-") || spec.takesMore?.(next) !== true) break;
    values.push(next);
    last += 1;
  }
  return { options: values.map((one) => ({ spec, rawName, value: one })), last };
}

function keep(found: Map<string, string[]>, spec: OptionSpec, rawName: string, value: string): void {
  const earlier = found.get(spec.name);
  if (earlier !== undefined && spec.value !== undefined && spec.isMultiple !== true) {
    throw usage(`${rawName} is given twice; give it once`);
  }
  if (spec.choices !== undefined && !spec.choices.includes(value)) {
    throw usage(`${rawName} "${value}": must be one of ${spec.choices.join(", ")}`);
  }
  found.set(spec.name, [...(earlier ?? []), value]);
}

function unknownOption(rawName: string, byName: OptionTable): HeddleError {
  const known = [...byName.keys()].filter((name) => name.startsWith("--")).map((name) => name.slice(2));
  const guess = rawName.startsWith("--") ? nearest(rawName.slice(2), known) : undefined;
  const hint = guess === undefined ? "see heddle --help" : `did you mean --${guess}?`;
  return usage(`unknown option ${rawName}; ${hint}`);
}

/** undefined: it is not given. */
export function wholeNumber(
  args: ParsedArgs,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const text = args.value(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw usage(`--${name} "${text}" is not a whole number from ${min} to ${max}`);
}
