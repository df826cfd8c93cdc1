/**
 * Command-line words into options, by a table each command brings. Anything the table does not name is refused with what
 * to write instead; nothing is guessed.
 */
import { parseArgs } from "node:util";
import { HeddleError } from "@heddle/protocol";
import { nearest } from "./suggest.ts";

export interface OptionSpec {
  readonly name: string;
  readonly short?: string;
  /** Other long names for the same option; not shown in help. */
  readonly aliases?: readonly string[];
  /** The word for the value in help. Absent: the option is a switch. */
  readonly value?: string;
  readonly choices?: readonly string[];
  readonly isMultiple?: boolean;
  readonly help: string;
}

export interface ParsedArgs {
  readonly positionals: readonly string[];
  has(name: string): boolean;
  value(name: string): string | undefined;
  values(name: string): readonly string[];
}

export const HELP_OPTION: OptionSpec = { name: "help", short: "h", help: "Show this text" };

export function parseCommandArgs(specs: readonly OptionSpec[], args: readonly string[]): ParsedArgs {
  const byName = new Map<string, OptionSpec>();
  for (const spec of specs) for (const name of [spec.name, ...(spec.aliases ?? [])]) byName.set(name, spec);
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: parseArgsOptions(byName),
  });
  const found = new Map<string, string[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const spec = byName.get(token.name);
    if (spec === undefined) throw unknownOption(token.rawName, [...byName.keys()]);
    const earlier = found.get(spec.name);
    if (earlier !== undefined && spec.value !== undefined && spec.isMultiple !== true) {
      throw usage(`${token.rawName} is given twice; give it once`);
    }
    found.set(spec.name, [...(earlier ?? []), checkedValue(spec, token)]);
  }
  return {
    positionals,
    has: (name) => found.has(name),
    value: (name) => found.get(name)?.at(-1),
    values: (name) => found.get(name) ?? [],
  };
}

export function usage(message: string): HeddleError {
  return new HeddleError("usage.invalid", message);
}

interface OptionToken {
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function checkedValue(spec: OptionSpec, token: OptionToken): string {
  if (spec.value === undefined) {
    if (token.value === undefined) return "";
    throw usage(`${token.rawName} takes no value; write just ${token.rawName}`);
  }
  const { value } = token;
  // A value that looks like the next option is more likely a forgotten value than meant.
  if (value === undefined || value === "" || (token.inlineValue === false && /^-./.test(value))) {
    throw usage(`${token.rawName} needs a value: ${token.rawName} ${spec.value}`);
  }
  if (spec.choices !== undefined && !spec.choices.includes(value)) {
    throw usage(`${token.rawName} "${value}" is none of ${spec.choices.join(", ")}`);
  }
  return value;
}

function unknownOption(rawName: string, known: readonly string[]): HeddleError {
  const guess = rawName.startsWith("--") ? nearest(rawName.slice(2), known) : undefined;
  const hint = guess === undefined ? "see heddle --help" : `did you mean --${guess}?`;
  return usage(`unknown option ${rawName}; ${hint}`);
}

function parseArgsOptions(
  byName: ReadonlyMap<string, OptionSpec>,
): Record<string, { type: "string" | "boolean"; short?: string }> {
  const options: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const [name, spec] of byName) {
    const type = spec.value === undefined ? "boolean" : "string";
    // A letter may be named once, so aliases go without.
    options[name] = spec.short !== undefined && name === spec.name ? { type, short: spec.short } : { type };
  }
  return options;
}
