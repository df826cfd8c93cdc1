/** `heddle completions`: a script for the shell at hand. */
import { EXIT } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { completionScript, SHELLS } from "../completions.ts";
import { openOutput } from "../print/output.ts";

export const completionsCommand: Command = {
  usage: "completions (bash | zsh | fish)",
  about: "Prints a completion script; its first lines say where it goes.",
  subcommands: SHELLS,
  options: [],
  examples: [
    `eval "$(heddle completions bash)"`,
    "source <(heddle completions zsh)",
    "heddle completions fish > ~/.config/fish/completions/heddle.fish",
  ],
  run,
};

async function run(args: ParsedArgs, { commands }: CommandContext): Promise<number> {
  const [name, ...more] = args.positionals;
  const shell = SHELLS.find((known) => known === name);
  if (shell === undefined || more.length > 0) throw usage(`name a shell: heddle completions ${SHELLS.join(" | ")}`);
  const loaded = await Promise.all(
    Object.entries(commands).map(async ([word, entry]) => {
      const { subcommands = [], options } = await entry.load();
      return { name: word, summary: entry.summary, subcommands, options };
    }),
  );
  await openOutput(process.stdout).write(completionScript(shell, loaded));
  return EXIT.ok;
}
