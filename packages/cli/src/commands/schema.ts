/** `heddle schema`: the published shapes of what Heddle prints for programs. */
import { codexExecSchema } from "@heddle/protocol/exec-schema";
import { runResultSchema } from "@heddle/protocol/run-result";
import { EXIT } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command } from "../command.ts";
import { openOutput } from "../print/output.ts";

const SCHEMAS: Readonly<Record<string, () => object>> = { exec: codexExecSchema, result: runResultSchema };

export const schemaCommand: Command = {
  usage: "schema exec\nschema result",
  about: "Prints a JSON Schema (2020-12): exec is one line of heddle exec --json, result is what --result-json writes.",
  subcommands: Object.keys(SCHEMAS),
  options: [],
  examples: ["heddle schema exec > exec-events.schema.json", "heddle schema result > result.schema.json"],
  run,
};

async function run(args: ParsedArgs): Promise<number> {
  const [name, ...more] = args.positionals;
  const schema = name === undefined || !Object.hasOwn(SCHEMAS, name) ? undefined : SCHEMAS[name];
  if (schema === undefined || more.length > 0) throw usage("write heddle schema exec, or heddle schema result");
  await openOutput(process.stdout).write(`${JSON.stringify(schema(), null, 2)}\n`);
  return EXIT.ok;
}
