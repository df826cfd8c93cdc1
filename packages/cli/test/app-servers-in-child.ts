/**
 * Runs `heddle app-server` once after the other in one process, each with folders, environment and standard streams of its
 * own: what a start costs is mostly to load the program. The parent sends a start, then lines of input and their end, and
 * receives the output and the exit code.
 */
import { PassThrough, Writable } from "node:stream";
import { exitCodeOf, toHeddleError } from "@heddle/protocol";
import manifest from "../package.json" with { type: "json" };
import { parseCommandArgs } from "../src/args.ts";
import { appServerCommand } from "../src/commands/app-server.ts";

interface Start {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

type ToServer = { readonly start: Start } | { readonly input: string } | { readonly end: true };
type FromServer = { readonly output: string } | { readonly exit: number };

let input = new PassThrough();

process.on("message", (message: ToServer) => {
  if ("start" in message) run(message.start).then((exit) => tell({ exit }), fail);
  else if ("input" in message) input.write(message.input);
  else input.end();
});
process.on("disconnect", () => process.exit());

async function run({ args, cwd, env }: Start): Promise<number> {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  input = new PassThrough();
  const output = new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, done) => {
      tell({ output: String(text) });
      done();
    },
  });
  Object.defineProperty(process, "stdin", { value: input, configurable: true });
  Object.defineProperty(process, "stdout", { value: output, configurable: true });
  const parsed = parseCommandArgs(appServerCommand.options, args);
  const context = { env: process.env, cwd, version: manifest.version, commands: {} };
  return await appServerCommand.run(parsed, context).catch((error: unknown) => exitCodeOf(toHeddleError(error).code));
}

function tell(message: FromServer): void {
  process.send?.(message);
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
