/** `heddle schema`: the published shapes of what Heddle prints for programs. */
import { codexExecSchema } from "@heddle/protocol/exec-schema";
import { EXIT } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command } from "../command.ts";
import { openOutput } from "../print/output.ts";

export const schemaCommand: Command = {
  usage: "schema exec",
  about: "Prints the JSON Schema (2020-12) of one line of heddle exec --json.",
  subcommands: ["exec"],
  options: [],
  examples: ["heddle schema exec > exec-events.schema.json"],
  run,
};

async function run(args: ParsedArgs): Promise<number> {
  const [name, ...more] = args.positionals;
  if (name !== "exec" || more.length > 0) throw usage("write heddle schema exec");
  await openOutput(process.stdout).write(`${JSON.stringify(codexExecSchema(), null, 2)}\n`);
  return EXIT.ok;
}
