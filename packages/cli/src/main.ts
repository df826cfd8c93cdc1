/**
 * The command line: finds the command in the table and runs it. Whatever goes wrong ends here as one line that says what to
 * do, and an exit code.
 */
import { readFileSync } from "node:fs";
import { didYouMean, exitCodeOf, HeddleError, reasonOf, toHeddleError, visibleLine } from "@heddle/protocol";
import {
  HELP_OPTION,
  mergeArgs,
  parseCommandArgs,
  splitLeadingOptions,
  usage,
  type OptionSpec,
  type ParsedArgs,
} from "./args.ts";
import { commands } from "./command-table.ts";
import { helpText, type Command } from "./command.ts";
import { EXEC_OPTIONS } from "./commands/exec-options.ts";
import { endProcess } from "./end-process.ts";
import { watchLauncher } from "./launcher.ts";
import { flushed } from "./print/output.ts";
import { say } from "./print/screen.ts";

// A reader that goes away (`| head`) is not an error. Output that is lost otherwise is one.
let lost: Error | undefined;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") lost ??= error;
});
process.stderr.on("error", () => undefined);
// A thread that walks the record loads these files too (`verify-parallel.ts`), and is no run.
if (!("isHeddleThread" in globalThis)) start().catch((error: unknown) => endProcess(report(error)));

async function start(): Promise<void> {
  await watchLauncher(process.env);

  let code = await main(process.argv.slice(2)).catch(report);
  await flushed(process.stdout);
  if (lost !== undefined && code === 0) {
    code = report(new HeddleError("store.failed", `standard output could not be written: ${reasonOf(lost)}`));
  }
  await flushed(process.stderr);
  // Explicit, because a socket kept open for reuse must not keep a finished command alive.
  endProcess(code);
}

async function main(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || first === "--help" || first === "-h" || (first === "help" && rest.length === 0)) {
    return print(overview());
  }
  if (first === "--version" || first === "-V") return printVersion();
  if (first.startsWith("-")) return runWithLeading(argv);
  const [name, args] = first === "help" ? [rest[0] ?? "", ["--help"]] : [first, rest];
  return runCommand(name, args, []);
}

/** `heddle -a never exec …`: callers of Codex put options before the name of a command. */
async function runWithLeading(argv: readonly string[]): Promise<number> {
  const { leading, rest } = splitLeadingOptions(EXEC_OPTIONS, argv);
  const [word, ...args] = rest;
  if (word === undefined && parseCommandArgs(EXEC_OPTIONS, leading).has("version")) return printVersion();
  if (word === undefined) throw usage(`a command is missing: heddle ${leading.join(" ")} exec "what to do"`);
  return runCommand(word, args, leading);
}

/** What Codex also calls them. */
const OTHER_NAMES: ReadonlyMap<string, readonly [name: string, ...args: string[]]> = new Map([
  ["e", ["exec"]],
  ["review", ["exec", "review"]],
]);

async function runCommand(word: string, args: readonly string[], leading: readonly string[]): Promise<number> {
  const [name, ...first] = OTHER_NAMES.get(word) ?? [word];
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) throw unknownWord(word);
  const command = await entry.load();
  try {
    return await runLoaded(command, name, { leading, args: [...first, ...args] });
  } catch (error) {
    if (command.usageExit === undefined || toHeddleError(error).code !== "usage.invalid") throw error;
    report(error);
    return command.usageExit;
  }
}

interface Words {
  /** Before the name of the command. */
  readonly leading: readonly string[];
  readonly args: readonly string[];
}

async function runLoaded(command: Command, name: string, { leading, args }: Words): Promise<number> {
  const options = [...command.options, HELP_OPTION];
  const own = parseCommandArgs(options, args);
  const parsed = leading.length === 0 ? own : mergeArgs(parseLeading(name, options, leading), own, options);
  if (parsed.has("help")) return print(helpText({ ...command, options }));
  if (parsed.has("version")) return printVersion();
  return command.run(parsed, { env: process.env, cwd: currentFolder(), version: version(), commands });
}

function parseLeading(name: string, options: readonly OptionSpec[], leading: readonly string[]): ParsedArgs {
  try {
    return parseCommandArgs(options, leading);
  } catch (error) {
    if (name === "exec") throw error;
    const message = `${leading[0] ?? ""} is an option of exec; options of ${name} come after it, see heddle ${name} --help`;
    throw new HeddleError("usage.invalid", message, { cause: error });
  }
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new HeddleError("workspace.missing", "the current folder no longer exists; go to another one", {
      cause: error,
    });
  }
}

function unknownWord(word: string): HeddleError {
  return usage(`unknown command "${word}"${didYouMean(word, Object.keys(commands)) || "; see heddle --help"}`);
}

function overview(): string {
  return [
    "Heddle runs coding agents and proves what they did.",
    "",
    "Usage: heddle COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(11)}  ${summary}`),
    "",
    "  heddle COMMAND --help   options and examples of one command",
    "  heddle --version",
    "",
    "Examples:",
    `  heddle exec -s workspace-write "fix the failing test"`,
    "  heddle threads list",
    "  heddle verify",
    "",
  ].join("\n");
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function printVersion(): number {
  return print(`heddle ${version()}\n`);
}

/** package.json is one folder above both src/ and dist/. */
function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "";
}

function report(error: unknown): number {
  const { code, message, details } = toHeddleError(error);
  if (code !== "internal") {
    // What an id may mean is a list; the lines of anything else are text of others.
    say("candidates" in details ? message : visibleLine(message));
    return exitCodeOf(code);
  }
  // A failure without a code is a defect of Heddle; its stack is what a report needs.
  say(`internal error, please report it: ${(error instanceof Error ? error.stack : undefined) ?? reasonOf(error)}`);
  return exitCodeOf("internal");
}
