/**
 * `heddle exec`: one prompt, one turn. Everything that can be refused is refused before the home is touched; then the turn
 * is started and followed through the journal until its terminal event.
 */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { openHeddle, type TerminalEvent } from "@heddle/agent";
import {
  ERROR_CODES,
  EXIT,
  exitCodeOf,
  HeddleError,
  SandboxMode,
  toHeddleError,
  visibleLine,
  visibleText,
  type ErrorCode,
  type InputPart,
} from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import { checkWritable, readImages, readSchema } from "../attachments.ts";
import type { Command, CommandContext } from "../command.ts";
import { heddleHome, loadConfig, parseOverrides } from "../config/read-config.ts";
import { resolveSettings, type Resolved } from "../config/settings.ts";
import { followTurn } from "../follow.ts";
import { createHumanPrinter } from "../print/human.ts";
import { createJsonlPrinter, toLine } from "../print/jsonl.ts";
import { openOutput, type Output } from "../print/output.ts";
import type { Printer } from "../print/printer.ts";
import { styleFor, type ColorChoice } from "../print/style.ts";
import { readPrompt } from "../prompt.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { openWorkspace, requireFolder, requireGitRepository } from "../workspace.ts";
import { EXEC_EXAMPLES, EXEC_OPTIONS } from "./exec-options.ts";

export const execCommand: Command = {
  usage: "exec [OPTIONS] [PROMPT | -]",
  about:
    "Runs one turn in a folder and prints the final message. Without PROMPT, or with -, the prompt is read from\n" +
    "standard input; with PROMPT, standard input is left alone (PROMPT - appends it).",
  options: EXEC_OPTIONS,
  examples: EXEC_EXAMPLES,
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openOutput(process.stdout);
  const err = openOutput(process.stderr);
  using stop = watchForStop(timeoutMs(args.value("timeout")));
  try {
    const plan = await prepare(args, context, { err, stop });
    return await execute(plan, { args, context, out, err, stop });
  } catch (error) {
    if (args.has("json")) await out.write(toLine(errorLine(error)));
    if (stop.exitCode === undefined) throw error;
    await err.write(`heddle: ${visibleLine(toHeddleError(error).message)}\n`);
    return stop.exitCode;
  }
}

interface Plan extends Resolved {
  readonly home: string;
  readonly workspace: string;
  readonly input: readonly InputPart[];
  readonly scriptFile: string | undefined;
  readonly lastMessageFile: string | undefined;
}

/** Refusals come in the order in which they are cheap; standard input is waited for last. */
async function prepare(args: ParsedArgs, { env, cwd }: CommandContext, { err, stop }: Surface): Promise<Plan> {
  const overrides = parseOverrides(args.values("config"));
  const { config: file } = await loadConfig(env);
  const workspace = await openWorkspace(args.value("cd"), cwd);
  const isBypassed = args.has("dangerously-bypass-approvals-and-sandbox");
  if (!args.has("skip-git-repo-check") && !isBypassed) await requireGitRepository(workspace);
  const addedRoots = await Promise.all(
    args.values("add-dir").map((folder) => requireFolder(path.resolve(cwd, folder), "--add-dir ")),
  );
  const schemaFile = args.value("output-schema");
  const script = args.value("script");
  const scriptFile = script === undefined ? undefined : path.resolve(cwd, script);
  const resolved = await resolveSettings(
    { file, overrides },
    {
      model: args.value("model"),
      profile: args.value("profile"),
      sandboxMode: sandboxMode(args, isBypassed),
      addedRoots,
      scriptFile,
      ...(schemaFile === undefined ? {} : { outputSchema: await readSchema(schemaFile, cwd) }),
    },
    env,
  );
  const lastMessage = args.value("output-last-message");
  const lastMessageFile = lastMessage === undefined ? undefined : await checkWritable(lastMessage, cwd);
  const images = await readImages(args.values("image"), cwd);
  const notify = (text: string): void => {
    if (!args.has("json")) process.stderr.write(`heddle: ${text}\n`);
  };
  const prompt = await readPrompt({ positionals: args.positionals, stdin: process.stdin, signal: stop.signal, notify });
  if (addedRoots.length > 0 && resolved.settings.sandboxMode === "read-only") {
    await err.write("heddle: --add-dir changes nothing while the sandbox is read-only; add -s workspace-write\n");
  }
  const input: readonly InputPart[] = [{ type: "text", text: prompt }, ...images];
  return { ...resolved, home: heddleHome(env), workspace, input, scriptFile, lastMessageFile };
}

interface Surface {
  readonly err: Output;
  readonly stop: Stop;
}

interface Run extends Surface {
  readonly args: ParsedArgs;
  readonly context: CommandContext;
  readonly out: Output;
}

async function execute(plan: Plan, { args, context, out, err, stop }: Run): Promise<number> {
  const { env, version } = context;
  const isJson = args.has("json");
  const printer = isJson
    ? createJsonlPrinter(out, err)
    : createHumanPrinter({
        err,
        style: styleFor(colorChoice(args.value("color")), err.isTerminal, env),
        version,
        workspace: plan.workspace,
        scriptFile: plan.scriptFile,
      });
  if (isJson && plan.scriptFile !== undefined) {
    await printer.notice(`the script ${plan.scriptFile} is played, no model is asked`);
  }
  await using heddle = await openHeddle({ home: plan.home, providers: plan.providers, env, isUnattended: true });
  if (heddle.recoveredTurns > 0) await printer.notice(`${heddle.recoveredTurns} turns of dead processes were closed`);
  stop.signal.throwIfAborted();
  const handle = await heddle.startTurn({
    thread: { workspace: plan.workspace, origin: "exec" },
    input: plan.input,
    settings: plan.settings,
  });
  const { terminal, message } = await followTurn(heddle, handle, { printer, stop });
  // What was said before a turn broke off is in the record; it is not the answer.
  const lastMessage = terminal.body.status === "completed" ? message : undefined;
  if (!isJson && !(out.isTerminal && err.isTerminal) && lastMessage !== undefined) {
    await out.write(`${out.isTerminal ? visibleText(lastMessage) : lastMessage}\n`);
  }
  if (plan.lastMessageFile !== undefined) await writeLastMessage(plan.lastMessageFile, lastMessage, printer);
  return exitCode(terminal, stop);
}

/** Written in any case: the text of an earlier run must not pass for this one's. */
async function writeLastMessage(file: string, text: string | undefined, printer: Printer): Promise<void> {
  try {
    await writeFile(file, text ?? "");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new HeddleError("usage.invalid", `-o ${file} could not be written: ${why}`, { cause: error });
  }
  if (text === undefined) await printer.notice(`there is no final message; ${file} is empty`);
}

function exitCode({ body }: TerminalEvent, stop: Stop): number {
  if (body.status === "completed") return EXIT.ok;
  if (body.status === "interrupted" && stop.exitCode !== undefined) return stop.exitCode;
  const code = body.failure?.code;
  return isErrorCode(code) ? exitCodeOf(code) : EXIT.turnFailed;
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return ERROR_CODES.some((known) => known === code);
}

function errorLine(error: unknown): unknown {
  const { code, message } = toHeddleError(error);
  return { type: "error", message, code };
}

function sandboxMode(args: ParsedArgs, isBypassed: boolean): SandboxMode | undefined {
  const named = args.value("sandbox");
  if (isBypassed) {
    if (named !== undefined && named !== "danger-full-access") {
      throw usage(`--dangerously-bypass-approvals-and-sandbox contradicts -s ${named}; give one of them`);
    }
    return "danger-full-access";
  }
  if (named !== undefined) return SandboxMode.parse(named);
  return args.has("full-auto") ? "workspace-write" : undefined;
}

function timeoutMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // setTimeout cannot wait longer than 2^31 ms.
  if (Number.isFinite(seconds) && seconds > 0 && seconds * 1000 < 2 ** 31) return seconds * 1000;
  throw usage(`--timeout "${text}" is not a number of seconds above 0, such as --timeout 600`);
}

function colorChoice(text: string | undefined): ColorChoice {
  return text === "always" || text === "never" ? text : "auto";
}
