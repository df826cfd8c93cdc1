/** What a command of the table in command-table.ts is, and how its help is written. */
import { ownersOf, type OptionSpec, type ParsedArgs } from "./args.ts";

export interface Command {
  /** After `heddle `: `exec [OPTIONS] [PROMPT]`. */
  readonly usage: string;
  readonly about: string;
  /** Words that may come first after the command's name. */
  readonly subcommands?: readonly string[];
  readonly options: readonly OptionSpec[];
  readonly examples: readonly string[];
  /** Of a command whose exit codes are its own: the one for wrong arguments. */
  readonly usageExit?: number;
  /** Resolves to the exit code; failures are thrown as HeddleError. */
  run(args: ParsedArgs, context: CommandContext): Promise<number>;
}

/** A row of the table: what it is for, and how to get it. */
export interface CommandEntry {
  readonly summary: string;
  load(): Promise<Command>;
}

export interface CommandContext {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly version: string;
  readonly commands: Readonly<Record<string, CommandEntry>>;
}

/** Every option that is taken is shown, aliases included. */
export function helpText(command: Command): string {
  const { options } = command;
  const width = Math.min(34, Math.max(...options.map((option) => optionNames(option).length)));
  const titles = [...new Set(options.map(titleOf))];
  const last = (title: string): number => (title === FOR_CODEX ? 1 : 0);
  const sections = titles
    .toSorted((a, b) => last(a) - last(b))
    .flatMap((title) => [
      title,
      ...options.filter((option) => titleOf(option) === title).map((option) => optionLine(option, width)),
      "",
    ]);
  return [
    command.about,
    "",
    `Usage: heddle ${command.usage.replaceAll("\n", "\n       heddle ")}`,
    "",
    ...sections,
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

const FOR_CODEX = "Accepted for compatibility with Codex:";

function titleOf(option: OptionSpec): string {
  if (option.isForCodex === true) return FOR_CODEX;
  const owners = ownersOf(option);
  return owners.length === 0 ? "Options:" : `Options of ${owners.join(" and ")}:`;
}

function optionLine(option: OptionSpec, width: number): string {
  const names = optionNames(option);
  const choices = option.choices === undefined ? "" : ` (${option.choices.join(", ")})`;
  const aliases = (option.aliases ?? []).map((alias) => `, also --${alias}`).join("");
  const help = `${option.help}${choices}${aliases}`;
  return names.length > width ? `  ${names}\n  ${" ".repeat(width)}  ${help}` : `  ${names.padEnd(width)}  ${help}`;
}

function optionNames(option: OptionSpec): string {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  return `${short}--${option.name}${option.value === undefined ? "" : ` ${option.value}`}`;
}
