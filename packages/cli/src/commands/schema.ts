/** `heddle schema`: the published shapes of what Heddle prints for programs. */
import { codexExecSchema } from "@heddle/dialects/exec-schema";
import { runResultSchema } from "@heddle/protocol/run-result";
import { EXIT } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { openOutput } from "../print/output.ts";

const SCHEMAS: Readonly<Record<string, (version: string) => object | Promise<object>>> = {
  exec: codexExecSchema,
  result: runResultSchema,
  chat: async () => (await import("@heddle/dialects/chat")).chatSchema(),
  "app-server": async () => (await import("@heddle/server/describe")).bundle({ isExperimental: true }),
  sessions: async () => (await import("@heddle/server/describe")).sessionSchema(),
  task: async () => (await import("@heddle/tasks")).taskSchema(),
  envelope: async () => (await import("@heddle/tools/envelope-schemas")).envelopeSchema(),
  gate: async () => (await import("@heddle/tools/envelope-schemas")).gateSchema(),
  http: async (version) => (await import("@heddle/server/http-openapi")).openApi(version),
};

export const schemaCommand: Command = {
  usage:
    "schema exec\nschema result\nschema chat\nschema app-server\nschema sessions\nschema http\nschema task\nschema envelope\nschema gate",
  about:
    "Prints a JSON Schema (2020-12): exec is one line of heddle exec --json, result is what --result-json writes, chat is every\n" +
    "method and event of the chat.* API, app-server those of heddle app-server, sessions those of agents outside. http is the OpenAPI 3.1 description of heddle serve.\n" +
    "task is a file with work orders, envelope and gate are files with these, for editors.",
  subcommands: Object.keys(SCHEMAS),
  options: [],
  examples: [
    "heddle schema exec > exec-events.schema.json",
    "heddle schema result > result.schema.json",
    "heddle schema chat > chat.schema.json",
    "heddle schema http > openapi.json",
    "heddle schema task > task.schema.json",
    "heddle schema envelope > envelope.schema.json",
  ],
  run,
};

async function run(args: ParsedArgs, { version }: CommandContext): Promise<number> {
  const [name, ...more] = args.positionals;
  const schema = name === undefined || !Object.hasOwn(SCHEMAS, name) ? undefined : SCHEMAS[name];
  if (schema === undefined || more.length > 0)
    throw usage("write heddle schema exec, result, chat, app-server, sessions, http, task, envelope or gate");
  await openOutput(process.stdout).write(`${JSON.stringify(await schema(version), null, 2)}\n`);
  return EXIT.ok;
}
