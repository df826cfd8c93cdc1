/** `heddle exec`: one prompt, one turn. */
import { EXIT } from "@heddle/protocol";
import type { ParsedArgs } from "../args.ts";
import { isBatch } from "../batch/flags.ts";
import type { Command, CommandContext } from "../command.ts";
import { EXEC_EXAMPLES, EXEC_OPTIONS, EXEC_SUBCOMMANDS } from "./exec-options.ts";

export const execCommand: Command = {
  usage: [
    "exec [OPTIONS] [PROMPT | -]",
    "exec resume [ID | NAME | --last] [PROMPT | -]",
    "exec fork ID [PROMPT | -]",
    "exec review (--uncommitted | --base BRANCH | --commit SHA | PROMPT)",
  ].join("\n"),
  about:
    "Runs one turn in a folder and prints the final message. Without PROMPT, or with -, the prompt is read from\n" +
    "standard input; with PROMPT, piped input is appended to it. Accepts the options of codex exec.",
  subcommands: EXEC_SUBCOMMANDS,
  options: EXEC_OPTIONS,
  examples: EXEC_EXAMPLES,
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const described = { options: EXEC_OPTIONS, subcommands: EXEC_SUBCOMMANDS };
  if (args.has("describe-capabilities")) {
    const { capabilities } = await import("../batch/capabilities.ts");
    process.stdout.write(`${JSON.stringify(capabilities({ ...described, version: context.version }))}\n`);
    return EXIT.ok;
  }
  if (args.has("preflight")) return await (await import("../batch/preflight.ts")).preflight(args, context);
  const { runExec } = await import("../exec/run-exec.ts");
  if (!isBatch(args)) return await runExec(args, context, {});
  const { Batch } = await import("../batch/batch.ts");
  const batch = new Batch(args, context, described);
  return await batch.around(() => runExec(args, context, { batch }));
}
