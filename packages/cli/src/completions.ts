/** Shell completions, made from the table of commands: what a command does not know is never offered. */
import type { OptionSpec } from "./args.ts";

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly subcommands: readonly string[];
  readonly options: readonly OptionSpec[];
}

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  const shown = commands.map((command) => ({
    ...command,
    options: command.options.filter(({ isForCodex }) => isForCodex !== true),
  }));
  return { bash, zsh, fish }[shell](shown);
}

function bash(commands: readonly CompletedCommand[]): string {
  const values = commands.flatMap(({ name, options }) =>
    options.flatMap((option) => {
      const pattern = optionNames(option)
        .map((word) => `"${name} ${word}"`)
        .join("|");
      if (option.choices !== undefined)
        return [`    ${pattern}) ${reply(`-W "${option.choices.join(" ")}"`)}; return ;;`];
      if (option.value === undefined) return [];
      return [`    ${pattern}) ${reply(option.completes === "folder" ? "-d" : "-f")}; return ;;`];
    }),
  );
  const lines = commands.map(({ name, subcommands, options }) => {
    const all = [...subcommands, ...options.map((option) => `--${option.name}`)];
    return `    ${name}) ${reply(`-W "${all.join(" ")}"`)} ;;`;
  });
  const names = commands.map(({ name }) => name);
  return `# heddle completions for bash. In ~/.bashrc: eval "$(heddle completions bash)"
_heddle() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" command="" word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in ${names.join("|")}) command="$word"; break ;; esac
  done
  case "$command $prev" in
${values.join("\n")}
  esac
  case "$command" in
    "") ${reply(`-W "${names.join(" ")} --help --version"`)} ;;
${lines.join("\n")}
  esac
}
complete -o default -F _heddle heddle
`;
}

function reply(how: string): string {
  return `mapfile -t COMPREPLY < <(compgen ${how} -- "$cur")`;
}

function zsh(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name, summary }) => `    ${single(`${name}:${summary.replaceAll(":", " ")}`)}`);
  const cases = commands.map(({ name, subcommands, options }) => {
    const first = subcommands.length === 0 ? [] : [single(`1: :(${subcommands.join(" ")})`)];
    const specs = [...options.map(zshOption), ...first, single("*: :_files")];
    return `    ${name})\n      _arguments -s \\\n${specs.map((spec) => `        ${spec}`).join(" \\\n")}\n      ;;`;
  });
  return `#compdef heddle
# heddle completions for zsh. Put into a folder of $fpath as _heddle, or: source <(heddle completions zsh)
_heddle() {
  local -a commands
  commands=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_heddle" ]; then _heddle "$@"; else compdef _heddle heddle; fi
`;
}

function zshOption(option: OptionSpec): string {
  const help = option.help.replaceAll(/[[\]:]/g, " ");
  const action =
    option.value === undefined
      ? ""
      : `:${option.value}:${option.choices === undefined ? zshAction(option) : `(${option.choices.join(" ")})`}`;
  const star = option.isMultiple === true ? "*" : "";
  if (option.short === undefined) return single(`${star}--${option.name}[${help}]${action}`);
  const both = `{${star}-${option.short},${star}--${option.name}}`;
  const excludes = star === "" ? single(`(-${option.short} --${option.name})`) : "";
  return `${excludes}${both}${single(`[${help}]${action}`)}`;
}

function zshAction({ completes }: OptionSpec): string {
  if (completes === undefined) return "";
  return completes === "folder" ? "_files -/" : "_files";
}

function fish(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, summary, subcommands, options }) => {
    const here = `complete -c heddle -n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c heddle -f -n __fish_use_subcommand -a ${name} -d ${single(summary)}`,
      ...subcommands.map((word) => `${here} -f -a ${word}`),
      ...options.map((option) => `${here} ${fishOption(option)}`),
    ];
  });
  return `# heddle completions for fish. heddle completions fish > ~/.config/fish/completions/heddle.fish
${lines.join("\n")}
`;
}

function fishOption(option: OptionSpec): string {
  const short = option.short === undefined ? "" : `-s ${option.short} `;
  const value =
    option.value === undefined
      ? ""
      : option.choices === undefined
        ? option.completes === undefined
          ? " -x"
          : " -r -F"
        : ` -x -a ${single(option.choices.join(" "))}`;
  return `${short}-l ${option.name}${value} -d ${single(option.help)}`;
}

function optionNames({ name, short }: OptionSpec): readonly string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

/** In single quotes, for each of the three shells. */
function single(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
