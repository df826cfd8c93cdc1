/**
 * The table of commands. Each is loaded only when it is called, so that `--version` and a mistyped word cost nothing.
 * Whatever goes wrong ends here as one line that says what to do, and an exit code.
 */
import { readFileSync } from "node:fs";
import { didYouMean, exitCodeOf, HeddleError, toHeddleError, visibleLine } from "@heddle/protocol";
import { HELP_OPTION, mergeArgs, parseCommandArgs, splitLeadingOptions, usage } from "./args.ts";
import { helpText, type CommandEntry } from "./command.ts";
import { EXEC_OPTIONS } from "./commands/exec-options.ts";
import { endProcess } from "./end-process.ts";
import { watchLauncher } from "./launcher.ts";
import { flushed } from "./print/output.ts";
import { say } from "./print/screen.ts";

const commands: Readonly<Record<string, CommandEntry>> = {
  exec: {
    summary: "Run one turn: a prompt in, work in the sandbox, the answer out",
    load: async () => (await import("./commands/exec.ts")).execCommand,
  },
  "app-server": {
    summary: "Serve threads and turns over JSON-RPC, as codex app-server does",
    load: async () => (await import("./commands/app-server.ts")).appServerCommand,
  },
  serve: {
    summary: "Serve threads, turns and events over HTTP and JSON-RPC, for several clients",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  token: {
    summary: "Make, list or revoke tokens for clients of serve",
    load: async () => (await import("./commands/token.ts")).tokenCommand,
  },
  task: {
    summary: "Write, add, list and steer work orders whose completion is decided by checks",
    load: async () => (await import("./commands/task.ts")).taskCommand,
  },
  watch: {
    summary: "Carry out the tasks of this home, and show it",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  threads: {
    summary: "List, show, export, name or delete threads",
    load: async () => (await import("./commands/threads.ts")).threadsCommand,
  },
  notify: {
    summary: "Show who is told what happens to tasks, and deliver again what failed",
    load: async () => (await import("./commands/notify.ts")).notifyCommand,
  },
  usage: {
    summary: "Show what models took, by day, model, workspace or task",
    load: async () => (await import("./commands/usage.ts")).usageCommand,
  },
  verify: {
    summary: "Prove that the record is what was written",
    load: async () => (await import("./commands/verify.ts")).verifyCommand,
  },
  store: {
    summary: "Give back the room of what was deleted from the record",
    load: async () => (await import("./commands/store.ts")).storeCommand,
  },
  login: {
    summary: "Store a key for a provider, or log in at one",
    load: async () => (await import("./commands/login.ts")).loginCommand,
  },
  logout: {
    summary: "Take an account out of the credential store",
    load: async () => (await import("./commands/logout.ts")).logoutCommand,
  },
  accounts: {
    summary: "Show who is logged in where, and what a run would use",
    load: async () => (await import("./commands/accounts.ts")).accountsCommand,
  },
  mcp: {
    summary: "List MCP servers, log in at one, or log out",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  models: {
    summary: "List the models that can be asked for",
    load: async () => (await import("./commands/models.ts")).modelsCommand,
  },
  config: {
    summary: "Read or change one key of config.toml",
    load: async () => (await import("./commands/config.ts")).configCommand,
  },
  schema: {
    summary: "Print the schemas of what exec prints and of what serve serves",
    load: async () => (await import("./commands/schema.ts")).schemaCommand,
  },
  completions: {
    summary: "Print completions for bash, zsh or fish",
    load: async () => (await import("./commands/completions.ts")).completionsCommand,
  },
  demo: {
    summary: "Watch a scripted model mend a failing test, in the real sandbox",
    load: async () => (await import("./commands/demo.ts")).demoCommand,
  },
  doctor: {
    summary: "Look for what is missing on this machine, with the command that mends it",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
};

// A reader that goes away (`| head`) is no defect; writing to nobody is simply over. Output that is lost otherwise is one.
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
    code = report(new HeddleError("store.failed", `standard output could not be written: ${lost.message}`));
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
  if (first === "--version" || first === "-V") return print(`heddle ${version()}\n`);
  if (first.startsWith("-")) return runWithLeading(argv);
  const [name, args] = first === "help" ? [rest[0] ?? "", ["--help"]] : [first, rest];
  return runCommand(name, args, []);
}

/** `heddle -a never exec …`: callers of Codex put options of exec before its name. */
async function runWithLeading(argv: readonly string[]): Promise<number> {
  const { leading, rest } = splitLeadingOptions(EXEC_OPTIONS, argv);
  const [name, ...args] = rest;
  if (name !== undefined && commandName(name) !== "exec") {
    throw usage(
      `${leading[0] ?? ""} is an option of exec; options of ${name} come after it, see heddle ${name} --help`,
    );
  }
  if (name === undefined) throw usage(`a command is missing: heddle ${leading.join(" ")} exec "what to do"`);
  return runCommand(name, args, leading);
}

/** Codex knows the short form too. */
function commandName(word: string): string {
  return word === "e" ? "exec" : word;
}

async function runCommand(word: string, args: readonly string[], leading: readonly string[]): Promise<number> {
  const name = commandName(word);
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) throw unknownWord(word);
  const command = await entry.load();
  const options = [...command.options, HELP_OPTION];
  const own = parseCommandArgs(options, args);
  const parsed = leading.length === 0 ? own : mergeArgs(parseCommandArgs(options, leading), own, options);
  if (parsed.has("help")) return print(helpText({ ...command, options }));
  return command.run(parsed, { env: process.env, cwd: currentFolder(), version: version(), commands });
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

/** Lies beside src/ and dist/ alike. */
function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "";
}

function report(error: unknown): number {
  const { code, message } = toHeddleError(error);
  if (code !== "internal") {
    say(visibleLine(message));
    return exitCodeOf(code);
  }
  // A failure without a code is a defect of Heddle; its stack is what a report needs.
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  say(stack);
  return exitCodeOf("internal");
}
