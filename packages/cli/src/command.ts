/** What a command of the table in main.ts is, and how its help is written. */
import type { OptionSpec, ParsedArgs } from "./args.ts";

export interface Command {
  /** After `heddle `: `exec [OPTIONS] [PROMPT]`. */
  readonly usage: string;
  readonly about: string;
  readonly options: readonly OptionSpec[];
  readonly examples: readonly string[];
  /** Resolves to the exit code; failures are thrown as HeddleError. */
  run(args: ParsedArgs, context: CommandContext): Promise<number>;
}

export interface CommandContext {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly version: string;
}

export function helpText(command: Command): string {
  const rows = command.options.map((option) => [optionNames(option), optionHelp(option)] as const);
  const width = Math.min(34, Math.max(...rows.map(([names]) => names.length)));
  const options = rows.map(([names, help]) =>
    names.length > width ? `  ${names}\n  ${" ".repeat(width)}  ${help}` : `  ${names.padEnd(width)}  ${help}`,
  );
  return [
    command.about,
    "",
    `Usage: heddle ${command.usage}`,
    "",
    "Options:",
    ...options,
    "",
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

function optionNames(option: OptionSpec): string {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  return `${short}--${option.name}${option.value === undefined ? "" : ` ${option.value}`}`;
}

function optionHelp(option: OptionSpec): string {
  return option.choices === undefined ? option.help : `${option.help} (${option.choices.join(", ")})`;
}
