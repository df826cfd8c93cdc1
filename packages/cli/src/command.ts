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

export function helpText(command: Command): string {
  const shown = command.options.filter(({ isHidden }) => isHidden !== true);
  const width = Math.min(34, Math.max(...shown.map((option) => optionNames(option).length)));
  const ownerOf = (option: OptionSpec): string => ownersOf(option).join(" and ");
  const owners = [...new Set(shown.map(ownerOf))].filter((owner) => owner !== "");
  const section = (title: string, options: readonly OptionSpec[]): readonly string[] => [
    title,
    ...options.map((option) => optionLine(option, width)),
    "",
  ];
  return [
    command.about,
    "",
    `Usage: heddle ${command.usage.replaceAll("\n", "\n       heddle ")}`,
    "",
    ...section(
      "Options:",
      shown.filter((option) => option.of === undefined),
    ),
    ...owners.flatMap((owner) =>
      section(
        `Options of ${owner}:`,
        shown.filter((option) => ownerOf(option) === owner),
      ),
    ),
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

function optionLine(option: OptionSpec, width: number): string {
  const names = optionNames(option);
  const help = option.choices === undefined ? option.help : `${option.help} (${option.choices.join(", ")})`;
  return names.length > width ? `  ${names}\n  ${" ".repeat(width)}  ${help}` : `  ${names.padEnd(width)}  ${help}`;
}

function optionNames(option: OptionSpec): string {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  return `${short}--${option.name}${option.value === undefined ? "" : ` ${option.value}`}`;
}
